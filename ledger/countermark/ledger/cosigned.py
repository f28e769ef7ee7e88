"""Stored checkpoints with the cosignatures that witnesses have given to them."""

from collections.abc import Iterator

from countermark.attestations.codes import Code
from countermark.attestations.errors import CountermarkError, InputError
from countermark.ledger.note import VerifierKey, open_checkpoint
from countermark.ledger.read import LedgerReader
from countermark.ledger.signed_note import SignatureLine, SignedNote
from countermark.ledger.witness_policy import Witnessed, WitnessPolicy


def note_at(reader: LedgerReader, size: int) -> str:
    """The checkpoint that the log signed at a size, with every cosignature over it. `InputError` UNKNOWN_NAME where it signed none.

    The log signs one checkpoint for each append, which may be of many entries.
    """
    within = min(max(size, 0), reader.head.size)
    root = reader.root_at(within)
    row = reader.row("SELECT note FROM checkpoint WHERE size = ? AND root = ?", within, root)
    if row is None or within != size:
        near = reader.row("SELECT max(size) FROM checkpoint WHERE size <= ?", within) or (None,)
        fix = f"ask for a size at which it did, such as {near[0] or reader.head.size}, or leave it out for the newest"
        raise InputError(Code.UNKNOWN_NAME, f"the log signed no checkpoint of {size} entries", fix=fix)
    return _with_lines(reader, str(row[0]), size, root)


def newest_witnessed(reader: LedgerReader, policy: WitnessPolicy, above: int = 0) -> tuple[str, Witnessed] | None:
    """The newest checkpoint of more than `above` entries that a quorum of the policy holds, as a note and taken apart."""
    for size in _cosigned_sizes(reader, above):
        note = note_at(reader, size)
        try:
            witnessed = policy.open(note)
        except CountermarkError:
            continue  # no quorum yet, or a line that does not hold: then an older checkpoint is what the witnesses vouch for
        if witnessed.cosignatures:
            return note, witnessed
    return None


def check_own(reader: LedgerReader, note: str) -> SignedNote:
    """A note that somebody brought, if it is a checkpoint of this log; `InputError`, `RefusedError` or `TamperError` otherwise."""
    checkpoint = open_checkpoint(note, VerifierKey.parse(reader.genesis.log_vkey))
    if checkpoint.size > reader.head.size or reader.root_at(checkpoint.size) != checkpoint.root:
        raise reader.tampered(f"the log has signed a checkpoint of {checkpoint.size} entries that is not one of this ledger")
    return SignedNote.parse(note)


def _cosigned_sizes(reader: LedgerReader, above: int) -> Iterator[int]:
    sql = "SELECT DISTINCT size FROM cosignature WHERE size > ? AND size <= ? ORDER BY size DESC"
    return (size for (size,) in reader.rows(sql, above, reader.head.size))


def _with_lines(reader: LedgerReader, note: str, size: int, root: bytes) -> str:
    rows = reader.rows("SELECT line FROM cosignature WHERE size = ? AND root = ? ORDER BY name, key_id, ts DESC", size, root)
    signed = SignedNote.parse(note)
    newest: dict[tuple[str, bytes], SignatureLine] = {}
    for (text,) in rows:
        line = SignatureLine.parse(text)
        newest.setdefault((line.name, line.key_id), line)
    return str(SignedNote(signed.text, (*signed.lines, *newest.values())))
