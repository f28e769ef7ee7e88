"""Cases 1 to 6, 9, 11, 12, 15 to 17, 61, 62: payloads, leaves and entries that were changed, moved, added or taken away."""

import hashlib
from dataclasses import replace

from insider import leaf_of, rebuild_tiles, replace_leaf, sign_again
from ledger_box import Box, raw

from countermark.attestations.codes import Code
from countermark.ledger.leaf import Leaf, LeafSignature

from .lab import PAYLOAD_OF, Lab, Look, audited, case, loosened, spoilt


@case(Code.TAMPERED, "entry 5", "the payload is not what was signed")
def case_01_a_bit_of_a_payload(lab: Lab) -> Look:
    box = lab.small()
    db = raw(box.path)
    (data,) = db.execute(f"SELECT data FROM payload WHERE sha256 = {PAYLOAD_OF.format(5)}").fetchone()
    db.close()
    flipped = data[:100] + bytes([data[100] ^ 1]) + data[101:]
    return spoilt(box, f"UPDATE payload SET data = ? WHERE sha256 = {PAYLOAD_OF.format(5)}", values=(flipped,))


@case(Code.TAMPERED, "entry 5", "the payload is not what was signed")
def case_02_a_payload_that_is_another_valid_one(lab: Lab) -> Look:
    other = f"(SELECT data FROM payload WHERE sha256 = {PAYLOAD_OF.format(4)})"
    return spoilt(lab.small(), f"UPDATE payload SET data = {other}, size = length({other}) WHERE sha256 = {PAYLOAD_OF.format(5)}")


@case(Code.TAMPERED, "entry 5", "column payload_sha256 is not what the leaf says")
def case_03_a_payload_and_the_column_that_names_it(lab: Lab) -> Look:
    box, data = lab.small(), b"something else"
    digest = hashlib.sha256(data).digest()
    box.edit(f"UPDATE payload SET data = ?, size = ?, sha256 = ? WHERE sha256 = {PAYLOAD_OF.format(5)}", values=(data, len(data), digest))
    return spoilt(box, "UPDATE entry SET payload_sha256 = ? WHERE idx = 5", values=(digest,))


@case(Code.TAMPERED, "entry 5", "the size of the payload is not what was admitted")
def case_03_the_size_of_a_payload(lab: Lab) -> Look:
    return spoilt(lab.small(), f"UPDATE payload SET size = size + 1 WHERE sha256 = {PAYLOAD_OF.format(5)}")


@case(Code.TAMPERED, "entry 7", "the sigstore bundle is not the one that was admitted")
def case_03_a_bundle(lab: Lab) -> Look:
    return spoilt(lab.small(), "UPDATE payload SET data = x'7b7d', size = 2 WHERE CAST(data AS TEXT) LIKE '%sigstore.bundle%'")


@case(Code.TAMPERED, "", "no entry names the payload")
def case_03_a_payload_that_no_entry_names(lab: Lab) -> Look:
    data = b"planted"
    return spoilt(lab.small(), "INSERT INTO payload VALUES (?, ?, ?)", values=(hashlib.sha256(data).digest(), len(data), data))


@case(Code.TAMPERED, "entry 5", "the leaf does not hash to its leaf hash")
def case_04_a_leaf(lab: Lab) -> Look:
    box = lab.small()
    leaf = replace(Leaf.decode(leaf_of(box, 5)), admitted_ms=7).encode()
    return spoilt(box, "UPDATE entry SET leaf = ? WHERE idx = 5", values=(leaf,))


@case(Code.TAMPERED, "entry 5", "column kind is not what the leaf says")
def case_04_a_column_that_repeats_the_leaf(lab: Lab) -> Look:
    return spoilt(lab.small(), "UPDATE entry SET kind = 2 WHERE idx = 5")


@case(Code.TAMPERED, "entry 5", "column dedup is not what the leaf says")
def case_04_the_column_by_which_a_repetition_is_known(lab: Lab) -> Look:
    return spoilt(lab.small(), "UPDATE entry SET dedup = zeroblob(32) WHERE idx = 5")


@case(Code.TAMPERED, "entry 5", "column admitted_ms is not what the leaf says")
def case_04_the_column_with_the_time(lab: Lab) -> Look:
    return spoilt(lab.small(), "UPDATE entry SET admitted_ms = 1 WHERE idx = 5")


def _other_notice(box: Box, index: int) -> None:
    leaf = Leaf.decode(leaf_of(box, index))
    replace_leaf(box, index, replace(leaf, signatures=(replace(leaf.signatures[0], signature=bytes(64)),)).encode())


@case(Code.TAMPERED, "entries 0-255", "tile 0/0 does not hold the hashes of the entries")
def case_05_a_leaf_and_its_hash(lab: Lab) -> Look:
    box = lab.large()
    _other_notice(box, 100)
    return audited(box)


@case(Code.TAMPERED, "", "the entries do not hash to the root that was signed")
def case_06_a_leaf_its_hash_and_the_tiles(lab: Lab) -> Look:
    box = lab.large()
    _other_notice(box, 100)
    rebuild_tiles(box)
    return audited(box)


@case(Code.TAMPERED, "", "the entries do not hash to the root that was signed")
def case_09_signature_bytes_in_a_leaf(lab: Lab) -> Look:
    box = lab.small()
    _other_notice(box, 8)
    return audited(box)


@case(Code.TAMPERED, "entry 4", "the entry is missing")
def case_11_an_entry_is_gone(lab: Lab) -> Look:
    return spoilt(lab.small(), "DELETE FROM entry WHERE idx = 4")


@case(Code.TAMPERED, "", "there are 8 entries, and the head says 9")
def case_12_an_entry_is_gone_and_the_later_ones_are_renumbered(lab: Lab) -> Look:
    return spoilt(lab.small(), "DELETE FROM entry WHERE idx = 4", *(f"UPDATE entry SET idx = {n - 1} WHERE idx = {n}" for n in range(5, 9)))


@case(Code.TAMPERED, "", "the entries do not hash to the root that was signed")
def case_15_two_entries_are_swapped(lab: Lab) -> Look:
    swap = "UPDATE entry SET idx = CASE idx WHEN 6 THEN -8 ELSE -6 END WHERE idx IN (6, 8)"
    return spoilt(lab.small(), swap, "UPDATE entry SET idx = -idx WHERE idx < 0")


@case(Code.TAMPERED, "", "there are 10 entries, and the head says 9")
def case_16_an_entry_twice_without_a_signature_over_it(lab: Lab) -> Look:
    box = loosened(lab.small(), "entry")
    columns = "leaf, leaf_hash, dedup, payload_sha256, kind, admitted_ms"
    return spoilt(box, f"INSERT INTO entry SELECT 9, {columns} FROM entry WHERE idx = 6")


@case(Code.DUPLICATE, "entry 9", "the entry repeats an earlier one")
def case_16_an_entry_twice_and_signed(lab: Lab) -> Look:
    box = lab.small()
    twice_and_signed(box)
    return audited(box)


def twice_and_signed(box: Box) -> None:
    """Have entry 8 once more as entry 9, signed by the log's owner."""
    loosened(box, "entry")
    columns = "leaf, leaf_hash, dedup, payload_sha256, kind, admitted_ms"
    box.edit(f"INSERT INTO entry SELECT 9, {columns} FROM entry WHERE idx = 8")
    for table, rest in (("subject", "pos, kind, digest, role, name"), ("signature", "pos, algorithm, key_sha256, keyid, sig, outcome")):
        box.edit(f"INSERT INTO {table} SELECT 9, {rest} FROM {table} WHERE idx = 8")
    box.edit("INSERT INTO statement SELECT 9, predicate_type FROM statement WHERE idx = 8")
    last = Leaf.decode(leaf_of(box, 8))
    replace_leaf(box, 9, replace(last, admitted_ms=last.admitted_ms + 1).encode())
    sign_again(box)


@case(Code.TAMPERED, "entry -1", "the entry stands outside the log")
def case_16_an_entry_before_the_first(lab: Lab) -> Look:
    box = loosened(lab.small(), "entry")
    columns = "leaf, leaf_hash, dedup, payload_sha256, kind, admitted_ms"
    return spoilt(box, f"INSERT INTO entry SELECT -1, {columns} FROM entry WHERE idx = 6")


@case(Code.TAMPERED, "", "the entries do not hash to the root that was signed")
def case_17_insert_or_replace(lab: Lab) -> Look:
    box = lab.small()
    leaf = Leaf.decode(leaf_of(box, 8))
    other = replace(leaf, signatures=(LeafSignature(1, leaf.signatures[0].key_sha256, bytes(64)),)).encode()
    row = (8, other, hashlib.sha256(b"\0" + other).digest(), leaf.dedup, leaf.payload_sha256, int(leaf.kind), leaf.admitted_ms)
    return spoilt(box, "INSERT OR REPLACE INTO entry VALUES (?, ?, ?, ?, ?, ?, ?)", values=row)


def _signed_leaf(lab: Lab, leaf: bytes) -> Look:
    """The newest leaf replaced by the log's owner, so that nothing but its form speaks against it."""
    box = lab.small()
    replace_leaf(box, 8, leaf)
    sign_again(box)
    return audited(box)


@case(Code.UNSUPPORTED, "entry 8", "leaf version 2 is not known to this version")
def case_61_a_leaf_of_a_version_to_come(lab: Lab) -> Look:
    return _signed_leaf(lab, b"\2" + leaf_of(lab.small(), 8)[1:])


@case(Code.UNSUPPORTED, "entry 8")
def case_61_a_leaf_of_a_kind_to_come(lab: Lab) -> Look:
    leaf = leaf_of(lab.small(), 8)
    return _signed_leaf(lab, leaf[:1] + b"\7" + leaf[2:])


@case(Code.MALFORMED, "entry 8")
def case_62_a_leaf_with_trailing_bytes(lab: Lab) -> Look:
    return _signed_leaf(lab, leaf_of(lab.small(), 8) + b"\0")


@case(Code.MALFORMED, "entry 8")
def case_62_a_leaf_with_a_signature_twice(lab: Lab) -> Look:
    leaf = Leaf.decode(leaf_of(lab.small(), 8))
    (only,) = leaf.signatures
    encoded = leaf.encode()
    one = encoded[-(1 + 32 + 2 + len(only.signature)) :]
    return _signed_leaf(lab, encoded[: -len(one) - 1] + b"\2" + one + one)
