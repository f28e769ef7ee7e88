"""Building the derived tables again from the leaves and payloads that the log signed.

Rows that follow from a payload are made anew. Two sorts do not: signatures that did not verify, and everything of an entry whose payload
was withheld; these stay as they are, and the index digest vouches for them. So a digest is only written anew where the rows before agreed
with it. Where they did not, and do not after either, it stays, and the audit goes on saying so: building again must not make anything good
that was altered.
"""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from sqlalchemy import bindparam, delete, select, text

from countermark.attestations.codes import Code
from countermark.attestations.errors import CountermarkError
from countermark.attestations.findings import Finding
from countermark.ledger import tables
from countermark.ledger.audit_report import Findings
from countermark.ledger.chains import EMPTY, Row, extend_rows
from countermark.ledger.database import connect
from countermark.ledger.derive import derive
from countermark.ledger.guards import TRIGGERS
from countermark.ledger.leaf import Leaf
from countermark.ledger.lock import WriterLock, refuse_network
from countermark.ledger.merkle import Frontier, leaf_hash
from countermark.ledger.prepare import derived_rows
from countermark.ledger.read import Head, LedgerReader
from countermark.ledger.schema import COLUMNS, DERIVED
from countermark.ledger.store import Session, engine_errors, make_engine
from countermark.ledger.tiles import TILE_WIDTH

_TABLES: Final = {name: tables.METADATA.tables[name] for name in DERIVED}
_ENTRIES: Final = (
    select(tables.ENTRY.c.idx, tables.ENTRY.c.leaf, tables.PAYLOAD.c.data)
    .select_from(tables.ENTRY.outerjoin(tables.PAYLOAD, tables.PAYLOAD.c.sha256 == tables.ENTRY.c.payload_sha256))
    .where(tables.ENTRY.c.idx.between(bindparam("first"), bindparam("last")))
    .order_by(tables.ENTRY.c.idx)
)
_ROWS: Final = {
    name: select(*(table.c[column] for column in COLUMNS[name]))
    .where(table.c.idx.between(bindparam("first"), bindparam("last")))
    .order_by(table.c.idx, *([table.c.pos] if "pos" in table.c else []))
    for name, table in _TABLES.items()
}
_DELETE: Final = {name: delete(table).where(table.c.idx == bindparam("i")) for name, table in _TABLES.items()}
_DELETE_BEYOND: Final = {name: delete(table).where(table.c.idx >= bindparam("i")) for name, table in _TABLES.items()}
_INSERT: Final = {name: table.insert() for name, table in _TABLES.items()}
_DIGEST: Final = select(tables.INDEX_DIGEST.c.digest).where(tables.INDEX_DIGEST.c.tile == bindparam("t"))
_DELETE_DIGEST: Final = delete(tables.INDEX_DIGEST).where(tables.INDEX_DIGEST.c.tile == bindparam("t"))
_DELETE_DIGESTS: Final = delete(tables.INDEX_DIGEST).where(tables.INDEX_DIGEST.c.tile >= bindparam("t"))
_INSERT_DIGEST: Final = tables.INDEX_DIGEST.insert()
_GUARDS: Final = tuple(name for name in TRIGGERS if name.startswith("signature_"))
_GUARD_TEXTS: Final = (
    select(text("name"), text("sql"))
    .select_from(text("sqlite_master"))
    .where(text("type = 'trigger' AND name LIKE 'signature\\_%' ESCAPE '\\'"))
)

EntryTables = list[list[Row]]
"""For each table of `DERIVED`, the rows of one entry without its index."""


@dataclass(frozen=True, slots=True)
class Reindexed:
    """The head over which the tables were built, how many entries had other rows before, and what nothing vouches for."""

    head: Head
    changed: int
    findings: tuple[Finding, ...]


def reindex(path: Path, anchor: Path | None = None) -> Reindexed:
    """Build the derived tables again, in one transaction. `TamperError` when the leaves are not those that were signed, and then
    nothing is changed; `CannotTellError` when the ledger cannot be written."""
    refuse_network(path)
    connect(path).close()
    lock, engine = WriterLock(path), make_engine(path)
    try:
        with lock.held(), LedgerReader.open(path, anchor=anchor) as reader, engine_errors(path):
            session = Session(engine.connect())
            try:
                return _Reindex(session, reader).run()
            finally:
                session.close()
    finally:
        engine.dispose()
        lock.close()


class _Reindex:
    def __init__(self, session: Session, reader: LedgerReader) -> None:
        self._session = session
        self._reader = reader
        self._head = reader.head
        self._findings = Findings()
        self._changed = 0

    def run(self) -> Reindexed:
        self._session.begin()
        try:
            self._guarded()
        except BaseException:
            self._session.rollback()
            raise
        self._session.commit()
        return Reindexed(self._head, self._changed, self._findings.result())

    def _guarded(self) -> None:
        """The work, with the guards of table `signature` out of the way and put back as they were, within the transaction."""
        guards = self._session.rows(_GUARD_TEXTS)
        for name, _ in guards:
            if name in _GUARDS:
                self._session.change(text(f"DROP TRIGGER {name}"))
        self._rebuild()
        for name, sql in guards:
            if name in _GUARDS:
                self._session.change(text(sql.replace(":", "\\:")))

    def _rebuild(self) -> None:
        frontier = Frontier()
        for first in range(0, self._head.size, TILE_WIDTH):
            last = min(first + TILE_WIDTH, self._head.size) - 1
            frontier = self._tile(frontier, first, last)
        if frontier.root() != self._head.root:
            raise self._reader.tampered("the leaves do not hash to the root that was signed")
        for statement in _DELETE_BEYOND.values():
            self._session.change(statement, self._head.size)
        self._session.change(_DELETE_DIGESTS, (self._head.size - 1) // TILE_WIDTH + 1)

    def _tile(self, frontier: Frontier, first: int, last: int) -> Frontier:
        """256 entries and the digest over their rows."""
        stored = {name: self._stored(name, first, last) for name in DERIVED}
        before = after = EMPTY
        expected = first
        for index, encoded, data in self._session.rows(_ENTRIES, first, last):
            if index != expected:
                break
            expected += 1
            frontier = frontier.push(leaf_hash(encoded))
            old: EntryTables = [stored[name].get(index, []) for name in DERIVED]
            new = self._entry(index, encoded, data, old)
            before, after = extend_rows(before, old), extend_rows(after, new)
            if new != old:
                self._replace(index, new)
        if expected != last + 1:
            raise self._reader.tampered(f"entry {expected} is missing")
        self._digest(first // TILE_WIDTH, first, last, before, after)
        return frontier

    def _stored(self, name: str, first: int, last: int) -> dict[int, list[Row]]:
        found: dict[int, list[Row]] = {}
        for index, *row in self._session.rows(_ROWS[name], first, last):
            found.setdefault(index, []).append(tuple(row))
        return found

    def _entry(self, index: int, encoded: bytes, data: object, old: EntryTables) -> EntryTables:
        """The rows of an entry: those that follow from its payload, and behind the signatures of the leaf those that did not verify."""
        try:
            leaf = Leaf.decode(encoded)
        except CountermarkError as error:
            raise self._reader.tampered(f"entry {index} cannot be read: {error.message}") from None
        if data is None:
            return old
        if not isinstance(data, bytes) or sha256(data).digest() != leaf.payload_sha256:
            data = self._reader.payload(leaf.payload_sha256)
        subject, signature, statement, key_event = derived_rows(derive(leaf.kind, leaf.payload_type, data), leaf.signatures)
        unverified = [row for row in old[DERIVED.index("signature")] if _position(row) >= len(signature) and row[-1] != str(Code.OK)]
        return [subject, [*signature, *unverified], statement, key_event]

    def _replace(self, index: int, new: EntryTables) -> None:
        self._changed += 1
        for name, rows in zip(DERIVED, new, strict=True):
            self._session.change(_DELETE[name], index)
            self._session.insert(_INSERT[name], [(index, *row) for row in rows])

    def _digest(self, tile: int, first: int, last: int, before: bytes, after: bytes) -> None:
        found = self._session.rows(_DIGEST, tile)
        stored = found[0][0] if found else None
        if stored in (before, after):
            self._session.change(_DELETE_DIGEST, tile)
            self._session.change(_INSERT_DIGEST, tile, after)
            return
        observed = "rows that cannot be derived, or their index digest, are not those that were written"
        self._findings.extend(Code.TAMPERED, "index-digest", observed, range(first, last + 1))


def _position(row: Row) -> int:
    """The place of a signature in its entry; what is no number stands behind everything."""
    return row[0] if isinstance(row[0], int) else TILE_WIDTH
