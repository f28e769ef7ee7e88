"""The SQL views for those who would rather ask with SQL: shipped as a file, never created in a ledger."""

from importlib import resources


def views_sql() -> str:
    """Statements that make temporary views over a ledger file that is open for reading."""
    return (resources.files("countermark.actions.queries") / "views.sql").read_text(encoding="utf-8")
