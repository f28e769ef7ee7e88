"""Bringing cosignatures back into the ledger: rows that are only ever added, each over a checkpoint that is there."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sqlalchemy import bindparam, insert, select

from countermark.ledger import tables
from countermark.ledger.cosignature import Cosignature
from countermark.ledger.database import connect
from countermark.ledger.lock import WriterLock, refuse_network
from countermark.ledger.note import Checkpoint
from countermark.ledger.store import Session, engine_errors, make_engine

_COSIGNATURE: Final = tables.COSIGNATURE.c
_INSERT: Final = insert(tables.COSIGNATURE)
_SELECT: Final = select(_COSIGNATURE.line).where(
    _COSIGNATURE.size == bindparam("s"),
    _COSIGNATURE.name == bindparam("n"),
    _COSIGNATURE.key_id == bindparam("k"),
    _COSIGNATURE.ts == bindparam("t"),
)


def add_cosignatures(path: Path, checkpoint: Checkpoint, found: Sequence[Cosignature]) -> int:
    """Store cosignatures that hold over a checkpoint of this ledger; how many are new. `CannotTellError` when it cannot be written."""
    refuse_network(path)
    connect(path).close()
    lock, engine = WriterLock(path), make_engine(path)
    try:
        with engine_errors(path), lock.held():
            session = Session(engine.connect())
            try:
                return _add(session, checkpoint, found)
            finally:
                session.close()
    finally:
        engine.dispose()
        lock.close()


def _add(session: Session, checkpoint: Checkpoint, found: Sequence[Cosignature]) -> int:
    session.begin()
    try:
        new = [item for item in found if not session.rows(_SELECT, checkpoint.size, item.key.name, item.key.key_id, item.time_s)]
        rows = [(checkpoint.size, checkpoint.root, item.key.name, item.key.key_id, item.time_s, str(item.line)) for item in new]
        session.insert(_INSERT, rows)
    except BaseException:
        session.rollback()
        raise
    session.commit()
    return len(new)
