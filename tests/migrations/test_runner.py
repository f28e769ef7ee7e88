"""Making a ledger file and upgrading it: whole or not at all, never by accident, and never losing a guard."""

import ast
import hashlib
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from ledger_box import Box

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.errors import CannotTellError, InputError
from countermark.ledger import guards, schema
from countermark.ledger.read import LedgerReader
from countermark.migrations import runner

SECOND = """
from alembic import op
revision = "9999"
down_revision = "{newest}"
def upgrade():
    op.execute("ALTER TABLE quarantine ADD COLUMN remark TEXT")
    {more}
"""


def _objects(path: Path, kind: str) -> dict[str, str]:
    connection = sqlite3.connect(path)
    found = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE type = ? AND sql IS NOT NULL", (kind,)))
    connection.close()
    return found


@pytest.fixture
def second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a second revision, with `more` as its last statement, where the runner looks for revisions."""

    def add(more: str) -> None:
        scripts = tmp_path / "scripts"
        if not scripts.exists():
            shutil.copytree(runner.SCRIPTS, scripts, ignore=shutil.ignore_patterns("__pycache__"))
        (scripts / "versions" / "r9999_second.py").write_text(SECOND.format(newest=schema.SCHEMA_REVISION, more=more))
        monkeypatch.setattr(runner, "SCRIPTS", scripts)

    return add


def test_a_new_file_is_at_the_revision_that_the_ledger_expects(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    runner.create(path)
    assert runner.current(path) == runner.newest() == schema.SCHEMA_REVISION
    connection = sqlite3.connect(path)
    pragmas = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_size", "journal_mode", "application_id")]
    connection.close()
    assert pragmas == [schema.PAGE_BYTES, "wal", schema.APPLICATION_ID]


def test_a_new_file_has_every_guard_word_for_word(tmp_path: Path) -> None:
    runner.create(tmp_path / "new.db")
    assert _objects(tmp_path / "new.db", "trigger") == guards.TRIGGERS


def test_create_refuses_what_is_there_and_leaves_it_alone(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("not yours")
    with pytest.raises(InputError) as caught:
        runner.create(path)
    assert caught.value.exit is ExitCode.INVALID
    assert path.read_text() == "not yours"


def test_create_names_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be made"):
        runner.create(tmp_path / "missing" / "new.db")


def test_a_failed_create_leaves_nothing(tmp_path: Path, second: Callable[[str], None]) -> None:
    second('op.execute("NO SUCH STATEMENT")')
    with pytest.raises(CannotTellError):
        runner.create(tmp_path / "new.db")
    assert not list(tmp_path.glob("new.db*"))


@pytest.mark.parametrize("act", [runner.upgrade, runner.current])
def test_a_mistyped_path_makes_no_ledger(tmp_path: Path, act: Callable[[Path], object]) -> None:
    with pytest.raises(CannotTellError) as caught:
        act(tmp_path / "typo.db")
    assert (caught.value.code, list(tmp_path.iterdir())) == (Code.LEDGER_MISSING, [])


def test_an_upgrade_that_fails_halfway_changes_nothing(tmp_path: Path, second: Callable[[str], None]) -> None:
    path = tmp_path / "old.db"
    runner.create(path)
    before = _objects(path, "table")
    second('op.execute("NO SUCH STATEMENT")')
    with pytest.raises(CannotTellError):
        runner.upgrade(path)
    assert _objects(path, "table") == before
    assert runner.current(path) == schema.SCHEMA_REVISION


def test_an_upgrade_keeps_guards_and_rows(small: Box, second: Callable[[str], None]) -> None:
    def rows() -> str:
        connection = sqlite3.connect(small.path)
        digest = hashlib.sha256()
        for table in schema.COMMITTED:
            digest.update(repr(connection.execute(f"SELECT * FROM {table}").fetchall()).encode())
        connection.close()
        return digest.hexdigest()

    before = rows()
    second("pass")
    runner.upgrade(small.path)
    assert runner.current(small.path) == "9999"
    assert rows() == before
    assert _objects(small.path, "trigger") == guards.TRIGGERS


def test_upgrades_at_the_same_time_all_succeed(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    path.touch()
    runner._set_header(path)
    program = "import sys; from pathlib import Path; from countermark.migrations import runner; runner.upgrade(Path(sys.argv[1]))"
    running = [subprocess.Popen([sys.executable, "-c", program, str(path)]) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert _objects(path, "trigger") == guards.TRIGGERS


def test_another_schema_is_refused_by_reader_and_runner(small: Box) -> None:
    for revision in ("ffffffffffff", "0000"):
        connection = sqlite3.connect(small.path)
        connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
        connection.commit()
        connection.close()
        with pytest.raises(CannotTellError) as read:
            LedgerReader.open(small.path, anchor=small.anchor)
        with pytest.raises(CannotTellError) as upgraded:
            runner.upgrade(small.path)
        assert read.value.code is upgraded.value.code is Code.LEDGER_SCHEMA


def test_no_revision_imports_the_program_of_today() -> None:
    for file in (runner.SCRIPTS / "versions").glob("*.py"):
        names = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)]
        modules = [alias.name for node in names for alias in node.names] + [getattr(node, "module", None) or "" for node in names]
        assert not [name for name in modules if name.startswith("countermark")], file.name
