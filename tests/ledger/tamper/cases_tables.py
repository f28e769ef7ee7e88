"""Cases 18 to 22, 59, 60: guards, tiles, the frontier, the schema, and the row that says which log this is."""

import hashlib
from dataclasses import replace

from insider import leaf_of, replace_leaf
from ledger_box import raw

from countermark.attestations.codes import Code
from countermark.ledger.guards import TRIGGERS
from countermark.ledger.leaf import Leaf
from countermark.ledger.tiles import TILE_BYTES, tile_root

from .lab import PAYLOAD_OF, Lab, Look, all_of, asked, audited, case, loosened, spoilt


@case(Code.GUARD_MISSING, "", "guard entry_no_update is missing")
def case_18_a_guard_is_gone(lab: Lab) -> Look:
    box = lab.small()
    db = raw(box.path)
    db.execute("DROP TRIGGER entry_no_update")
    db.close()
    return audited(box)


@case(Code.GUARD_MISSING, "", "guard head_no_update was changed")
def case_18_a_guard_was_edited(lab: Lab) -> Look:
    box = lab.small()
    db = raw(box.path)
    db.execute("DROP TRIGGER head_no_update")
    db.execute(TRIGGERS["head_no_update"].replace("NEW.size <= OLD.size", "0"))
    db.close()
    return audited(box)


@case(Code.GUARD_MISSING, "", "'helper' is a trigger or view that no version made")
def case_18_a_trigger_of_somebody(lab: Lab) -> Look:
    box = lab.small()
    db = raw(box.path)
    db.execute("CREATE TRIGGER helper AFTER INSERT ON subject BEGIN DELETE FROM subject WHERE role = 'alias'; END")
    db.close()
    return audited(box)


OTHER_END = "CASE substr(hashes, -1) WHEN x'00' THEN x'01' ELSE x'00' END"
"""Another last byte than the hashes have; one of 256 tiles ends in a zero."""


@case(Code.TAMPERED, "entries 0-255", "tile 0/0 does not hold the hashes of the entries")
def case_19_a_tile_is_corrupted(lab: Lab) -> Look:
    return spoilt(lab.large(), f"UPDATE tile SET hashes = CAST(substr(hashes, 1, {TILE_BYTES - 1}) || {OTHER_END} AS BLOB)")


@case(Code.MALFORMED, "entries 0-255", "tile 0/0 is not 256 hashes")
def case_19_a_tile_is_too_short(lab: Lab) -> Look:
    return spoilt(lab.large(), f"UPDATE tile SET hashes = zeroblob({TILE_BYTES - 1})")


@case(Code.INCOMPLETE, "entries 0-255", "tile 0/0 is missing")
def case_19_a_tile_is_missing(lab: Lab) -> Look:
    return spoilt(lab.large(), "DELETE FROM tile")


@case(Code.TAMPERED, "entries 0-255", "the root of tile 0/0 is wrong")
def case_20_the_root_of_a_tile(lab: Lab) -> Look:
    return spoilt(lab.large(), "UPDATE tile SET root = zeroblob(32)")


@case(Code.TAMPERED, "", "tile 0/1 is not full at this size, or not a tile")
def case_21_a_partial_tile_as_a_full_one(lab: Lab) -> Look:
    box = lab.large()
    db = raw(box.path)
    hashes = b"".join(row[0] for row in db.execute("SELECT leaf_hash FROM entry WHERE idx >= 256 ORDER BY idx"))
    db.close()
    padded = hashes.ljust(TILE_BYTES, b"\0")
    return spoilt(box, "INSERT INTO tile VALUES (0, 1, ?, ?)", values=(padded, tile_root(padded)))


@case(Code.TAMPERED, "", "tile 1/0 is not full at this size, or not a tile")
def case_21_a_partial_tile_in_the_level_above(lab: Lab) -> Look:
    return spoilt(lab.large(), "INSERT INTO tile SELECT 1, 0, CAST(root || zeroblob(8160) AS BLOB), root FROM tile")


@case(Code.TAMPERED, "", "the frontier is not that of the entries")
def case_22_the_frontier(lab: Lab) -> Look:
    return spoilt(lab.small(), "UPDATE head SET frontier = zeroblob(length(frontier))")


@case(Code.LEDGER_TAMPERED, "", "the signed head, its frontier and the stored tree disagree")
def case_22_the_frontier_before_an_append(lab: Lab) -> Look:
    box = lab.small()
    box.edit("UPDATE head SET frontier = zeroblob(length(frontier))")
    return asked(lambda: box.append(box.passed(1)))


@case(Code.TAMPERED, "entry 5", "the payload is not what was signed")
def case_59_a_migration_that_wrote_bytes_as_text(lab: Lab) -> Look:
    box = loosened(lab.small(), "payload")
    return spoilt(box, f"UPDATE payload SET data = CAST(data AS TEXT) WHERE sha256 = {PAYLOAD_OF.format(5)}")


@case(Code.GUARD_MISSING, "", "tables or indexes are not as this schema made them")
def case_59_a_migration_that_copied_every_row_and_changed_none(lab: Lab) -> Look:
    return audited(loosened(lab.small(), "statement"))


@case(Code.TAMPERED, "", "table statement has the columns")
def case_59_a_migration_that_added_a_column(lab: Lab) -> Look:
    return spoilt(lab.small(), "ALTER TABLE statement ADD COLUMN remark TEXT")


@case(Code.TAMPERED, "", "ledger.database: a part of the schema was removed: no such table: tile")
def case_59_what_cannot_be_read_is_a_finding(lab: Lab) -> Look:
    return _without_tiles(lab)


@case(Code.TAMPERED, "", "table tile is missing")
def case_59_a_migration_that_dropped_a_table(lab: Lab) -> Look:
    return _without_tiles(lab)


def _without_tiles(lab: Lab) -> Look:
    box = lab.small()
    db = raw(box.path)
    db.execute("DROP TABLE tile")
    db.close()
    return audited(box)


@case(Code.TAMPERED, "", "table ledger does not repeat entry 0")
def case_60_the_origin(lab: Lab) -> Look:
    """The study says UNTRUSTED, as a note of that origin would be. Here entry 0, which is signed, says the origin too."""
    return all_of(*(spoilt(lab.small(), f"UPDATE ledger SET {what}") for what in ("origin = 'other/log'", "incarnation = zeroblob(16)")))


@case(Code.TAMPERED, "entry 0", "entry 0 does not say what this log is")
def case_60_the_origin_in_entry_0(lab: Lab) -> Look:
    box = lab.small()
    other = b'{"origin": "other/log"}'
    leaf = Leaf.decode(leaf_of(box, 0))
    box.edit(f"UPDATE payload SET data = ?, size = ?, sha256 = ? WHERE sha256 = {PAYLOAD_OF.format(0)}", values=_blob(other))
    replace_leaf(box, 0, replace(leaf, payload_len=len(other), payload_sha256=hashlib.sha256(other).digest()).encode())
    return audited(box)


@case(Code.TAMPERED, "entry 9", "entry 0, and no other, is the genesis")
def case_60_a_second_genesis(lab: Lab) -> Look:
    box = lab.small()
    box.append(box.document("policy: two"))
    loosened(box, "entry")
    first, last = Leaf.decode(leaf_of(box, 0)), Leaf.decode(leaf_of(box, 9))
    fields = {name: getattr(first, name) for name in ("payload_type", "payload_len", "payload_sha256", "signatures")}
    replace_leaf(box, 9, replace(last, **fields).encode())
    return audited(box)


def _blob(data: bytes) -> tuple[bytes, int, bytes]:
    return data, len(data), hashlib.sha256(data).digest()
