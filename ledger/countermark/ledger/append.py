"""One append: what is written between BEGIN IMMEDIATE and COMMIT.

The order is fixed. The head that is there is verified first, so that nothing is signed on top of something altered. Then the rows,
then the tiles that became full, read back from the database and compared with the tree in memory, and last the one checkpoint of the
transaction. The note does not leave this module's caller before COMMIT has returned.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from typing import Any, Final

from sqlalchemy import ClauseElement, Column, Select, bindparam, insert, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from countermark.attestations.codes import Code
from countermark.attestations.errors import CannotTellError, CountermarkError, InputError, TamperError
from countermark.ledger import tables
from countermark.ledger.chains import EMPTY, begins_tile, extend_notes, extend_rows, tile_of
from countermark.ledger.leaf import NO_HASH, Leaf
from countermark.ledger.merkle import Frontier, check_inclusion, inclusion_proof, leaf_hash, root_at
from countermark.ledger.note import Checkpoint, CheckpointSigner, VerifierKey, open_checkpoint
from countermark.ledger.prepare import Prepared
from countermark.ledger.schema import DERIVED
from countermark.ledger.store import Session
from countermark.ledger.tiles import TILE_WIDTH, TileReader, tile_root, tiles_completed

CLOCK_TOLERANCE_MS: Final = 60_000
"""How far the clock may lag behind the newest entry before an append is refused."""

_PORTIONS: Final = (500, 50, 1)
_VERIFY: Final = "run `countermark verify ledger`; append nothing before it is clear what happened"

_SELECT_HEAD = select(*tables.HEAD.c["size", "root", "frontier", "note", "admitted_ms", "notes_chain"])
_SELECT_LEAF = select(*tables.ENTRY.c["leaf", "leaf_hash"]).where(tables.ENTRY.c.idx == bindparam("i"))
_SELECT_HASHES = (
    select(tables.ENTRY.c.leaf_hash).where(tables.ENTRY.c.idx.between(bindparam("start"), bindparam("last"))).order_by(tables.ENTRY.c.idx)
)
_SELECT_TILE = select(tables.TILE.c.hashes).where(tables.TILE.c.level == bindparam("l"), tables.TILE.c.idx == bindparam("i"))
_SELECT_ROOTS = (
    select(tables.TILE.c.root)
    .where(tables.TILE.c.level == bindparam("l"), tables.TILE.c.idx.between(bindparam("start"), bindparam("last")))
    .order_by(tables.TILE.c.idx)
)
_SELECT_DEDUP = select(*tables.ENTRY.c["dedup", "idx", "leaf"])
_SELECT_BLOB = select(tables.PAYLOAD.c.sha256)
_SELECT_DIGEST = select(*tables.INDEX_DIGEST.c["tile", "digest"]).where(tables.INDEX_DIGEST.c.tile == bindparam("t"))
_INSERT = {name: insert(table) for name, table in tables.METADATA.tables.items()}
_put_digest = upsert(tables.INDEX_DIGEST)
_PUT_DIGEST = _put_digest.on_conflict_do_update(index_elements=["tile"], set_={"digest": _put_digest.excluded.digest})
_MOVE_HEAD = (
    update(tables.HEAD)
    .where(tables.HEAD.c.size == bindparam("old_size"), tables.HEAD.c.root == bindparam("old_root"))
    .values({name: bindparam(f"new_{name}") for name in ("size", "root", "frontier", "note", "admitted_ms", "notes_chain")})
)


@dataclass(frozen=True, slots=True)
class LogState:
    """The state of the log after its newest transaction. `last_notice` is the leaf hash of the newest notice, zero for none."""

    size: int
    root: bytes
    note: str
    admitted_ms: int
    notes_chain: bytes
    frontier: Frontier
    last_notice: bytes

    @property
    def row(self) -> tuple[object, ...]:
        """The columns of table `head` behind its id."""
        return (self.size, self.root, self.frontier.encode(), self.note, self.admitted_ms, self.notes_chain)


NOTHING_YET: Final = LogState(0, Frontier().root(), "", 0, EMPTY, Frontier(), NO_HASH)


def read_head(session: Session, key: VerifierKey, known: LogState | None) -> LogState:
    """The head, verified against the log's key and against the right edge of the stored tree. `TamperError` when they disagree.

    `known` is the head that the caller itself committed last; if it still stands, there is nothing to verify again.
    """
    rows = session.rows(_SELECT_HEAD)
    if len(rows) != 1:
        raise _tampered("the head is missing")
    size, root, frontier, note, admitted_ms, chain = rows[0]
    if known and (known.size, known.root, known.note, known.notes_chain) == (size, root, note, chain):
        return known
    try:
        signed = open_checkpoint(note, key)
        peaks = Frontier.decode(size, frontier)
        stored = root_at(size, tile_reader(session, size))
    except CountermarkError as error:
        raise _tampered(f"the head does not verify: {error.message}") from None
    if signed != Checkpoint(key.name, size, root) or peaks.root() != root or stored != root:
        raise _tampered("the signed head, its frontier and the stored tree disagree")
    leaf = _last_leaf(session, size)
    if leaf.admitted_ms != admitted_ms:
        raise _tampered("the head names another time than the newest entry")
    return LogState(size, root, note, admitted_ms, chain, peaks, leaf_hash(leaf.encode()) if leaf.notice else leaf.prev_notice)


def _last_leaf(session: Session, size: int) -> Leaf:
    """The newest leaf, whose stored hash the caller has found in the tree."""
    rows = session.rows(_SELECT_LEAF, size - 1)
    if not rows or leaf_hash(rows[0][0]) != rows[0][1]:
        raise _tampered(f"entry {size - 1} is not what was admitted")
    try:
        return Leaf.decode(rows[0][0])
    except CountermarkError as error:
        raise _tampered(f"entry {size - 1} cannot be read: {error.message}") from None


def tile_reader(session: Session, size: int) -> TileReader:
    """The stored tree, as the writer's connection sees it."""

    def hashes(statement: ClauseElement, *values: int) -> Sequence[bytes]:
        return [value for (value,) in session.rows(statement, *values)]

    return TileReader(
        size,
        lambda level, index: b"".join(hashes(_SELECT_TILE, level, index)),
        lambda start, stop: hashes(_SELECT_HASHES, start, stop - 1),
        lambda level, start, stop: hashes(_SELECT_ROOTS, level, start, stop - 1),
    )


def existing(session: Session, head: LogState, batch: Iterable[Prepared]) -> dict[bytes, int]:
    """dedup → index for those of the batch that were admitted before, each proven to be in the log.

    A planted row would otherwise make a rejection pass for one that is there already. `TamperError` for such a row.
    """
    reader = tile_reader(session, head.size)
    found = {}
    for dedup, index, leaf in _known(session, _SELECT_DEDUP, tables.ENTRY.c.dedup, [item.dedup for item in batch]):
        try:
            proof = inclusion_proof(index, head.size, reader)
            check_inclusion(index, head.size, leaf_hash(leaf), proof, head.root)
            admitted = Leaf.decode(leaf).dedup
        except CountermarkError as error:
            raise _tampered(f"entry {index} is not what was admitted: {error.message}") from None
        if admitted != dedup:
            raise _tampered(f"entry {index} is filed as the duplicate of something else")
        found[dedup] = index
    return found


def extend_log(session: Session, head: LogState, new: Sequence[Prepared], now_ms: int, signer: CheckpointSigner) -> LogState:
    """Write the new entries and the checkpoint over them; the head after. `CannotTellError` CLOCK, `TamperError`."""
    if now_ms < head.admitted_ms - CLOCK_TOLERANCE_MS:
        behind = (head.admitted_ms - now_ms) // 1000
        raise CannotTellError(Code.CLOCK, f"the clock is {behind} s behind the newest entry", fix="set the clock right, then try again")
    grown = _write_entries(session, head, new, max(now_ms, head.admitted_ms))
    _write_blobs(session, new)
    _write_derived(session, head.size, new)
    _write_tiles(session, head.size, grown)
    return _sign(session, head, grown, signer)


def _write_entries(session: Session, head: LogState, new: Sequence[Prepared], admitted_ms: int) -> LogState:
    frontier, notice, rows = head.frontier, head.last_notice, []
    for index, item in enumerate(new, head.size):
        leaf = item.leaf(admitted_ms, notice).encode()
        hashed = leaf_hash(leaf)
        frontier = frontier.push(hashed)
        notice = hashed if item.derived.notice else notice
        rows.append((index, leaf, hashed, item.dedup, item.payload_sha256, int(item.submission.kind), admitted_ms))
    session.insert(_INSERT["entry"], rows)
    return replace(head, size=frontier.size, root=frontier.root(), admitted_ms=admitted_ms, frontier=frontier, last_notice=notice)


def _write_blobs(session: Session, new: Sequence[Prepared]) -> None:
    blobs = {digest: data for item in new for digest, data in item.blobs.items()}
    stored = {row[0] for row in _known(session, _SELECT_BLOB, tables.PAYLOAD.c.sha256, list(blobs))}
    rows = [(digest, len(data), data) for digest, data in blobs.items() if digest not in stored]
    session.insert(_INSERT["payload"], rows)


def _write_derived(session: Session, start: int, new: Sequence[Prepared]) -> None:
    """The derived rows, and the running hash over them."""
    rows: dict[str, list[tuple[object, ...]]] = {name: [] for name in DERIVED}
    digests: dict[int, bytes] = {}
    if not begins_tile(start):
        digests.update(session.rows(_SELECT_DIGEST, tile_of(start)))
    for index, item in enumerate(new, start):
        derived = item.rows
        for name, found in zip(DERIVED, derived, strict=True):
            rows[name].extend((index, *row) for row in found)
        digests[tile_of(index)] = extend_rows(digests.get(tile_of(index), EMPTY), derived)
    for name, found_rows in rows.items():
        session.insert(_INSERT[name], found_rows)
    session.insert(_PUT_DIGEST, list(digests.items()))


def _write_tiles(session: Session, before: int, grown: LogState) -> None:
    """The tiles that became full. What was stored is read back before anything is signed over it: one flipped bit has ended logs."""
    completed = list(tiles_completed(before, grown.size))
    try:
        for level, index in completed:
            start, last = index * TILE_WIDTH, (index + 1) * TILE_WIDTH - 1
            found = session.rows(_SELECT_ROOTS, level - 1, start, last) if level else session.rows(_SELECT_HASHES, start, last)
            hashes = b"".join(value for (value,) in found)
            session.change(_INSERT["tile"], level, index, hashes, tile_root(hashes))
        agrees = not completed or root_at(grown.size, tile_reader(session, grown.size)) == grown.root
    except InputError as error:
        raise _tampered(f"the tree in the database has holes: {error.message}") from None
    if not agrees:
        raise _tampered("the tree in the database is not the tree that was signed")


def _sign(session: Session, head: LogState, grown: LogState, signer: CheckpointSigner) -> LogState:
    note = signer.sign(Checkpoint(signer.vkey.name, grown.size, grown.root))
    encoded = note.encode()
    after = replace(grown, note=note, notes_chain=extend_notes(head.notes_chain, encoded))
    session.change(_INSERT["checkpoint"], after.size, sha256(encoded).digest(), after.root, note)
    if head.size == 0:
        session.change(_INSERT["head"], 1, *after.row)
    elif session.change(_MOVE_HEAD, *after.row, head.size, head.root) != 1:
        raise _tampered("the head changed while the ledger was locked")
    return after


def _known(session: Session, columns: Select[Any], key: Column[bytes], values: Sequence[bytes]) -> Iterator[tuple[Any, ...]]:
    """The rows whose key is one of `values`, asked for in portions of a few fixed sizes, so that there are few statements."""
    at = 0
    for size in _PORTIONS:
        while len(values) - at >= size:
            yield from session.rows(_in_portion(columns, key, size), *values[at : at + size])
            at += size


@cache
def _in_portion(columns: Select[Any], key: Column[bytes], size: int) -> Select[Any]:
    return columns.where(key.in_([bindparam(f"value_{number}", type_=key.type) for number in range(size)]))


def _tampered(message: str) -> TamperError:
    return TamperError(Code.LEDGER_TAMPERED, message, fix=_VERIFY)
