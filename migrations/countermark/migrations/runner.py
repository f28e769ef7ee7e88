"""Make a ledger file and bring it to the newest schema.

All of an upgrade happens in one `BEGIN IMMEDIATE` transaction, so that it is whole or not there, and of two at once one waits for the
other and finds the work done. Only `create` makes a file: everything else opens one that exists, because SQLite would answer a
mistyped path with an empty database.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from countermark.attestations.codes import Code
from countermark.attestations.documents import exists
from countermark.attestations.errors import CannotTellError, InputError, Location
from countermark.ledger.database import sqlite_errors
from countermark.ledger.schema import APPLICATION_ID, PAGE_BYTES
from countermark.ledger.store import engine_errors, make_engine

SCRIPTS: Final = Path(__file__).parent
"""The folder of `env.py` and `versions`."""


def newest() -> str:
    """The newest revision that this installation brings."""
    return str(ScriptDirectory.from_config(_config()).get_current_head())


def create(path: Path) -> None:
    """Make an empty ledger file with the newest schema. `InputError` when something is already there; nothing is left after a failure."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644))
    except FileExistsError:
        at = Location(str(path))
        raise InputError(
            Code.LEDGER_SCHEMA, "a file is already there", at=at, fix="choose another folder; a ledger is never made anew"
        ) from None
    except OSError as error:
        at = Location(str(path))
        raise InputError(
            Code.UNREADABLE, f"the file cannot be made: {error.strerror}", at=at, fix="choose a folder that can be written"
        ) from None
    try:
        _set_header(path)
        upgrade(path)
    except BaseException:
        for name in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
            name.unlink(missing_ok=True)
        raise


def upgrade(path: Path, revision: str = "head") -> None:
    """Bring an existing ledger to `revision`, in one transaction; rows are never rewritten. Raises `CannotTellError`."""
    with _transaction(path) as connection:
        _refuse_unknown(connection, path)
        command.upgrade(_config(connection), revision)


def current(path: Path) -> str | None:
    """The revision that an existing ledger file is at; none for a database without one."""
    with _transaction(path) as connection:
        return _revision(connection)


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _refuse_unknown(connection: Connection, path: Path) -> None:
    found = _revision(connection)
    known = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
    if found is not None and found not in known:
        message = f"the ledger is at schema {found}, which this version does not know"
        raise CannotTellError(Code.LEDGER_SCHEMA, message, at=Location(str(path)), fix="install the version that made it, or a newer one")


def _set_header(path: Path) -> None:
    """What SQLite only takes before the first table is made."""
    with sqlite_errors(path):
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            for pragma in (f"page_size = {PAGE_BYTES}", f"application_id = {APPLICATION_ID}", "journal_mode = WAL"):
                connection.execute(f"PRAGMA {pragma}").fetchall()
        finally:
            connection.close()


@contextmanager
def _transaction(path: Path) -> Iterator[Connection]:
    if not exists(path):
        fix = "make one with `countermark init`, or correct --ledger"
        raise CannotTellError(Code.LEDGER_MISSING, "there is no ledger here", at=Location(str(path)), fix=fix)
    engine = make_engine(path)
    try:
        with engine_errors(path), engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()
