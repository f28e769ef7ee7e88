"""The tables, for SQLAlchemy Core.

Only column types that SQLite's STRICT tables and PostgreSQL both take: BLOB, TEXT and integers. Digests are bytes, because SQLite
never finds a text equal to a blob; times are milliseconds since 1970 UTC. Every column outside `quarantine` is either covered by the
signed checkpoint or can be worked out again from what is; there is no free-standing fact to change unseen.
"""

from typing import Final

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, Index, Integer, LargeBinary, MetaData, Table, Text
from sqlalchemy.schema import SchemaItem

METADATA: Final = MetaData()


def _number() -> BigInteger:
    # BIGINT is no STRICT type, and SQLite's INTEGER holds 64 bits.
    return BigInteger().with_variant(Integer, "sqlite")


def _table(name: str, *items: SchemaItem, rowid: bool = True) -> Table:
    return Table(name, METADATA, *items, sqlite_strict=True, sqlite_with_rowid=rowid)


def _one_row(name: str, *items: SchemaItem) -> Table:
    return _table(name, Column("id", Integer, CheckConstraint("id = 1"), primary_key=True, autoincrement=False), *items)


def _index_key(*, refers: bool = True) -> Column[int]:
    links = [ForeignKey("entry.idx")] if refers else []
    return Column("idx", _number(), *links, primary_key=True, autoincrement=False)


LEDGER = _one_row(
    "ledger",
    Column("origin", Text, nullable=False),
    Column("incarnation", LargeBinary, nullable=False),
    Column("leaf_version", Integer, nullable=False),
    Column("created_ms", _number(), nullable=False),
    Column("log_vkey", Text, nullable=False),
    Column("trust_digest", Text, nullable=False),
)
"""Entry 0 said again, to be found without reading it."""

ENTRY = _table(
    "entry",
    _index_key(refers=False),
    Column("leaf", LargeBinary, nullable=False),
    Column("leaf_hash", LargeBinary, nullable=False, unique=True),
    Column("dedup", LargeBinary, nullable=False, unique=True),
    Column("payload_sha256", LargeBinary, nullable=False),
    Column("kind", Integer, nullable=False),
    Column("admitted_ms", _number(), nullable=False),
    Index("entry_payload", "payload_sha256"),
)
"""Thin, so that reading the right edge of the tree does not drag payloads along."""

PAYLOAD = _table(
    "payload",
    Column("sha256", LargeBinary, primary_key=True),
    Column("size", _number(), nullable=False),
    Column("data", LargeBinary, nullable=False),
)
"""Bytes exactly as they were signed, and sigstore bundles as they came. A row that is absent was withheld, or is missing."""

TILE = _table(
    "tile",
    Column("level", Integer, primary_key=True, autoincrement=False),
    Column("idx", _number(), primary_key=True, autoincrement=False),
    Column("hashes", LargeBinary, nullable=False),
    Column("root", LargeBinary, nullable=False),
    rowid=False,
)
"""Full tiles only, which never change."""

CHECKPOINT = _table(
    "checkpoint",
    Column("size", _number(), primary_key=True, autoincrement=False),
    Column("note_sha256", LargeBinary, primary_key=True),
    Column("root", LargeBinary, nullable=False),
    Column("note", Text, nullable=False),
    rowid=False,
)
"""Every note that was ever signed."""

COSIGNATURE = _table(
    "cosignature",
    Column("size", _number(), primary_key=True, autoincrement=False),
    Column("root", LargeBinary, nullable=False),
    Column("name", Text, primary_key=True),
    Column("key_id", LargeBinary, primary_key=True),
    Column("ts", _number(), primary_key=True, autoincrement=False),
    Column("line", Text, nullable=False),
    rowid=False,
)

HEAD = _one_row(
    "head",
    Column("size", _number(), nullable=False),
    Column("root", LargeBinary, nullable=False),
    Column("frontier", LargeBinary, nullable=False),
    Column("note", Text, nullable=False),
    Column("admitted_ms", _number(), nullable=False),
    Column("notes_chain", LargeBinary, nullable=False),
)
"""The one row that changes, by compare-and-swap. `notes_chain` runs over the notes of `checkpoint`, so that none can go missing."""

SUBJECT = _table(
    "subject",
    _index_key(),
    Column("pos", Integer, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("role", Text, nullable=False),
    Column("name", Text),
    Index("subject_digest", "digest"),
    rowid=False,
)

SIGNATURE = _table(
    "signature",
    _index_key(),
    Column("pos", Integer, primary_key=True, autoincrement=False),
    Column("algorithm", Integer),
    Column("key_sha256", LargeBinary),
    Column("keyid", Text),
    Column("sig", LargeBinary, nullable=False),
    Column("outcome", Text, nullable=False),
    Index("signature_key", "key_sha256"),
    rowid=False,
)
"""The signatures of the leaf with outcome OK, then those of the envelope that did not verify, with the reason."""

STATEMENT = _table(
    "statement",
    _index_key(),
    Column("predicate_type", Text, nullable=False),
    Index("statement_type", "predicate_type"),
)

KEY_EVENT = _table(
    "key_event",
    _index_key(),
    Column("event", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("key_sha256", LargeBinary, nullable=False),
    Column("since_ms", _number()),
    Column("reason", Text),
    Index("key_event_key", "key_sha256"),
)

INDEX_DIGEST = _table(
    "index_digest",
    Column("tile", _number(), primary_key=True, autoincrement=False),
    Column("digest", LargeBinary, nullable=False),
)
"""For each 256 entries, a hash over their derived rows, so that rows which nothing else vouches for cannot change unseen."""

QUARANTINE = _table(
    "quarantine",
    Column("id", Integer, primary_key=True),
    Column("received_ms", _number(), nullable=False),
    Column("sha256", LargeBinary, nullable=False),
    Column("code", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("subjects", Text, nullable=False),
    Column("predicate_type", Text),
)
"""What was refused, why, and what it claims. No entry stands for it, nothing vouches for it, no query of evidence reads it."""
