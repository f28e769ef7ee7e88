"""The first schema: committed tables, head, derived tables, quarantine, and the guards.

Written out in full. A revision says what was, so it never imports what the program is today.
"""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = (
    "CREATE TABLE ledger (id INTEGER NOT NULL CHECK (id = 1), origin TEXT NOT NULL, incarnation BLOB NOT NULL, "
    "leaf_version INTEGER NOT NULL, created_ms INTEGER NOT NULL, log_vkey TEXT NOT NULL, trust_digest TEXT NOT NULL, "
    "PRIMARY KEY (id)) STRICT",
    "CREATE TABLE entry (idx INTEGER NOT NULL, leaf BLOB NOT NULL, leaf_hash BLOB NOT NULL, dedup BLOB NOT NULL, "
    "payload_sha256 BLOB NOT NULL, kind INTEGER NOT NULL, admitted_ms INTEGER NOT NULL, "
    "PRIMARY KEY (idx), UNIQUE (leaf_hash), UNIQUE (dedup)) STRICT",
    "CREATE INDEX entry_payload ON entry (payload_sha256)",
    "CREATE TABLE payload (sha256 BLOB NOT NULL, size INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (sha256)) STRICT",
    "CREATE TABLE tile (level INTEGER NOT NULL, idx INTEGER NOT NULL, hashes BLOB NOT NULL, root BLOB NOT NULL, "
    "PRIMARY KEY (level, idx)) WITHOUT ROWID, STRICT",
    "CREATE TABLE checkpoint (size INTEGER NOT NULL, note_sha256 BLOB NOT NULL, root BLOB NOT NULL, note TEXT NOT NULL, "
    "PRIMARY KEY (size, note_sha256)) WITHOUT ROWID, STRICT",
    "CREATE TABLE cosignature (size INTEGER NOT NULL, root BLOB NOT NULL, name TEXT NOT NULL, key_id BLOB NOT NULL, ts INTEGER NOT NULL, "
    "line TEXT NOT NULL, PRIMARY KEY (size, name, key_id, ts)) WITHOUT ROWID, STRICT",
    "CREATE TABLE head (id INTEGER NOT NULL CHECK (id = 1), size INTEGER NOT NULL, root BLOB NOT NULL, frontier BLOB NOT NULL, "
    "note TEXT NOT NULL, admitted_ms INTEGER NOT NULL, notes_chain BLOB NOT NULL, PRIMARY KEY (id)) STRICT",
    "CREATE TABLE subject (idx INTEGER NOT NULL, pos INTEGER NOT NULL, kind TEXT NOT NULL, digest BLOB NOT NULL, role TEXT NOT NULL, "
    "name TEXT, PRIMARY KEY (idx, pos), FOREIGN KEY (idx) REFERENCES entry (idx)) WITHOUT ROWID, STRICT",
    "CREATE INDEX subject_digest ON subject (digest)",
    "CREATE TABLE signature (idx INTEGER NOT NULL, pos INTEGER NOT NULL, algorithm INTEGER, key_sha256 BLOB, keyid TEXT, "
    "sig BLOB NOT NULL, outcome TEXT NOT NULL, PRIMARY KEY (idx, pos), FOREIGN KEY (idx) REFERENCES entry (idx)) WITHOUT ROWID, STRICT",
    "CREATE INDEX signature_key ON signature (key_sha256)",
    "CREATE TABLE statement (idx INTEGER NOT NULL, predicate_type TEXT NOT NULL, PRIMARY KEY (idx), "
    "FOREIGN KEY (idx) REFERENCES entry (idx)) STRICT",
    "CREATE INDEX statement_type ON statement (predicate_type)",
    "CREATE TABLE key_event (idx INTEGER NOT NULL, event TEXT NOT NULL, principal TEXT NOT NULL, role TEXT NOT NULL, "
    "key_sha256 BLOB NOT NULL, since_ms INTEGER, reason TEXT, PRIMARY KEY (idx), FOREIGN KEY (idx) REFERENCES entry (idx)) STRICT",
    "CREATE INDEX key_event_key ON key_event (key_sha256)",
    "CREATE TABLE index_digest (tile INTEGER NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (tile)) STRICT",
    "CREATE TABLE quarantine (id INTEGER NOT NULL, received_ms INTEGER NOT NULL, sha256 BLOB NOT NULL, code TEXT NOT NULL, "
    "reason TEXT NOT NULL, subjects TEXT NOT NULL, PRIMARY KEY (id)) STRICT",
)

GUARDS = (
    "CREATE TRIGGER checkpoint_no_delete BEFORE DELETE ON checkpoint BEGIN SELECT RAISE(ABORT, 'checkpoint is append-only'); END",
    "CREATE TRIGGER checkpoint_no_replace BEFORE INSERT ON checkpoint WHEN EXISTS (SELECT 1 FROM checkpoint WHERE size = "
    "NEW.size AND note_sha256 = NEW.note_sha256) BEGIN SELECT RAISE(ABORT, 'checkpoint is append-only'); END",
    "CREATE TRIGGER checkpoint_no_update BEFORE UPDATE ON checkpoint BEGIN SELECT RAISE(ABORT, 'checkpoint is append-only'); END",
    "CREATE TRIGGER cosignature_no_delete BEFORE DELETE ON cosignature BEGIN SELECT RAISE(ABORT, 'cosignature is append-only'); END",
    "CREATE TRIGGER cosignature_no_replace BEFORE INSERT ON cosignature WHEN EXISTS (SELECT 1 FROM cosignature WHERE "
    "size = NEW.size AND name = NEW.name AND key_id = NEW.key_id AND ts = NEW.ts) BEGIN SELECT RAISE(ABORT, 'cosignature "
    "is append-only'); END",
    "CREATE TRIGGER cosignature_no_update BEFORE UPDATE ON cosignature BEGIN SELECT RAISE(ABORT, 'cosignature is append-only'); END",
    "CREATE TRIGGER entry_no_delete BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'entry is append-only'); END",
    "CREATE TRIGGER entry_no_replace BEFORE INSERT ON entry WHEN NEW.idx IS NOT (SELECT coalesce(max(idx) + 1, 0) FROM "
    "entry) OR EXISTS (SELECT 1 FROM entry WHERE leaf_hash = NEW.leaf_hash) OR EXISTS (SELECT 1 FROM entry WHERE dedup = "
    "NEW.dedup) BEGIN SELECT RAISE(ABORT, 'entry takes new entries at its end only'); END",
    "CREATE TRIGGER entry_no_update BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'entry is append-only'); END",
    "CREATE TRIGGER head_no_delete BEFORE DELETE ON head BEGIN SELECT RAISE(ABORT, 'head is append-only'); END",
    "CREATE TRIGGER head_no_replace BEFORE INSERT ON head WHEN EXISTS (SELECT 1 FROM head WHERE 1 = 1) BEGIN SELECT "
    "RAISE(ABORT, 'head is append-only'); END",
    "CREATE TRIGGER head_no_update BEFORE UPDATE ON head WHEN NEW.id IS NOT OLD.id OR NEW.size <= OLD.size BEGIN SELECT "
    "RAISE(ABORT, 'head only grows'); END",
    "CREATE TRIGGER ledger_no_delete BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT, 'ledger is append-only'); END",
    "CREATE TRIGGER ledger_no_replace BEFORE INSERT ON ledger WHEN EXISTS (SELECT 1 FROM ledger WHERE 1 = 1) BEGIN "
    "SELECT RAISE(ABORT, 'ledger is append-only'); END",
    "CREATE TRIGGER ledger_no_update BEFORE UPDATE ON ledger BEGIN SELECT RAISE(ABORT, 'ledger is append-only'); END",
    "CREATE TRIGGER payload_no_delete BEFORE DELETE ON payload BEGIN SELECT RAISE(ABORT, 'payload is append-only'); END",
    "CREATE TRIGGER payload_no_replace BEFORE INSERT ON payload WHEN EXISTS (SELECT 1 FROM payload WHERE sha256 = "
    "NEW.sha256 OR rowid = NEW.rowid) BEGIN SELECT RAISE(ABORT, 'payload is append-only'); END",
    "CREATE TRIGGER payload_no_update BEFORE UPDATE ON payload BEGIN SELECT RAISE(ABORT, 'payload is append-only'); END",
    "CREATE TRIGGER signature_no_delete BEFORE DELETE ON signature BEGIN SELECT RAISE(ABORT, 'signature is append-only'); END",
    "CREATE TRIGGER signature_no_replace BEFORE INSERT ON signature WHEN EXISTS (SELECT 1 FROM signature WHERE idx = "
    "NEW.idx AND pos = NEW.pos) BEGIN SELECT RAISE(ABORT, 'signature is append-only'); END",
    "CREATE TRIGGER signature_no_update BEFORE UPDATE ON signature BEGIN SELECT RAISE(ABORT, 'signature is append-only'); END",
    "CREATE TRIGGER tile_no_delete BEFORE DELETE ON tile BEGIN SELECT RAISE(ABORT, 'tile is append-only'); END",
    "CREATE TRIGGER tile_no_replace BEFORE INSERT ON tile WHEN EXISTS (SELECT 1 FROM tile WHERE level = NEW.level AND "
    "idx = NEW.idx) BEGIN SELECT RAISE(ABORT, 'tile is append-only'); END",
    "CREATE TRIGGER tile_no_update BEFORE UPDATE ON tile BEGIN SELECT RAISE(ABORT, 'tile is append-only'); END",
)


def upgrade() -> None:
    """Make the tables, then the guards."""
    for statement in (*TABLES, *GUARDS):
        op.execute(statement)
