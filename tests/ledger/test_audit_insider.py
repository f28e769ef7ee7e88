"""What an owner of the log key could do: entries that are well signed and well logged, and contradict what they are about."""

import base64
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from ledger_box import Box, raw

from countermark.attestations.codes import Code, ExitCode
from countermark.ledger import append, prepare, write
from countermark.ledger.append import LogState
from countermark.ledger.derive import Derived, derive
from countermark.ledger.leaf import NO_HASH


@pytest.fixture
def believing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes the writer go on from a head that is not quite the one it read."""

    def patch(**changes: Any) -> None:
        def read(*arguments: Any) -> LogState:
            return replace(append.read_head(*arguments), **changes)

        monkeypatch.setattr(write, "read_head", read)

    return patch


def test_an_entry_admitted_before_its_predecessor_is_a_clock_finding(small: Box, believing: Callable[..., None]) -> None:
    """Case 50."""
    believing(admitted_ms=0)
    small.clock.now -= 10_000
    (index,) = small.append(small.passed(1))
    report = small.audit()
    assert (report.exit, [(finding.code, finding.subject) for finding in report.findings]) == (
        ExitCode.CANNOT_TELL,
        [(Code.CLOCK, f"entry {index}")],
    )


def test_a_chain_of_notices_that_was_written_short_is_tampering(small: Box, believing: Callable[..., None]) -> None:
    believing(last_notice=NO_HASH)
    (index,) = small.append(small.passed(1))
    report = small.audit()
    assert report.exit is ExitCode.TAMPERED
    assert [(finding.checker, finding.subject) for finding in report.findings] == [("ledger.notices", f"entry {index}")]


def test_a_rejection_that_was_not_flagged_is_tampering(small: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*arguments: Any) -> Derived:
        return replace(derive(*arguments), notice=False)

    with monkeypatch.context() as patch:
        patch.setattr(prepare, "derive", silent)
        (index,) = small.append(small.rejection("cd" * 32))
    report = small.audit()
    assert report.exit is ExitCode.TAMPERED
    assert [(finding.checker, finding.subject) for finding in report.findings] == [("ledger.notices", f"entry {index}")]


def test_rows_that_never_followed_from_the_payload_are_tampering(small: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    def bare(*arguments: Any) -> Derived:
        return replace(derive(*arguments), subjects=())

    with monkeypatch.context() as patch:
        patch.setattr(prepare, "derive", bare)
        (index,) = small.append(small.passed(1))
    report = small.audit()
    assert report.exit is ExitCode.TAMPERED
    assert [(finding.checker, finding.subject) for finding in report.findings] == [("ledger.derived", f"entry {index}")]


def test_a_statement_admitted_twice_is_a_duplicate(small: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = raw(small.path)
    connection.execute("DROP TRIGGER entry_no_replace")
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_master SET sql = replace(sql, ', UNIQUE (dedup)', '') WHERE name = 'entry'")
    connection.execute("DELETE FROM sqlite_master WHERE name = 'sqlite_autoindex_entry_2'")
    connection.close()
    with monkeypatch.context() as patch:
        patch.setattr(write, "existing", lambda *_: {})
        places = small.append(small.passed(1)) + small.append(small.passed(1))
    findings = small.audit().findings
    assert (Code.DUPLICATE, f"entry {places[1]}") in [(finding.code, finding.subject) for finding in findings]


def test_a_cosignature_is_about_a_checkpoint_that_is_here(small: Box) -> None:
    with small.reader() as reader:
        size, root = reader.head.size, reader.head.root
    data = b"\1\2\3\4" + (1_796_000_000).to_bytes(8) + bytes(64)
    line = f"\N{EM DASH} witness.example/w {base64.b64encode(data).decode()}"
    good = (size, root, "witness.example/w", data[:4], 1_796_000_000, line)
    small.edit("INSERT INTO cosignature VALUES (?, ?, ?, ?, ?, ?)", values=good)
    assert small.audit().exit is ExitCode.YES
    for column, value in (
        ("size", 4),
        ("root", bytes(32)),
        ("name", "other"),
        ("key_id", bytes(4)),
        ("ts", 1),
        ("line", "x y !"),
        ("line", ""),
    ):
        box = small.copy(small.folder.parent / f"{column}-{value!r}"[:20].replace("/", ""))
        box.edit(f"UPDATE cosignature SET {column} = ?", values=(value,))
        assert box.audit().exit is ExitCode.TAMPERED, column
