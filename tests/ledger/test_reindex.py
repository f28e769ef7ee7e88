"""Derived tables built again: as they were, guards intact, and nothing made good that cannot be derived."""

import pytest
from ledger_box import Box, raw

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.errors import CountermarkError, TamperError
from countermark.ledger.reindex import Reindexed, reindex
from countermark.ledger.schema import COLUMNS


def again(box: Box) -> Reindexed:
    return reindex(box.path, box.anchor)


def everything(box: Box) -> list[object]:
    connection = raw(box.path)
    found: list[object] = [connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in COLUMNS]
    found.append(connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall())
    connection.close()
    return found


def test_a_sound_ledger_stays_as_it_is(large: Box) -> None:
    before = everything(large)
    done = again(large)
    assert (done.changed, done.findings, done.head.size) == (0, (), large.head.size)
    assert everything(large) == before


@pytest.mark.parametrize(
    ("sql", "changed"),
    [
        ("DELETE FROM subject", None),
        ("DELETE FROM statement", None),
        ("DELETE FROM key_event", 1),
        ("DELETE FROM subject WHERE idx = 5", 1),
        ("UPDATE subject SET digest = x'00' WHERE idx = 5", 1),
        ("UPDATE subject SET kind = 'file' WHERE idx = 3", 1),
        ("UPDATE statement SET predicate_type = 'x' WHERE idx = 5", 1),
        ("INSERT INTO subject VALUES (5, 9, 'file', x'01', 'subject', NULL)", 1),
        ("INSERT INTO statement VALUES (900, 'x')", 0),
        ("DELETE FROM signature WHERE outcome = 'OK'", None),
        ("UPDATE signature SET sig = x'00' WHERE idx = 2 AND pos = 0", 1),
        ("UPDATE signature SET outcome = 'SIG_INVALID' WHERE idx = 2 AND pos = 0", 1),
    ],
)
def test_what_can_be_derived_is_mended(small: Box, sql: str, changed: int | None) -> None:
    before = everything(small)
    small.edit(sql)
    assert small.audit().exit is ExitCode.TAMPERED
    done = again(small)
    assert (done.findings, changed in (None, done.changed)) == ((), True)
    assert everything(small) == before
    assert small.audit().findings == ()


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM signature WHERE outcome <> 'OK'",
        "UPDATE signature SET sig = x'00' WHERE outcome <> 'OK'",
        "UPDATE signature SET outcome = 'ROLE' WHERE outcome <> 'OK'",
        "UPDATE index_digest SET digest = zeroblob(32)",
        "DELETE FROM index_digest",
    ],
)
def test_what_cannot_be_derived_stays_visible(small: Box, sql: str) -> None:
    small.edit(sql)
    assert small.audit().exit is ExitCode.TAMPERED
    done = again(small)
    assert [finding.code for finding in done.findings] == [Code.TAMPERED]
    assert small.audit().exit is ExitCode.TAMPERED


def test_a_missing_guard_is_not_made_good(small: Box) -> None:
    connection = raw(small.path)
    connection.execute("DROP TRIGGER signature_no_delete")
    connection.close()
    again(small)
    assert [finding.code for finding in small.audit().findings] == [Code.GUARD_MISSING]


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE payload SET data = x'00' WHERE rowid = 4",
        "UPDATE entry SET leaf = (SELECT leaf FROM entry WHERE idx = 4) WHERE idx = 5",
        "UPDATE entry SET leaf = x'02' WHERE idx = 5",
        "DELETE FROM entry WHERE idx = 5",
    ],
)
def test_nothing_is_built_from_what_was_not_signed(small: Box, sql: str) -> None:
    small.edit(sql, "DELETE FROM subject WHERE idx = 6")
    before = everything(small)
    with pytest.raises(TamperError):
        again(small)
    assert everything(small) == before


def test_rows_of_a_withheld_payload_stay(small: Box) -> None:
    small.edit("DELETE FROM payload WHERE sha256 = (SELECT payload_sha256 FROM entry WHERE idx = 5)")
    before = everything(small)
    assert again(small).changed == 0
    assert everything(small) == before
    small.edit("DELETE FROM subject WHERE idx = 5")
    assert again(small).findings


def test_an_older_ledger_is_not_rebuilt(small: Box) -> None:
    small.append(small.passed(1))
    small.edit("DELETE FROM subject WHERE idx = 5", "UPDATE head SET size = 9")
    with pytest.raises(CountermarkError):
        again(small)
