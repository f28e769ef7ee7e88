"""The writer's connection: SQLAlchemy Core over the same settings as the read path."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
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


@contextmanager
def engine_errors(path: Path) -> Iterator[None]:
    """Turn database errors, wrapped by SQLAlchemy or not, into typed ones that name the file."""
    try:
        with sqlite_errors(path):
            yield
    except DBAPIError as error:
        raise explain(error.orig or error, path) from error
