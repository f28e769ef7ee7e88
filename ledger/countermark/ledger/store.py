"""The writer's connection: SQLAlchemy Core over the same settings as the read path."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import ClauseElement, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, ProgrammingError
from sqlalchemy.pool import NullPool

from countermark.ledger.database import explain, open_file, sqlite_errors


def make_engine(path: Path) -> Engine:
    """An engine over an existing file whose transactions are all `BEGIN IMMEDIATE`.

    A transaction that reads first and writes later fails at once when another has written in between, whatever the timeout; and left
    to itself the sqlite3 module would commit before DDL.
    """
    engine = create_engine("sqlite://", creator=lambda: open_file(path, writable=True), poolclass=NullPool)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


class Session:
    """A connection for statements that are module constants: SQLAlchemy compiles each once, the driver runs it.

    Going through SQLAlchemy's result machinery each time would cost an append more than SQLite does. Values are positional, in the order
    of the statement's parameters; for an insert that is the order of the table's columns.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._cursor = connection.connection.cursor()
        self._compiled: dict[ClauseElement, str] = {}

    def begin(self) -> None:
        """Begin a transaction that no other writer can come between."""
        self._cursor.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Make the transaction durable; when this raises, whether it is cannot be known."""
        self._cursor.execute("COMMIT")

    def rollback(self) -> None:
        """Undo the transaction, if it is still open: SQLite ends it by itself after some errors."""
        self._connection.connection.rollback()

    def close(self) -> None:
        """Give the connection back."""
        self._cursor.close()
        self._connection.close()

    def rows(self, statement: ClauseElement, *values: object) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        self._cursor.execute(self._sql(statement), values)
        return list(self._cursor.fetchall())

    def change(self, statement: ClauseElement, *values: object) -> int:
        """Run a statement that changes rows; how many it changed."""
        self._cursor.execute(self._sql(statement), values)
        return self._cursor.rowcount

    def insert(self, statement: ClauseElement, rows: Sequence[Sequence[object]]) -> None:
        """Run an insert for each row."""
        if len(rows) == 1:
            self._cursor.execute(self._sql(statement), rows[0])
        elif rows:
            self._cursor.executemany(self._sql(statement), rows)

    def _sql(self, statement: ClauseElement) -> str:
        sql = self._compiled.get(statement)
        if sql is None:
            sql = self._compiled[statement] = str(statement.compile(dialect=self._connection.dialect))
        return sql


@contextmanager
def engine_errors(path: Path) -> Iterator[None]:
    """Turn database errors, wrapped by SQLAlchemy or not, into typed ones that name the file."""
    try:
        with sqlite_errors(path):
            yield
    except ProgrammingError:
        raise
    except DBAPIError as error:
        raise explain(error.orig or error, path) from error
