"""Triggers that keep an honest program from rewriting what was committed.

They are a guard rail and no evidence: whoever can open the file can drop them, which `verify ledger` reports as GUARD_MISSING. An
`INSERT OR REPLACE` deletes rows without firing DELETE triggers unless the connection asked for recursive triggers, hence the guards
on INSERT. The text here is compared letter by letter with what the database says it has.
"""

from collections.abc import Iterator
from typing import Final

_KEYS: Final = {
    "ledger": "1 = 1",
    "payload": "sha256 = NEW.sha256 OR rowid = NEW.rowid",
    "tile": "level = NEW.level AND idx = NEW.idx",
    "checkpoint": "size = NEW.size AND note_sha256 = NEW.note_sha256",
    "cosignature": "size = NEW.size AND name = NEW.name AND key_id = NEW.key_id AND ts = NEW.ts",
    "signature": "idx = NEW.idx AND pos = NEW.pos",
    "head": "1 = 1",
}
"""What makes a new row collide with one that is there. `signature` is guarded like committed rows: signatures that did not verify
stand nowhere else."""

_FIXED: Final = {
    "entry_no_replace": (
        "CREATE TRIGGER entry_no_replace BEFORE INSERT ON entry "
        "WHEN NEW.idx IS NOT (SELECT coalesce(max(idx) + 1, 0) FROM entry) "
        "OR EXISTS (SELECT 1 FROM entry WHERE leaf_hash = NEW.leaf_hash) OR EXISTS (SELECT 1 FROM entry WHERE dedup = NEW.dedup) "
        "BEGIN SELECT RAISE(ABORT, 'entry takes new entries at its end only'); END"
    ),
    "entry_no_update": "CREATE TRIGGER entry_no_update BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'entry is append-only'); END",
    "entry_no_delete": "CREATE TRIGGER entry_no_delete BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'entry is append-only'); END",
    "head_no_update": (
        "CREATE TRIGGER head_no_update BEFORE UPDATE ON head WHEN NEW.id IS NOT OLD.id OR NEW.size <= OLD.size "
        "BEGIN SELECT RAISE(ABORT, 'head only grows'); END"
    ),
}


def _triggers() -> Iterator[tuple[str, str]]:
    yield from _FIXED.items()
    for table, collides in _KEYS.items():
        yield (
            f"{table}_no_replace",
            f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} WHEN EXISTS (SELECT 1 FROM {table} WHERE {collides}) "  # noqa: S608  # names from the table above
            f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END",
        )
        for event in ("UPDATE", "DELETE"):
            name = f"{table}_no_{event.lower()}"
            if name not in _FIXED:
                yield name, f"CREATE TRIGGER {name} BEFORE {event} ON {table} BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"


TRIGGERS: Final = dict(sorted(_triggers()))
"""Name → the statement that makes the trigger, as SQLite keeps it."""
