"""The schema is said three times: by the migrations, by the tables of SQLAlchemy, by the read path. They say the same."""

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import Table
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.schema import CreateIndex, CreateTable

from countermark.ledger import schema, tables
from countermark.ledger.audit_schema import schema_digest
from countermark.ledger.database import connect
from countermark.ledger.snapshot import Snapshot
from countermark.migrations import runner

TABLES = sorted(tables.METADATA.tables.values(), key=lambda table: table.name)


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("migrated") / "new.db"
    runner.create(path)
    return path


@pytest.fixture(scope="module")
def declared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database made from the tables as SQLAlchemy declares them."""
    path = tmp_path_factory.mktemp("declared") / "new.db"
    connection = sqlite3.connect(path)
    for table in tables.METADATA.sorted_tables:
        connection.execute(str(CreateTable(table).compile(dialect=sqlite.dialect())))
        for index in table.indexes:
            connection.execute(str(CreateIndex(index).compile(dialect=sqlite.dialect())))
    connection.close()
    return path


def _described(path: Path, table: str) -> dict[str, object]:
    connection = sqlite3.connect(path)
    indexes = sorted(row[1:4] for row in connection.execute(f"PRAGMA index_list({table})"))
    described: dict[str, object] = {
        "columns": connection.execute(f"PRAGMA table_info({table})").fetchall(),
        "strict": connection.execute("SELECT wr, strict FROM pragma_table_list WHERE name = ?", (table,)).fetchall(),
        "indexes": [(index, connection.execute(f"PRAGMA index_info({index[0]})").fetchall()) for index in indexes],
        "checks": [sql.count("CHECK (id = 1)") for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,))],
        "foreign": connection.execute(f"PRAGMA foreign_key_list({table})").fetchall(),
    }
    connection.close()
    return described


@pytest.mark.parametrize("table", TABLES, ids=lambda table: str(table.name))
def test_migrations_make_what_the_tables_declare(migrated: Path, declared: Path, table: Table) -> None:
    assert _described(migrated, table.name) == _described(declared, table.name)
    assert _described(migrated, table.name)["strict"] in ([(0, 1)], [(1, 1)])


def test_no_table_is_made_or_declared_alone(migrated: Path) -> None:
    connection = sqlite3.connect(migrated)
    made = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.close()
    assert made - {"alembic_version"} == set(tables.METADATA.tables) == set(schema.COLUMNS)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: str(table.name))
def test_the_read_path_names_the_same_columns(table: Table) -> None:
    assert tuple(table.c.keys()) == schema.COLUMNS[table.name]


def test_the_read_path_knows_the_digest_of_the_schema(migrated: Path) -> None:
    with Snapshot(migrated, connect(migrated)) as ledger:
        assert schema_digest(ledger) == schema.SCHEMA_SHA256


@pytest.mark.parametrize("table", TABLES, ids=lambda table: str(table.name))
def test_postgresql_takes_the_same_types(table: Table) -> None:
    ddl = str(CreateTable(table).compile(dialect=make_url("postgresql://").get_dialect()()))
    words = [line.split()[1].rstrip(",") for line in ddl.splitlines() if line.startswith("\t") and line.split()[0] in table.c]
    assert len(words) == len(table.c)
    assert set(words) <= {"BIGINT", "INTEGER", "TEXT", "BYTEA", "SERIAL"}
