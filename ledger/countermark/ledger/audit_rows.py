"""The derived rows, read beside the entries in one pass, and the hash that covers them."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from countermark.attestations.codes import Code
from countermark.ledger.audit_report import Findings
from countermark.ledger.chains import tile_of
from countermark.ledger.schema import COLUMNS, DERIVED
from countermark.ledger.snapshot import Snapshot
from countermark.ledger.tiles import TILE_WIDTH

EntryTables: TypeAlias = tuple[list[tuple[Any, ...]], ...]
"""For each table of `schema.DERIVED`, the stored rows of one entry without its index."""


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Rows of neighbouring entries, for each table of `schema.DERIVED` in order, with their index."""

    tables: tuple[list[tuple[Any, ...]], ...]

    def and_then(self, later: "StoredRows") -> "StoredRows":
        """These and those of entries behind them."""
        return StoredRows(tuple(ours + theirs for ours, theirs in zip(self.tables, later.tables, strict=True)))

    def by_entry(self, indices: Iterable[int], findings: Findings) -> dict[int, EntryTables]:
        """The rows of each of `indices`; rows that belong to none of them are a finding."""
        found: dict[int, EntryTables] = {index: tuple([] for _ in DERIVED) for index in indices}
        for position, rows in enumerate(self.tables):
            strays = []
            for row in rows:
                of_entry = found.get(row[0])
                if of_entry is None:
                    strays.append(row[0])
                else:
                    of_entry[position].append(row[1:])
            findings.extend(Code.TAMPERED, "derived", f"a row of table {DERIVED[position]} belongs to no entry", strays)
        return found


class _Rows:
    """The rows of one table from one index on, in index order, handed out as far as is asked for."""

    def __init__(self, ledger: Snapshot, table: str, findings: Findings, start: int) -> None:
        columns = COLUMNS[table]
        order = "idx, pos" if "pos" in columns else "idx"
        sql = f"SELECT {', '.join(columns)} FROM {table} WHERE ?1 = 0 OR idx >= ?1 ORDER BY {order}"  # noqa: S608  # names from schema
        self._rows = self._sound(table, ledger.batches(sql, start), findings)
        self._ahead: list[tuple[Any, ...]] = []

    @staticmethod
    def _sound(table: str, batches: Iterator[list[tuple[Any, ...]]], findings: Findings) -> Iterator[list[tuple[Any, ...]]]:
        for rows in batches:
            for row in rows:
                if not isinstance(row[0], int):
                    findings.add(Code.TAMPERED, "types", f"a row of table {table} has the index {row[0]!r}")
            yield [row for row in rows if isinstance(row[0], int)]

    def until(self, last: int) -> list[tuple[Any, ...]]:
        """The rows not handed out yet whose index is at most `last`."""
        found: list[tuple[Any, ...]] = []
        while True:
            stop = bisect_right(self._ahead, last, key=lambda row: row[0])
            found += self._ahead[:stop]
            self._ahead = self._ahead[stop:]
            if self._ahead:
                return found
            more = next(self._rows, None)
            if more is None:
                return found
            self._ahead = more

    def rest(self) -> list[int]:
        """The indices of the rows behind the last entry."""
        return [row[0] for rows in (self._ahead, *self._rows) for row in rows]


class DerivedRows:
    """The stored derived rows in order; checks that none is behind the last entry and that the hash covers all.

    Rows are read from the beginning of the tile in which entry `since` lies, as the hash runs along a tile.
    """

    def __init__(self, ledger: Snapshot, findings: Findings, since: int = 0) -> None:
        self._ledger = ledger
        self._findings = findings
        self._first_tile = tile_of(since)
        self._tables = {table: _Rows(ledger, table, findings, self._first_tile * TILE_WIDTH) for table in DERIVED}
        self._digests: dict[int, bytes] = {}
        self._read = 0

    def until(self, first: int, last: int) -> StoredRows | None:
        """The rows up to those of entry `last` that were not handed out yet; none where none of entry `first` are read."""
        if tile_of(first) < self._first_tile:
            return None
        return StoredRows(tuple(rows.until(last) for rows in self._tables.values()))

    def cover(self, tile: int, digest: bytes, last: int) -> None:
        """Take the hash over the rows of a tile, as far as entry `last`."""
        self._digests[tile] = digest
        self._read = last + 1

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
