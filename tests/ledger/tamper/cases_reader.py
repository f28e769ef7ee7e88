"""Cases 1, 9, 10, 16, 19, 47, 52 and 64 as the gate meets them: what a reader refuses before an answer rests on it."""

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from itertools import count
from unittest.mock import patch

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from insider import leaf_of, replace_leaf, sign_again
from ledger_box import Box

from countermark.attestations.codes import Code, ExitCode
from countermark.ledger.leaf import Leaf
from countermark.ledger.merkle import leaf_hash
from countermark.ledger.note import Checkpoint, CheckpointSigner
from countermark.ledger.read import LedgerReader

from .lab import Lab, Look, asked, case, loosened


def _read(lab: Lab, ask: Callable[[LedgerReader], object], *edits: str, large: bool = False) -> Look:
    """Ask a reader of a ledger that was changed past its guards, without an anchor to help."""
    box = lab.large() if large else lab.small()
    box.forget()
    if edits:
        box.edit(*edits)
    return _asking(box, ask)


def _asking(box: Box, ask: Callable[[LedgerReader], object]) -> Look:
    def question() -> None:
        with LedgerReader.open(box.path, anchor=box.anchor) as reader:
            ask(reader)

    return asked(question)


def _open(_: LedgerReader) -> None:
    """Opening is all."""


@case(Code.UNKNOWN_NAME, "", "and no entry 99", exits=ExitCode.INVALID)
def case_16_an_entry_that_the_log_does_not_have(lab: Lab) -> Look:
    return _read(lab, lambda reader: reader.entry(99))


@case(Code.LEDGER_TAMPERED, "", "entry 5 is not in the tree that the log signed")
def case_01_an_entry_with_the_leaf_of_another(lab: Lab) -> Look:
    return _read(lab, lambda reader: reader.entry(5), "UPDATE entry SET leaf = (SELECT leaf FROM entry WHERE idx = 6) WHERE idx = 5")


@case(Code.INCOMPLETE, "", "is not here")
def case_52_a_payload_that_a_reader_misses(lab: Lab) -> Look:
    payload = "SELECT payload_sha256 FROM entry WHERE idx = 5"
    return _read(lab, lambda reader: reader.entry(5), f"DELETE FROM payload WHERE sha256 = ({payload})")


@case(Code.LEDGER_TAMPERED, "", "is not what was signed")
def case_01_a_payload_that_a_reader_is_given(lab: Lab) -> Look:
    payload = "SELECT payload_sha256 FROM entry WHERE idx = 5"
    return _read(lab, lambda reader: reader.entry(5), f"UPDATE payload SET data = zeroblob(size) WHERE sha256 = ({payload})")


@case(Code.UNKNOWN_NAME, "", "the log has 9 entries", exits=ExitCode.INVALID)
def case_16_growth_from_a_size_that_the_log_does_not_have(lab: Lab) -> Look:
    return _read(lab, lambda reader: reader.prove_growth(99))


@case(Code.UNKNOWN_NAME, "", "the log has 9 entries, not 99", exits=ExitCode.INVALID)
def case_16_a_past_that_the_log_never_had(lab: Lab) -> Look:
    return _read(lab, lambda reader: reader.rewind(99))


@case(Code.LEDGER_TAMPERED, "", "the times of the entries are not those of their leaves")
def case_19_a_time_that_a_past_is_asked_by(lab: Lab) -> Look:
    return _read(lab, lambda reader: reader.size_at(1), "UPDATE entry SET admitted_ms = 0 WHERE idx = 0")


@case(Code.LEDGER_TAMPERED, "", "entry 3 is missing")
def case_10_an_entry_that_a_reader_misses(lab: Lab) -> Look:
    return _read(lab, lambda reader: reader.entry(3), "DELETE FROM entry WHERE idx = 3", large=True)


@case(Code.LEDGER_TAMPERED, "", "the chain of notices breaks before entry ")
def case_64_a_notice_that_the_gate_misses(lab: Lab) -> Look:
    return _read(lab, lambda reader: reader.notices(), "DELETE FROM entry WHERE idx = 3", large=True)


@case(Code.LEDGER_TAMPERED, "", "a notice, is not what was admitted")
def case_64_a_notice_with_the_leaf_of_another(lab: Lab) -> Look:
    return _read(lab, lambda reader: reader.notices(), "UPDATE entry SET leaf = (SELECT leaf FROM entry WHERE idx = 1) WHERE idx = 3")


@case(Code.INCOMPLETE, "", "this ledger has no first entry")
def case_53_a_ledger_of_nothing(lab: Lab) -> Look:
    return _read(lab, _open, "DELETE FROM entry", "DELETE FROM head")


@case(Code.LEDGER_TAMPERED, "", "entry 0 is no genesis")
def case_60_a_log_that_begins_with_something_else(lab: Lab) -> Look:
    return _read(lab, _open, "UPDATE entry SET leaf = (SELECT leaf FROM entry WHERE idx = 6) WHERE idx = 0")


@case(Code.LEDGER_TAMPERED, "", "entry 0 is no genesis: ")
def case_60_a_genesis_that_says_nothing(lab: Lab) -> Look:
    box = lab.small()
    _begin_with(box, b"{}")
    return _asking(box, _open)


@case(Code.LEDGER_TAMPERED, "", "entry 0 holds no log key: ")
def case_60_a_genesis_without_a_key(lab: Lab) -> Look:
    box = lab.small()
    with box.reader() as reader:
        genesis = reader.entry(0).payload
        key = reader.genesis.log_vkey.encode()
    _begin_with(box, genesis.replace(key, b"x"))
    return _asking(box, _open)


def _begin_with(box: Box, payload: bytes) -> None:
    """Another payload of entry 0, which its leaf names."""
    leaf = Leaf.decode(leaf_of(box, 0))
    digest = sha256(payload).digest()
    box.edit("INSERT INTO payload (sha256, size, data) VALUES (?, ?, ?)", values=(digest, len(payload), payload))
    replace_leaf(box, 0, replace(leaf, payload_sha256=digest, payload_len=len(payload)).encode())


@case(Code.UNTRUSTED, "", "the trust policy names ")
def case_62_a_log_whose_key_is_another_than_is_believed(lab: Lab) -> Look:
    box = lab.small()
    other = CheckpointSigner(box.log.vkey.name, Ed25519PrivateKey.generate()).vkey
    return asked(lambda: LedgerReader.open(box.path, other, box.anchor).close())


@case(Code.LEDGER_TAMPERED, "", "the head is missing")
def case_16_a_reader_without_a_head(lab: Lab) -> Look:
    return _read(lab, _open, "DELETE FROM head")


@case(Code.LEDGER_TAMPERED, "", "the head's note does not verify: ")
def case_25_a_head_that_the_log_did_not_sign(lab: Lab) -> Look:
    return _read(lab, _open, "UPDATE head SET note = replace(note, '\n9\n', '\n8\n')")


@case(Code.LEDGER_TAMPERED, "", "the head is not what its note says")
def case_16_a_head_of_another_size_than_its_note(lab: Lab) -> Look:
    return _read(lab, _open, "UPDATE head SET size = 8", "DELETE FROM entry WHERE idx = 8")


@case(Code.LEDGER_TAMPERED, "", "the head is older, or newer, than the entries")
def case_09_a_head_that_is_older_than_the_entries(lab: Lab) -> Look:
    box = lab.small()
    box.forget()
    with box.reader() as reader:
        root = reader.root_at(8)
    note = box.log.sign(Checkpoint(box.log.vkey.name, 8, root))
    box.edit("UPDATE head SET size = 8, root = ?, note = ?", values=(root, note))
    return _asking(box, _open)


@case(Code.LEDGER_TAMPERED, "", "entry 5 cannot be read: ")
def case_61_a_leaf_that_is_none_and_hashes_as_it_should(lab: Lab) -> Look:
    """Its owner would have to sign it; before that, the notice walk meets it."""
    return _read(lab, lambda reader: reader._with_payload(5, b"no leaf", bytes(32)))


@case(Code.LEDGER_TAMPERED, "", "the stored tree is damaged: ")
def case_13_a_root_of_a_tile_that_is_none(lab: Lab) -> Look:
    return _read(lab, lambda reader: reader.root_at(260), "UPDATE tile SET root = x'00'", large=True)


@case(Code.LEDGER_TAMPERED, "", "entry 5 is stored as str, not as bytes")
def case_18_a_leaf_that_is_text(lab: Lab) -> Look:
    box = loosened(lab.large(), "entry")
    box.forget()
    box.edit("UPDATE entry SET leaf = 'text' WHERE idx = 5")
    return _asking(box, lambda reader: reader.entry(5))


@case(Code.LEDGER_TAMPERED, "", "the payload of entry 5 has another length than was admitted")
def case_01_a_length_that_the_owner_of_the_log_signed(lab: Lab) -> Look:
    return _resigned(lab, 5, lambda leaf, box: replace(leaf, payload_len=leaf.payload_len + 1), lambda reader: reader.entry(5))


@case(Code.LEDGER_TAMPERED, "", "entry 6 stands in the chain of notices where it cannot be")
def case_47_a_chain_of_notices_through_what_is_none(lab: Lab) -> Look:
    return _resigned(lab, 8, lambda leaf, box: replace(leaf, prev_notice=leaf_hash(leaf_of(box, 6))), lambda reader: reader.notices())


def _resigned(lab: Lab, index: int, change: Callable[[Leaf, Box], Leaf], ask: Callable[[LedgerReader], object]) -> Look:
    """Ask a reader of a ledger whose owner changed one leaf and signed everything again."""
    box = lab.small()
    replace_leaf(box, index, change(Leaf.decode(leaf_of(box, index)), box).encode())
    sign_again(box)
    box.forget()
    return _asking(box, ask)


@case(Code.LEDGER_TAMPERED, "", "entry 0 changed while it was read")
def case_60_another_log_in_the_middle_of_a_reading(lab: Lab) -> Look:
    """The owner puts another ledger under the reader's hands between its first look and its snapshot."""
    box = lab.small()
    box.forget()
    with box.reader() as reader:
        genesis, created = reader.entry(0).payload, reader.genesis.created_ms
    times = count(created + 1)

    def exchanged(_: object) -> None:
        _begin_with(box, genesis.replace(str(created).encode(), str(next(times)).encode()))
        sign_again(box)

    def question() -> None:
        with patch("countermark.ledger.read.Anchor.read", exchanged):
            LedgerReader.open(box.path, anchor=box.anchor).close()

    return asked(question)
