"""One consistent view of a ledger file: a read transaction of the standard library's sqlite3, with every error typed."""

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from countermark.attestations.codes import Code
from countermark.attestations.errors import Location, TamperError
from countermark.ledger.database import VERIFY, sqlite_errors
from countermark.ledger.tiles import TileReader

_BATCH: Final = 1024


class Snapshot:
    """The ledger as it was when the snapshot was taken; writers go on meanwhile and are not waited for."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    def begin(self) -> None:
        """Fix the view, which lasts until `close`."""
        self.rows("BEGIN")
        self.rows("SELECT 1 FROM sqlite_master LIMIT 1")

    def close(self) -> None:
        """End the view and close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with sqlite_errors(self.path):
            return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, *values: object) -> tuple[Any, ...] | None:
        """The first row of a query, if there is one."""
        with sqlite_errors(self.path):
            found: tuple[Any, ...] | None = self._connection.execute(sql, values).fetchone()
        return found

    def stream(self, sql: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, one at a time."""
        with sqlite_errors(self.path):
            # Not the cursor itself, which an iterator that is dropped half-way would close, perhaps after its connection.
            yield from chain(self._connection.execute(sql, values))

    def batches(self, sql: str, *values: object) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of a query, so many at a time."""
        with sqlite_errors(self.path):
            cursor = self._connection.execute(sql, values)
            while rows := cursor.fetchmany(_BATCH):
                yield rows

    def tree(self, size: int) -> TileReader:
        """The stored tree at `size`; it believes the database, so what it gives must be checked against a signed root."""

        def column(sql: str, *values: int) -> Sequence[bytes]:
            return [value for (value,) in self.rows(sql, *values) if isinstance(value, bytes)]

        return TileReader(
            size,
            lambda level, index: b"".join(column("SELECT hashes FROM tile WHERE level = ? AND idx = ?", level, index)),
            lambda start, stop: column("SELECT leaf_hash FROM entry WHERE idx >= ? AND idx < ? ORDER BY idx", start, stop),
            lambda level, start, stop: column(
                "SELECT root FROM tile WHERE level = ? AND idx >= ? AND idx < ? ORDER BY idx", level, start, stop
            ),
        )

    def tampered(self, message: str) -> TamperError:
        """The error that says this ledger contradicts its own proof."""
        return TamperError(Code.LEDGER_TAMPERED, message, at=Location(str(self.path)), fix=VERIFY)
