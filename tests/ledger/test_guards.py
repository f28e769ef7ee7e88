"""The guards keep an honest program honest, and their absence is reported."""

import sqlite3

import pytest
from ledger_box import Box, raw

from countermark.attestations.codes import Code, ExitCode, Severity
from countermark.ledger.guards import TRIGGERS
from countermark.ledger.schema import COLUMNS, COMMITTED

GUARDED = [table for table in (*COMMITTED, "signature") if table != "cosignature"]


@pytest.mark.parametrize("table", GUARDED)
@pytest.mark.parametrize("statement", ["DELETE FROM {table}", "UPDATE {table} SET {column} = {column}"])
def test_committed_rows_stay(small: Box, table: str, statement: str) -> None:
    small.append(*(small.passed(number) for number in range(256)))
    connection = raw(small.path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement.format(table=table, column=COLUMNS[table][-1]))
    connection.close()


@pytest.mark.parametrize("table", [*GUARDED, "head"])
@pytest.mark.parametrize("recursive", ["ON", "OFF"])
def test_replace_does_not_walk_through(large: Box, table: str, recursive: str) -> None:
    connection = raw(large.path)
    connection.execute(f"PRAGMA recursive_triggers = {recursive}")
    before = connection.execute(f"SELECT * FROM {table}").fetchall()
    with pytest.raises(sqlite3.IntegrityError, match=r"append-only|at its end only"):
        connection.execute(f"INSERT OR REPLACE INTO {table} SELECT * FROM {table} LIMIT 1")
    assert connection.execute(f"SELECT * FROM {table}").fetchall() == before
    connection.close()


def test_replace_by_another_unique_column_does_not_walk_through(small: Box) -> None:
    connection = raw(small.path)
    for sql in (
        "INSERT OR REPLACE INTO entry SELECT (SELECT max(idx) + 1 FROM entry), leaf, leaf_hash, x'00', payload_sha256, kind, admitted_ms "
        "FROM entry WHERE idx = 3",
        "INSERT OR REPLACE INTO entry SELECT (SELECT max(idx) + 1 FROM entry), leaf, x'00', dedup, payload_sha256, kind, admitted_ms "
        "FROM entry WHERE idx = 3",
        "INSERT OR REPLACE INTO payload (rowid, sha256, size, data) VALUES (1, x'00', 0, x'')",
    ):
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(sql)
    connection.close()


def test_the_log_grows_at_its_end_only(small: Box) -> None:
    connection = raw(small.path)
    for index in ("-1", "(SELECT max(idx) + 2 FROM entry)", "NULL"):
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(f"INSERT INTO entry VALUES ({index}, x'', x'01', x'01', x'', 1, 0)")
    connection.close()


@pytest.mark.parametrize("change", ["size = size - 1", "size = size", "id = 2", "note = 'x'"])
def test_the_head_only_grows(small: Box, change: str) -> None:
    connection = raw(small.path)
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(f"UPDATE head SET {change}")
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute("DELETE FROM head")
    connection.close()


@pytest.mark.parametrize("name", sorted(TRIGGERS))
def test_a_missing_guard_is_reported(small: Box, name: str) -> None:
    connection = raw(small.path)
    connection.execute(f"DROP TRIGGER {name}")
    connection.close()
    report = small.audit()
    assert [(finding.code, finding.severity) for finding in report.findings] == [(Code.GUARD_MISSING, Severity.WARN)]
    assert name in str(report.findings[0].observed)
    assert report.exit is ExitCode.YES


def test_an_edited_or_foreign_trigger_or_schema_is_reported(small: Box) -> None:
    connection = raw(small.path)
    connection.execute("DROP TRIGGER entry_no_update")
    connection.execute("CREATE TRIGGER entry_no_update BEFORE UPDATE ON entry BEGIN SELECT 1; END")
    connection.execute("CREATE TRIGGER helper AFTER INSERT ON entry BEGIN DELETE FROM subject; END")
    connection.execute("DROP INDEX subject_digest")
    connection.close()
    findings = small.audit().findings
    assert {finding.code for finding in findings} == {Code.GUARD_MISSING}
    assert [finding.checker for finding in findings] == ["ledger.schema", "ledger.guards", "ledger.guards"]
