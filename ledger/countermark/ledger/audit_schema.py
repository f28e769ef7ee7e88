"""Checks of the database as a database: its tables, its guards, and its indexes."""

from typing import Final

from countermark.attestations.codes import Code, Severity
from countermark.ledger.audit_report import Findings
from countermark.ledger.guards import TRIGGERS
from countermark.ledger.schema import COLUMNS
from countermark.ledger.snapshot import Snapshot

_MAX_PROBLEMS: Final = 20


def check_tables(ledger: Snapshot, findings: Findings) -> None:
    """Every table is there with its columns."""
    for table, columns in COLUMNS.items():
        found = tuple(row[1] for row in ledger.rows(f"PRAGMA table_info({table})"))
        if found != columns:
            observed = f"table {table} has the columns {', '.join(found)}" if found else f"table {table} is missing"
            findings.add(Code.TAMPERED, "tables", observed, required=", ".join(columns))


def check_guards(ledger: Snapshot, findings: Findings) -> None:
    """Every guard is there as it was made, and no trigger or view beside them. A guard is no evidence, so this does not block."""
    found = dict(ledger.rows("SELECT name, sql FROM sqlite_master WHERE type IN ('trigger', 'view')"))
    for name, sql in TRIGGERS.items():
        if found.get(name) != sql:
            observed = f"guard {name} was changed" if name in found else f"guard {name} is missing"
            findings.add(Code.GUARD_MISSING, "guards", observed, required=sql, severity=Severity.WARN)
    for name in sorted(found.keys() - TRIGGERS.keys()):
        findings.add(Code.GUARD_MISSING, "guards", f"{name} is a trigger or view that no version made", severity=Severity.WARN)


def check_indexes(ledger: Snapshot, findings: Findings) -> None:
    """The pages and indexes of the file agree with its rows: an index that lacks a row hides it from every look-up."""
    for (problem,) in ledger.rows(f"PRAGMA integrity_check({_MAX_PROBLEMS})"):
        if problem != "ok":
            findings.add(Code.TAMPERED, "indexes", f"SQLite says: {problem}")
