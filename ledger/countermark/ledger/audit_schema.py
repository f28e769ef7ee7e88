"""Checks of the database as a database: its tables, its guards, and its indexes."""

from hashlib import sha256
from typing import Final

from countermark.attestations.codes import Code, Severity
from countermark.ledger.audit_report import Findings
from countermark.ledger.guards import TRIGGERS
from countermark.ledger.schema import COLUMNS, SCHEMA_REVISION, SCHEMA_SHA256
from countermark.ledger.snapshot import Snapshot

_MAX_PROBLEMS: Final = 20


def check_tables(ledger: Snapshot, findings: Findings) -> None:
    """Every table is there with its columns."""
    for table, columns in COLUMNS.items():
        found = tuple(row[1] for row in ledger.rows(f"PRAGMA table_info({table})"))
        if found != columns:
            observed = f"table {table} has the columns {found}" if found else f"table {table} is missing"
            findings.add(Code.TAMPERED, "tables", observed, required=", ".join(columns))


def check_guards(ledger: Snapshot, findings: Findings) -> None:
    """Every guard is there as it was made, and no trigger or view beside them. A guard is no evidence, so this does not block."""
    found = dict(ledger.rows("SELECT name, sql FROM sqlite_master WHERE type IN ('trigger', 'view')"))
    for name, sql in TRIGGERS.items():
        if found.get(name) != sql:
            observed = f"guard {name} was changed" if name in found else f"guard {name} is missing"
            findings.add(Code.GUARD_MISSING, "guards", observed, required=sql, severity=Severity.WARN)
    for name in sorted(found.keys() - TRIGGERS.keys()):
        findings.add(Code.GUARD_MISSING, "guards", f"{name!r} is a trigger or view that no version made", severity=Severity.WARN)


def check_schema(ledger: Snapshot, findings: Findings) -> None:
    """The tables and indexes are those of this schema, word for word; STRICT and UNIQUE among the words."""
    if schema_digest(ledger) != SCHEMA_SHA256:
        observed = "tables or indexes are not as this schema made them"
        findings.add(Code.GUARD_MISSING, "schema", observed, required=f"schema {SCHEMA_REVISION}", severity=Severity.WARN)


def schema_digest(ledger: Snapshot) -> str:
    """SHA-256 over what makes the tables and indexes, white space aside."""
    sql = (
        "SELECT sql FROM sqlite_master WHERE type IN ('table', 'index') AND sql IS NOT NULL "
        "AND name <> 'alembic_version' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
    )
    return sha256("\n".join(" ".join(str(text).split()) for (text,) in ledger.rows(sql)).encode("utf-8", "surrogateescape")).hexdigest()


def check_indexes(ledger: Snapshot, findings: Findings) -> None:
    """The pages and indexes of the file agree with its rows: an index that lacks a row hides it from every look-up."""
    for (problem,) in ledger.rows(f"PRAGMA integrity_check({_MAX_PROBLEMS})"):
        if problem != "ok":
            findings.add(Code.TAMPERED, "indexes", f"SQLite says: {problem}")
