"""Whatever is taken out of the database behind the program's back, a no does not become a yes, or `verify ledger` sees it."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import ALIAS, IMAGE, World

from countermark.actions.audit import audit_ledger
from countermark.actions.workspace import Workspace
from countermark.attestations.codes import ExitCode
from countermark.attestations.digests import Digest
from countermark.attestations.errors import CountermarkError
from countermark.ledger.submission import Receipt

from .real_ledgers import ask, forked
from .sayings import INDEX, SAYINGS, SUBJECTS, Draft, Saying, admit, signed
from .test_relabelled_records import FEW

DENIED = ("DENY", "exit 4", "exit 6")


Row = tuple[str, tuple[object, ...]]
"""A table, and the primary key of a row in it."""


class Rows:
    """The rows of a ledger, and copies of it that lack some of them."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger
        self._copy = ledger.with_name("less.db")
        with closing(sqlite3.connect(ledger)) as db:
            names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]
            columns = {name: db.execute(f'PRAGMA table_info("{name}")').fetchall() for name in names}
            self._keys = {name: [column[1] for column in columns[name] if column[5]] or ["rowid"] for name in names}
            self._of_entries = [name for name in names if "idx" in [column[1] for column in columns[name]]]
            self.all = [row for name in names for row in self._rows(db, name)]
            indices = [index for (index,) in db.execute("SELECT idx FROM entry ORDER BY idx")]
            self.entries = [list(self._of_entry(db, index)) for index in indices]

    def _rows(self, db: sqlite3.Connection, table: str, condition: str = "TRUE", *values: object) -> list[Row]:
        keys = ", ".join(self._keys[table])
        return [(table, row) for row in db.execute(f'SELECT {keys} FROM "{table}" WHERE {condition}', values)]

    def _of_entry(self, db: sqlite3.Connection, index: int) -> Iterator[Row]:
        """The rows of one entry: its own, those derived from it, and its payload."""
        for table in self._of_entries:
            yield from self._rows(db, table, "idx = ?", index)
        yield from self._rows(db, "payload", "sha256 = (SELECT payload_sha256 FROM entry WHERE idx = ?)", index)

    def without(self, rows: Sequence[Row]) -> Path:
        """A copy without these rows, made past the guards."""
        self._copy.unlink(missing_ok=True)
        with closing(sqlite3.connect(self._ledger)) as source, closing(sqlite3.connect(self._copy)) as target:
            source.backup(target)
            target.execute("PRAGMA foreign_keys = OFF")
            for (name,) in target.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                target.execute(f'DROP TRIGGER "{name}"')
            for table, values in rows:
                where = " AND ".join(f'"{key}" IS ?' for key in self._keys[table])
                assert target.execute(f'DELETE FROM "{table}" WHERE {where}', values).rowcount == 1
            target.commit()
        return self._copy


def said_by(world: World, ledger: Path, image: Digest) -> str:
    """The verdict about an image by this ledger, or the exit of what came in the place of one."""
    try:
        return str(ask(Workspace(ledger, world.workspace.trust_file), image, world.folder / "lab.yaml").verdict)
    except CountermarkError as error:
        return f"exit {int(error.exit)}"


def check_removal(world: World, rows: Rows, removed: Sequence[Row], images: Sequence[Digest]) -> None:
    """None of these images, all of which are denied, is allowed by a copy of the ledger without these rows that verifies."""
    ledger = rows.without(removed)
    allowed = [image for image in images if said_by(world, ledger, image) not in DENIED]
    if allowed:
        audited = audit_ledger(Workspace(ledger, world.workspace.trust_file), [])
        assert audited.exit is not ExitCode.YES, f"without {removed}: {allowed}"


# Each scenario denies an image of which there is a receipt that would allow it


def rejected(draft: Draft, _passed: Receipt) -> None:
    draft.reject(by="ci")


def rejected_by_another_name(draft: Draft, _passed: Receipt) -> None:
    draft.image(IMAGE, aliases=[(ALIAS, False)], verified=False)
    draft.reject(ALIAS)


def rejected_with_its_index(draft: Draft, _passed: Receipt) -> None:
    draft.image(INDEX, aliases=[(ALIAS, True)])
    draft.image(ALIAS, aliases=[(IMAGE, True)])
    draft.reject(INDEX)


def rejected_for_one_capability(draft: Draft, _passed: Receipt) -> None:
    draft.reject(capability="restore.correctness", scope={"image": str(IMAGE), "cells": [{}]})


def failed(draft: Draft, _passed: Receipt) -> None:
    draft.receipt(outcome="fail")


def retracted(draft: Draft, passed: Receipt) -> None:
    draft.retract(passed, by="lab")


def superseded(draft: Draft, passed: Receipt) -> None:
    newer = str(draft.receipt(context_tokens=262144).payload)
    draft.say("supersession", passed.payload, {"by": newer, "reason": "repeated", "raw_measurements_changed": False}, by="lab")


def its_retraction_retracted(draft: Draft, _passed: Receipt) -> None:
    draft.retract(draft.retract(draft.reject()))


def its_document_rejected(draft: Draft, _passed: Receipt) -> None:
    draft.reject(draft.documents[0].payload)


SCENARIOS = (
    *(rejected, rejected_by_another_name, rejected_with_its_index, rejected_for_one_capability, failed),
    *(retracted, superseded, its_retraction_retracted, its_document_rejected),
)


@pytest.mark.parametrize("deny", SCENARIOS, ids=lambda deny: deny.__name__)
def test_no_entry_taken_out_turns_a_no_into_a_yes(begun: World, deny: Callable[[Draft, Receipt], None]) -> None:
    """Of each entry all rows, its own row, its payload, and the rows derived from it; and each row of the head and the tree."""
    draft = Draft.of(begun)
    passed = draft.receipt()
    with forked(begun) as world:
        admit(world, draft.lines)
        assert said_by(world, world.workspace.ledger, IMAGE) == "ALLOW"
        deny(draft, passed)
        admit(world, draft.lines)
        assert said_by(world, world.workspace.ledger, IMAGE) == "DENY"
        rows = Rows(world.workspace.ledger)
        for entry in rows.entries:
            kinds = {table: [row for row in entry if row[0] == table] for table, _ in entry}
            derived = [row for row in entry if row[0] not in ("entry", "payload")]
            for removed in (entry, derived, *kinds.values()):
                check_removal(world, rows, removed, [IMAGE])
        for row in rows.all:
            if row[0] not in {table for entry in rows.entries for table, _ in entry}:
                check_removal(world, rows, [row], [IMAGE])


@settings(FEW, max_examples=6)
@given(sayings=SAYINGS, data=st.data())
def test_no_rows_taken_out_turn_a_no_into_a_yes(begun: World, sayings: list[Saying], data: st.DataObject) -> None:
    check_any_rows(begun, sayings, data)


@pytest.mark.slow
@settings(FEW, max_examples=60, derandomize=False)
@given(sayings=SAYINGS, data=st.data())
def test_no_rows_of_many_ledgers_taken_out_turn_a_no_into_a_yes(begun: World, sayings: list[Saying], data: st.DataObject) -> None:
    check_any_rows(begun, sayings, data)


def check_any_rows(begun: World, sayings: list[Saying], data: st.DataObject) -> None:
    with forked(begun) as world:
        admit(world, signed(world, sayings))
        denied = [image for image in SUBJECTS if said_by(world, world.workspace.ledger, image) == "DENY"]
        rows = Rows(world.workspace.ledger)
        for entry in rows.entries:
            check_removal(world, rows, entry, denied)
        for _ in range(3):
            removed = data.draw(st.lists(st.sampled_from(rows.all), min_size=1, max_size=8, unique=True))
            check_removal(world, rows, removed, denied)
