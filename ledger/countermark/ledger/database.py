"""Opening a ledger file with the standard library, and saying why it cannot be read.

A path that is wrong must never become an empty ledger, so files are opened `mode=ro` or `mode=rw`, which SQLite does not create.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from countermark.attestations.codes import Code
from countermark.attestations.documents import exists
from countermark.attestations.errors import CannotTellError, CountermarkError, Location, TamperError
from countermark.ledger.schema import SCHEMA_REVISION

BUSY_S: Final = 30.0
"""How long to wait for another process that holds the database."""

VERIFY: Final = "run `countermark verify ledger`, and compare with a backup and a checkpoint that somebody else holds"
"""What to do about a ledger that contradicts its own proof."""

_PRAGMAS: Final = ("foreign_keys = ON", "recursive_triggers = ON", "trusted_schema = OFF", "cell_size_check = ON")


def connect(path: Path, *, writable: bool = False) -> sqlite3.Connection:
    """A connection to an existing ledger at this program's schema, with no transaction open.

    Raises `CannotTellError`: LEDGER_MISSING, UNREADABLE, LEDGER_LOCKED, or LEDGER_SCHEMA for another program's or another
    version's file.
    """
    if not exists(path):
        raise CannotTellError(
            Code.LEDGER_MISSING,
            "there is no ledger here",
            at=Location(str(path)),
            fix="make one with `countermark init`, or correct --ledger",
        )
    if not path.is_file():
        # Opening a pipe would wait for somebody who may never write to it.
        raise CannotTellError(Code.LEDGER_SCHEMA, "this is no file", at=Location(str(path)), fix="give the path of a ledger")
    with sqlite_errors(path):
        connection = open_file(path, writable=writable)
        try:
            check_revision(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def open_file(path: Path, *, writable: bool) -> sqlite3.Connection:
    """A connection with the settings that every connection to a ledger has. Writers sync each commit to the disk, and check that."""
    mode = "rw" if writable else "ro"
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=BUSY_S)
    # What is not UTF-8 must compare unequal to what was written, not stop the reader.
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    try:
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        if writable:
            _set_durable(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def use_wal(path: Path) -> None:
    """Have a database file keep a write-ahead log, as a ledger does and a copy made by `VACUUM INTO` does not."""
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()


def _set_durable(connection: sqlite3.Connection, path: Path) -> None:
    """A power cut under `synchronous = NORMAL` could take back an entry whose checkpoint has left: two roots for one size."""
    for pragma in ("synchronous = FULL", "fullfsync = ON"):
        connection.execute(f"PRAGMA {pragma}")
    (level,), (journal,) = connection.execute("PRAGMA synchronous").fetchone(), connection.execute("PRAGMA journal_mode").fetchone()
    if level != 2 or journal != "wal":
        message = f"this SQLite gives synchronous={level}, journal_mode={journal}; a ledger needs FULL (2) and wal"
        raise CannotTellError(
            Code.LEDGER_SCHEMA, message, at=Location(str(path)), fix="use a file system and an SQLite build that can do both"
        )


def check_revision(connection: sqlite3.Connection, path: Path) -> None:
    """`CannotTellError` LEDGER_SCHEMA unless the file is a ledger at exactly this program's schema revision."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'alembic_version'").fetchone():
        raise CannotTellError(Code.LEDGER_SCHEMA, "this database is no ledger", at=Location(str(path)), fix="give the path of a ledger")
    found = [row[0] for row in connection.execute("SELECT version_num FROM alembic_version")]
    if found != [SCHEMA_REVISION]:
        message = f"the ledger is at schema {', '.join(map(str, found)) or 'none'}; this version reads {SCHEMA_REVISION}"
        fix = "run `countermark db upgrade`, or use the version of countermark that wrote it"
        raise CannotTellError(Code.LEDGER_SCHEMA, message, at=Location(str(path)), fix=fix)


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into typed ones that name the file."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # our mistake, not the file's
    except sqlite3.Error as error:
        raise explain(error, path) from error
    except UnicodeDecodeError as error:  # the module cannot read SQLite's message, which repeats a part of the schema
        raise explain(sqlite3.DatabaseError("its schema is no text"), path) from error


def explain(error: BaseException, path: Path) -> CountermarkError:
    """The typed error for an error of the sqlite3 module."""
    at, text = Location(str(path)), str(error)
    if isinstance(error, sqlite3.IntegrityError):
        return TamperError(Code.LEDGER_TAMPERED, f"the ledger refuses a row that it should take: {text}", at=at, fix=VERIFY)
    if "locked" in text or "busy" in text:
        return CannotTellError(Code.LEDGER_LOCKED, f"another process holds the ledger: {text}", at=at, fix="wait for it, or end it")
    if "not a database" in text:
        return CannotTellError(Code.LEDGER_SCHEMA, "this file is not a database", at=at, fix="give the path of a ledger")
    if "no such table" in text or "no such column" in text:
        return TamperError(Code.LEDGER_TAMPERED, f"a part of the schema was removed: {text}", at=at, fix=VERIFY)
    if "unable to open" in text:
        fix = "copy its folder to where it can be written: SQLite keeps two files beside a ledger while it reads"
        return CannotTellError(Code.UNREADABLE, "the ledger cannot be opened", at=at, fix=fix)
    return CannotTellError(
        Code.UNREADABLE, f"the ledger cannot be read or written: {text}", at=at, fix="check the disk and the file's rights"
    )
