"""What this program expects a ledger file to hold, said without SQLAlchemy so that the read path can use it.

`tables` says the same for the writer, and the newest migration makes it; tests compare the three.
"""

from typing import Final

SCHEMA_REVISION: Final = "0002"
"""The Alembic revision that this program reads and writes. A ledger at any other is refused, whether older or newer."""

SCHEMA_SHA256: Final = "d4ec98ca2839f90f91f456c83e08c000aa579add322f82115eaa47dc65bd8402"
"""Over the statements that make its tables and indexes; see `audit_schema.schema_digest`."""

APPLICATION_ID: Final = 0x434D4B31
"""`CMK1`, in the header of the SQLite file."""

PAGE_BYTES: Final = 8192
"""With 4,096 a row of a 2 KB payload wastes nearly half of its page."""

COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "ledger": ("id", "origin", "incarnation", "leaf_version", "created_ms", "log_vkey", "trust_digest"),
    "entry": ("idx", "leaf", "leaf_hash", "dedup", "payload_sha256", "kind", "admitted_ms"),
    "payload": ("sha256", "size", "data"),
    "tile": ("level", "idx", "hashes", "root"),
    "checkpoint": ("size", "note_sha256", "root", "note"),
    "cosignature": ("size", "root", "name", "key_id", "ts", "line"),
    "head": ("id", "size", "root", "frontier", "note", "admitted_ms", "notes_chain"),
    "subject": ("idx", "pos", "kind", "digest", "role", "name"),
    "signature": ("idx", "pos", "algorithm", "key_sha256", "keyid", "sig", "outcome"),
    "statement": ("idx", "predicate_type"),
    "key_event": ("idx", "event", "principal", "role", "key_sha256", "since_ms", "reason"),
    "index_digest": ("tile", "digest"),
    "quarantine": ("id", "received_ms", "sha256", "code", "reason", "subjects", "predicate_type"),
}
"""Every table with its columns, in order."""

COMMITTED: Final = ("ledger", "entry", "payload", "tile", "checkpoint", "cosignature")
"""The insert-only tables."""

DERIVED: Final = ("subject", "signature", "statement", "key_event")
"""The tables whose rows belong to one entry each and are covered by `index_digest`, in the order in which it covers them."""
