"""What somebody can do who owns the database and the key of its log: rewrite the history, and sign all of it again."""

import sqlite3
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from ledger_box import Box, raw

from countermark.attestations.errors import InputError
from countermark.ledger.chains import EMPTY, begins_tile, extend_notes, extend_rows, tile_of
from countermark.ledger.leaf import Leaf
from countermark.ledger.merkle import Frontier, leaf_hash
from countermark.ledger.note import Checkpoint
from countermark.ledger.schema import COLUMNS, DERIVED
from countermark.ledger.tiles import TILE_BYTES, TILE_WIDTH, tile_root


def replace_leaf(box: Box, index: int, leaf: bytes) -> None:
    """Put another leaf into the place of one, with the columns that repeat it as far as it can be read."""
    box.edit("UPDATE entry SET leaf = ?, leaf_hash = ? WHERE idx = ?", values=(leaf, leaf_hash(leaf), index))
    try:
        read = Leaf.decode(leaf)
    except InputError:
        return
    columns = (read.dedup, read.payload_sha256, int(read.kind), read.admitted_ms, index)
    box.edit("UPDATE entry SET dedup = ?, payload_sha256 = ?, kind = ?, admitted_ms = ? WHERE idx = ?", values=columns)


def leaf_of(box: Box, index: int) -> bytes:
    """The stored leaf of an entry."""
    with _connected(box) as db:
        leaf: bytes = db.execute("SELECT leaf FROM entry WHERE idx = ?", (index,)).fetchone()[0]
    return leaf


def rebuild_tiles(box: Box) -> None:
    """Make the tiles follow from the leaf hashes that are stored."""
    with _connected(box) as db:
        hashes = [row[0] for row in db.execute("SELECT leaf_hash FROM entry ORDER BY idx")]
        db.execute("DELETE FROM tile")
        level = 0
        while len(hashes) >= TILE_WIDTH:
            full = [b"".join(hashes[at : at + TILE_WIDTH]) for at in range(0, len(hashes) // TILE_WIDTH * TILE_WIDTH, TILE_WIDTH)]
            assert all(len(tile) == TILE_BYTES for tile in full)
            db.executemany("INSERT INTO tile VALUES (?, ?, ?, ?)", [(level, n, tile, tile_root(tile)) for n, tile in enumerate(full)])
            hashes, level = list(map(tile_root, full)), level + 1


def rebuild_digests(box: Box) -> None:
    """Make the index digests follow from the derived rows that are stored."""
    with _connected(box) as db:
        digests: dict[int, bytes] = {}
        for (index,) in db.execute("SELECT idx FROM entry ORDER BY idx").fetchall():
            rows = [db.execute(_rows_of(table), (index,)).fetchall() for table in DERIVED]
            before = EMPTY if begins_tile(index) else digests[tile_of(index)]
            digests[tile_of(index)] = extend_rows(before, rows)
        db.execute("DELETE FROM index_digest")
        db.executemany("INSERT INTO index_digest VALUES (?, ?)", digests.items())


def sign_again(box: Box, notes: Mapping[int, str] | None = None) -> None:
    """Make tiles, head and every checkpoint follow from the leaves that are stored; `notes` are of sizes at which another note stands."""
    rebuild_tiles(box)
    rebuild_digests(box)
    with _connected(box) as db:
        leaves = [row[0] for row in db.execute("SELECT leaf FROM entry ORDER BY idx")]
        sizes = {row[0] for row in db.execute("SELECT size FROM checkpoint") if row[0] <= len(leaves)} | {len(leaves)}
        frontier, chain, rows = Frontier(), EMPTY, []
        for leaf in leaves:
            frontier = frontier.push(leaf_hash(leaf))
            if frontier.size in sizes:
                own = box.log.sign(Checkpoint(box.log.vkey.name, frontier.size, frontier.root()))
                note = (notes or {}).get(frontier.size, own)
                chain = extend_notes(chain, note.encode())
                rows.append((frontier.size, sha256(note.encode()).digest(), frontier.root(), note))
        admitted = db.execute("SELECT admitted_ms FROM entry ORDER BY idx DESC LIMIT 1").fetchone()[0]
        db.execute("DELETE FROM checkpoint")
        db.executemany("INSERT INTO checkpoint VALUES (?, ?, ?, ?)", rows)
        db.execute("DELETE FROM head")
        head = (1, frontier.size, frontier.root(), frontier.encode(), rows[-1][3], admitted, chain)
        db.execute(f"INSERT INTO head VALUES ({', '.join('?' * len(head))})", head)


class _connected:  # noqa: N801  # used as a function
    """A connection without guards, which stand again afterwards."""

    def __init__(self, box: Box) -> None:
        self._db = raw(box.path)

    def __enter__(self) -> sqlite3.Connection:
        self._triggers = self._db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in self._triggers:
            self._db.execute(f"DROP TRIGGER {name}")
        return self._db

    def __exit__(self, *error: Any) -> None:
        for _, sql in self._triggers:
            self._db.execute(sql)
        self._db.close()


def _rows_of(table: str) -> str:
    order = "pos" if "pos" in COLUMNS[table] else "idx"
    return f"SELECT {', '.join(COLUMNS[table][1:])} FROM {table} WHERE idx = ? ORDER BY {order}"
