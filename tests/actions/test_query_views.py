"""The SQL views: the page's own statements run over a ledger that is open for reading only, and agree with what was recorded."""

import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from worlds import COMMIT, IMAGE, RESTORE, THIRD, World

from countermark.actions.importing import import_files
from countermark.actions.keyring import generate, import_key
from countermark.actions.queries.views import views_sql

PAGE = (Path(__file__).parents[2] / "docs" / "sql-views.md").read_text()
STATEMENTS = re.findall(r"^```sql\n(.+?)\n```$", PAGE, re.MULTILINE | re.DOTALL)
TABLE = dict(re.findall(r"^\| `(\w+)` \| .+? \| (.+) \|$", PAGE, re.MULTILINE))


@pytest.fixture
def db(full: World) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(f"{full.workspace.ledger.as_uri()}?mode=ro", uri=True)
    connection.executescript(views_sql())
    yield connection
    connection.close()


def rows(db: sqlite3.Connection, sql: str) -> list[tuple[Any, ...]]:
    return db.execute(sql).fetchall()


@pytest.mark.parametrize("statement", STATEMENTS)
def test_every_statement_of_the_page_runs(db: sqlite3.Connection, statement: str) -> None:
    assert rows(db, statement) or "bytes IS NULL" in statement


def test_the_page_lists_every_view_with_its_columns(db: sqlite3.Connection) -> None:
    views = {name for (name,) in rows(db, "SELECT name FROM sqlite_temp_master WHERE type = 'view'")}
    assert views == set(TABLE)
    for view, columns in TABLE.items():
        found = [column[1] for column in rows(db, f"PRAGMA temp.table_info('{view}')")]
        assert found == re.findall(r"`(\w+)`", columns)


def test_the_views_are_temporary(db: sqlite3.Connection, full: World) -> None:
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        db.execute("CREATE TABLE mine (id INTEGER)")
    plain = sqlite3.connect(full.workspace.ledger)
    try:
        assert rows(plain, "SELECT name FROM sqlite_master WHERE type = 'view'") == []
    finally:
        plain.close()


def test_they_show_what_was_recorded(db: sqlite3.Connection, full: World) -> None:
    at = full.at
    (size,) = rows(db, "SELECT count(*) FROM entries")[0]
    assert size == rows(db, "SELECT count(*) FROM entry")[0][0]
    receipt = rows(db, f"SELECT image, capability, stated_outcome, tp, dcp, context_tokens FROM receipts WHERE idx = {at['pass'].index}")
    assert receipt == [(str(IMAGE), RESTORE, "pass", 4, 1, 131072)]
    assert rows(db, f"SELECT idx, image FROM components WHERE digest = 'git-commit:{COMMIT}'") == [(at["image"].index, str(IMAGE))]
    assert rows(db, "SELECT idx, predicate_name, about FROM negatives ORDER BY idx") == [
        (at["rejection"].index, "rejection", str(THIRD)),
        (at["retraction"].index, "retraction", str(at["taken back"].payload)),
    ]
    assert rows(db, "SELECT idx, stated_verdict, image FROM decisions ORDER BY idx") == [
        (at["allow"].index, "ALLOW", str(IMAGE)),
        (at["deny"].index, "DENY", str(THIRD)),
    ]
    key = str(full.fingerprint("alice"))
    assert rows(db, f"SELECT idx, outcome FROM signatures WHERE key = '{key}'") == [(at["retraction"].index, "OK")]
    assert rows(db, "SELECT idx FROM entries WHERE payload = '" + str(at["deny"].payload) + "'") == [(at["deny"].index,)]


def test_a_notice_is_marked_as_the_leaf_says(db: sqlite3.Connection, full: World) -> None:
    marked = {index for (index,) in rows(db, "SELECT idx FROM entries WHERE notice")}
    assert {full.at[name].index for name in ("rejection", "retraction", "fail", "verdict")} <= marked
    assert full.at["pass"].index not in marked


def test_keys_and_refused_things(world: World) -> None:
    generate(world.folder / "new.pem")
    (world.folder / "bad.json").write_text(
        '{"payload": "e30=", "payloadType": "application/vnd.in-toto+json", "signatures": [{"sig": "aaaa"}]}'
    )
    import_files(world.workspace, [str(world.folder / "bad.json")], lambda done: None)
    imported = import_key(world.workspace, world.folder / "new.pub", "builder", None)
    connection = sqlite3.connect(f"{world.workspace.ledger.as_uri()}?mode=ro", uri=True)
    try:
        connection.executescript(views_sql())
        assert rows(connection, "SELECT event, principal, role, key FROM key_events") == [
            ("add", "new", "builder", str(imported.key.fingerprint))
        ]
        assert [code for (code,) in rows(connection, "SELECT code FROM refused")] == ["SIG_INVALID"]
    finally:
        connection.close()


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="SQLite's shell is not installed")
def test_with_sqlites_own_shell_as_the_page_says(full: World, tmp_path: Path) -> None:
    views = tmp_path / "views.sql"
    views.write_text(views_sql())
    command = ["sqlite3", "-readonly", "-init", str(views), str(full.workspace.ledger), "SELECT count(*) FROM statements"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip().isdecimal()) == (0, True), done.stderr
