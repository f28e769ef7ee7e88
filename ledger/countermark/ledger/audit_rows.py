"""The derived rows, read beside the entries in one pass, and the hash that covers them."""

from collections.abc import Iterator
from typing import Any, Final

from countermark.attestations.codes import Code
from countermark.ledger.audit_report import Findings
from countermark.ledger.chains import EMPTY, begins_tile, extend_rows, tile_of
from countermark.ledger.schema import COLUMNS, DERIVED
from countermark.ledger.snapshot import Snapshot
from countermark.ledger.tiles import TILE_WIDTH


class _Rows:
    """The rows of one table from one index on, in index order, handed out entry by entry."""

    def __init__(self, ledger: Snapshot, table: str, findings: Findings, start: int) -> None:
        columns = COLUMNS[table]
        order = "idx, pos" if "pos" in columns else "idx"
        sql = f"SELECT {', '.join(columns)} FROM {table} WHERE ?1 = 0 OR idx >= ?1 ORDER BY {order}"  # noqa: S608  # names from schema
        rows = ledger.stream(sql, start)
        self._rows = self._sound(table, rows, findings)
        self._next = next(self._rows, None)

    @staticmethod
    def _sound(table: str, rows: Iterator[tuple[Any, ...]], findings: Findings) -> Iterator[tuple[Any, ...]]:
        for row in rows:
            if isinstance(row[0], int):
                yield row
            else:
                findings.add(Code.TAMPERED, "types", f"a row of table {table} has the index {row[0]!r}")

    def take(self, index: int) -> tuple[list[tuple[Any, ...]], list[int]]:
        """The rows of an entry, without its index, and the indices of rows passed by, which belong to no entry."""
        strays: list[int] = []
        found: list[tuple[Any, ...]] = []
        while self._next is not None and self._next[0] <= index:
            if self._next[0] == index:
                found.append(tuple(self._next[1:]))
            else:
                strays.append(self._next[0])
            self._next = next(self._rows, None)
        return found, strays

    def rest(self) -> list[int]:
        """The indices of the rows behind the last entry."""
        return [row[0] for row in ([self._next, *self._rows] if self._next is not None else [])]


class DerivedRows:
    """The stored derived rows of each entry in turn; checks along the way that none is without entry and that the hash covers all.

    Rows are read from the beginning of the tile in which entry `since` lies, as the hash runs along a tile.
    """

    TABLES: Final = DERIVED

    def __init__(self, ledger: Snapshot, findings: Findings, since: int = 0) -> None:
        self._ledger = ledger
        self._findings = findings
        self._first_tile = tile_of(since)
        self._tables = {table: _Rows(ledger, table, findings, self._first_tile * TILE_WIDTH) for table in DERIVED}
        self._digests: dict[int, bytes] = {}
        self._read = 0

    def take(self, index: int) -> tuple[list[tuple[Any, ...]], ...]:
        """The rows of an entry, for each table of `TABLES`; indices must come in rising order. None where none are read."""
        found = []
        if tile_of(index) < self._first_tile:
            return ()
        for table, rows in self._tables.items():
            of_entry, strays = rows.take(index)
            self._report(table, strays)
            found.append(of_entry)
        before = EMPTY if begins_tile(index) else self._digests.get(tile_of(index), EMPTY)
        self._digests[tile_of(index)] = extend_rows(before, found)
        self._read = index + 1
        return tuple(found)

    def finish(self) -> None:
        """Report the rows behind the last entry, and compare the hashes with table `index_digest`."""
        for table, rows in self._tables.items():
            self._report(table, rows.rest())
        stored = dict(self._ledger.rows("SELECT tile, digest FROM index_digest WHERE ?1 = 0 OR tile >= ?1", self._first_tile))
        for tile in sorted(stored.keys() | self._digests.keys(), key=repr):
            if tile not in self._digests:
                self._findings.add(Code.TAMPERED, "index-digest", f"an index digest is about no entries: tile {tile!r}")
            elif stored.get(tile) != self._digests[tile]:
                observed = "the derived rows do not hash to their index digest" if tile in stored else "the index digest is missing"
                covered = range(tile * TILE_WIDTH, min((tile + 1) * TILE_WIDTH, self._read))
                self._findings.extend(Code.TAMPERED, "index-digest", observed, covered)

    def _report(self, table: str, strays: list[int]) -> None:
        self._findings.extend(Code.TAMPERED, "derived", f"a row of table {table} belongs to no entry", strays)
