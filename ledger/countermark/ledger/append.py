"""One append: what is written between BEGIN IMMEDIATE and COMMIT.

The order is fixed. The head that is there is verified first, so that nothing is signed on top of something altered. Then the rows,
then the tiles that became full, read back from the database and compared with the tree in memory, and last the one checkpoint of the
transaction. The note does not leave this module's caller before COMMIT has returned.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final

from sqlalchemy import Column, Connection, Select, bindparam, insert, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from countermark.attestations.codes import Code
from countermark.attestations.errors import CannotTellError, CountermarkError, TamperError
from countermark.ledger import tables
from countermark.ledger.chains import EMPTY, begins_tile, extend_notes, extend_rows, tile_of
from countermark.ledger.leaf import NO_HASH, Leaf
from countermark.ledger.merkle import Frontier, leaf_hash, root_at
from countermark.ledger.note import Checkpoint, CheckpointSigner, VerifierKey, open_checkpoint
from countermark.ledger.prepare import Prepared
from countermark.ledger.schema import DERIVED
from countermark.ledger.tiles import TILE_WIDTH, TileReader, tile_root, tiles_completed

CLOCK_TOLERANCE_MS: Final = 60_000
"""How far the clock may lag behind the newest entry before an append is refused."""

_IN_CHUNK: Final = 500
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
_SELECT_DIGEST = select(tables.INDEX_DIGEST.c.digest).where(tables.INDEX_DIGEST.c.tile == bindparam("t"))
_INSERT = {name: insert(table) for name, table in tables.METADATA.tables.items()}
_put_digest = upsert(tables.INDEX_DIGEST)
_PUT_DIGEST = _put_digest.on_conflict_do_update(index_elements=["tile"], set_={"digest": _put_digest.excluded.digest})
_MOVE_HEAD = (
    update(tables.HEAD)
    .where(tables.HEAD.c.id == 1, tables.HEAD.c.size == bindparam("old_size"), tables.HEAD.c.root == bindparam("old_root"))
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
    def row(self) -> dict[str, object]:
        """The columns of table `head`."""
        return {
            "size": self.size,
            "root": self.root,
            "frontier": self.frontier.encode(),
            "note": self.note,
            "admitted_ms": self.admitted_ms,
            "notes_chain": self.notes_chain,
        }


NOTHING_YET: Final = LogState(0, Frontier().root(), "", 0, EMPTY, Frontier(), NO_HASH)


def read_head(connection: Connection, key: VerifierKey, known: LogState | None) -> LogState:
    """The head, verified against the log's key and against the right edge of the stored tree. `TamperError` when they disagree.

    `known` is the head that the caller itself committed last; if it still stands, there is nothing to verify again.
    """
    row = connection.execute(_SELECT_HEAD).one_or_none()
    if row is None:
        raise _tampered("the head is missing")
    size, root, frontier, note, admitted_ms, chain = row
    if known and (known.size, known.root, known.note, known.notes_chain) == (size, root, note, chain):
        return known
    try:
        signed = open_checkpoint(note, key)
        peaks = Frontier.decode(size, frontier)
        stored = root_at(size, tile_reader(connection, size))
    except CountermarkError as error:
        raise _tampered(f"the head does not verify: {error.message}") from None
    if signed != Checkpoint(key.name, size, root) or peaks.root() != root or stored != root:
        raise _tampered("the signed head, its frontier and the stored tree disagree")
    leaf = _last_leaf(connection, size)
    if leaf.admitted_ms != admitted_ms:
        raise _tampered("the head names another time than the newest entry")
    return LogState(size, root, note, admitted_ms, chain, peaks, leaf_hash(leaf.encode()) if leaf.notice else leaf.prev_notice)


def _last_leaf(connection: Connection, size: int) -> Leaf:
    """The newest leaf, whose stored hash the caller has found in the tree."""
    row = connection.execute(_SELECT_LEAF, {"i": size - 1}).one_or_none()
    if row is None or leaf_hash(row[0]) != row[1]:
        raise _tampered(f"entry {size - 1} is not what was admitted")
    try:
        return Leaf.decode(row[0])
    except CountermarkError as error:
        raise _tampered(f"entry {size - 1} cannot be read: {error.message}") from None


def tile_reader(connection: Connection, size: int) -> TileReader:
    """The stored tree, as the writer's connection sees it."""

    def hashes(statement: Select[bytes], **values: int) -> Sequence[bytes]:
        return connection.execute(statement, values).scalars().all()

    return TileReader(
        size,
        lambda level, index: b"".join(hashes(_SELECT_TILE, l=level, i=index)),
        lambda start, stop: hashes(_SELECT_HASHES, start=start, last=stop - 1),
        lambda level, start, stop: hashes(_SELECT_ROOTS, l=level, start=start, last=stop - 1),
    )


def existing(connection: Connection, batch: Iterable[Prepared]) -> dict[bytes, int]:
    """dedup → index for those of the batch that were admitted before."""
    return dict(_known(connection, select(*tables.ENTRY.c["dedup", "idx"]), tables.ENTRY.c.dedup, [item.dedup for item in batch]))


def extend_log(connection: Connection, head: LogState, new: Sequence[Prepared], now_ms: int, signer: CheckpointSigner) -> LogState:
    """Write the new entries and the checkpoint over them; the head after. `CannotTellError` CLOCK, `TamperError`."""
    if now_ms < head.admitted_ms - CLOCK_TOLERANCE_MS:
        behind = (head.admitted_ms - now_ms) // 1000
        raise CannotTellError(Code.CLOCK, f"the clock is {behind} s behind the newest entry", fix="set the clock right, then try again")
    grown = _write_entries(connection, head, new, max(now_ms, head.admitted_ms))
    _write_blobs(connection, new)
    _write_derived(connection, head.size, new)
    _write_tiles(connection, head.size, grown)
    return _sign(connection, head, grown, signer)


def _write_entries(connection: Connection, head: LogState, new: Sequence[Prepared], admitted_ms: int) -> LogState:
    frontier, notice, rows = head.frontier, head.last_notice, []
    for index, item in enumerate(new, head.size):
        leaf = item.leaf(admitted_ms, notice).encode()
        hashed = leaf_hash(leaf)
        frontier = frontier.push(hashed)
        notice = hashed if item.derived.notice else notice
        rows.append(
            {
                "idx": index,
                "leaf": leaf,
                "leaf_hash": hashed,
                "dedup": item.dedup,
                "payload_sha256": item.payload_sha256,
                "kind": int(item.submission.kind),
                "admitted_ms": admitted_ms,
            }
        )
    connection.execute(_INSERT["entry"], rows)
    return replace(head, size=frontier.size, root=frontier.root(), admitted_ms=admitted_ms, frontier=frontier, last_notice=notice)


def _write_blobs(connection: Connection, new: Sequence[Prepared]) -> None:
    blobs = {digest: data for item in new for digest, data in item.blobs.items()}
    stored = {row[0] for row in _known(connection, select(tables.PAYLOAD.c.sha256), tables.PAYLOAD.c.sha256, list(blobs))}
    rows = [{"sha256": digest, "size": len(data), "data": data} for digest, data in blobs.items() if digest not in stored]
    _insert(connection, "payload", rows)


def _write_derived(connection: Connection, start: int, new: Sequence[Prepared]) -> None:
    """The derived rows, and the running hash over them."""
    rows: dict[str, list[dict[str, object]]] = {name: [] for name in DERIVED}
    columns = {name: tables.METADATA.tables[name].c.keys() for name in DERIVED}
    digests: dict[int, bytes] = {}
    if not begins_tile(start):
        digests[tile_of(start)] = connection.execute(_SELECT_DIGEST, {"t": tile_of(start)}).scalar_one_or_none() or EMPTY
    for index, item in enumerate(new, start):
        derived = item.rows
        for name, found in zip(DERIVED, derived, strict=True):
            rows[name].extend(dict(zip(columns[name], (index, *row), strict=True)) for row in found)
        digests[tile_of(index)] = extend_rows(digests.get(tile_of(index), EMPTY), derived)
    for name, found_rows in rows.items():
        _insert(connection, name, found_rows)
    connection.execute(_PUT_DIGEST, [{"tile": tile, "digest": digest} for tile, digest in digests.items()])


def _write_tiles(connection: Connection, before: int, grown: LogState) -> None:
    """The tiles that became full. What was stored is read back before anything is signed over it: one flipped bit has ended logs."""
    completed = list(tiles_completed(before, grown.size))
    for level, index in completed:
        start, last = index * TILE_WIDTH, (index + 1) * TILE_WIDTH - 1
        if level == 0:
            found = connection.execute(_SELECT_HASHES, {"start": start, "last": last})
        else:
            found = connection.execute(_SELECT_ROOTS, {"l": level - 1, "start": start, "last": last})
        hashes = b"".join(found.scalars())
        connection.execute(_INSERT["tile"], {"level": level, "idx": index, "hashes": hashes, "root": tile_root(hashes)})
    if completed and root_at(grown.size, tile_reader(connection, grown.size)) != grown.root:
        raise _tampered("the tree in the database is not the tree that was signed")


def _sign(connection: Connection, head: LogState, grown: LogState, signer: CheckpointSigner) -> LogState:
    note = signer.sign(Checkpoint(signer.vkey.name, grown.size, grown.root))
    encoded = note.encode()
    after = replace(grown, note=note, notes_chain=extend_notes(head.notes_chain, encoded))
    row = {"size": after.size, "note_sha256": sha256(encoded).digest(), "root": after.root, "note": note}
    connection.execute(_INSERT["checkpoint"], row)
    if head.size == 0:
        connection.execute(_INSERT["head"], {"id": 1, **after.row})
        return after
    moved = connection.execute(
        _MOVE_HEAD, {"old_size": head.size, "old_root": head.root, **{f"new_{name}": value for name, value in after.row.items()}}
    )
    if moved.rowcount != 1:
        raise _tampered("the head changed while the ledger was locked")
    return after


def _insert(connection: Connection, name: str, rows: Sequence[dict[str, object]]) -> None:
    if rows:
        connection.execute(_INSERT[name], rows)


def _known(connection: Connection, columns: Select[Any], key: Column[bytes], values: Sequence[bytes]) -> Iterator[Any]:
    """The rows whose key is one of `values`, asked for in portions that every SQLite takes."""
    for at in range(0, len(values), _IN_CHUNK):
        yield from connection.execute(columns.where(key.in_(values[at : at + _IN_CHUNK])))


def _tampered(message: str) -> TamperError:
    return TamperError(Code.LEDGER_TAMPERED, message, fix=_VERIFY)
