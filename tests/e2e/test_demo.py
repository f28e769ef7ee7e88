"""The demo: what the README's first command runs."""

from pathlib import Path

import pytest
from pages import read, text_of
from program import Done, Program

from countermark.actions.demo import published


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, Program]:
    folder = tmp_path_factory.mktemp("demo")
    program = Program(folder, folder / "state")
    return program("demo", "demo"), program


def test_the_story_comes_out_as_told(told: tuple[Done, Program]) -> None:
    done, _ = told
    assert (done.code, done.err) == (0, ""), done.out
    for word in ("ALLOW", "DENY", "CONTRACT_VIOLATED", "SUBJECT_UNKNOWN", "IMAGE_REJECTED", "TAMPERED"):
        assert word in done.out


def test_the_demo_writes_a_page_and_names_it(told: tuple[Done, Program]) -> None:
    done, program = told
    assert "a page of all this, for a browser: demo/report.html" in done.out
    text = text_of(read(program.folder / "demo" / "report.html"))
    for word in ("qualified", "research-only", "rejected", "restore-run"):
        assert word in text, word


def test_the_demo_leaves_a_ledger_that_verifies(told: tuple[Done, Program]) -> None:
    _, program = told
    assert program("verify", "ledger", "--ledger", "demo/countermark.db").code == 0
    assert program("verify", "ledger", "--ledger", "demo/tampered.db", "--trust", "demo/trust.yaml").code == 6
    assert len(list((program.folder / "demo").rglob("countermark.db"))) == 1


@pytest.mark.parametrize("row", published.ROWS, ids=lambda row: f"{row.image[-8:]} {row.require} {row.policy}")
def test_each_row_from_outside(told: tuple[Done, Program], row: published.Row) -> None:
    _, program = told
    policy = f"demo/policies/{row.policy}.yaml"
    done = program("gate", row.image, "--require", row.require, "--policy", policy, "--ledger", "demo/countermark.db", "-o", "json")
    (decision,) = done.json["decisions"]
    assert (decision["core"]["verdict"], done.code) == (row.verdict, 0 if row.verdict == "ALLOW" else 1)
    assert decision["core"]["requirements"][0]["code"] in row.codes


def test_a_decision_is_the_same_on_a_copy_of_the_ledger(told: tuple[Done, Program], tmp_path: Path) -> None:
    import shutil

    _, program = told
    shutil.copytree(program.folder / "demo", tmp_path / "copy")
    row = published.ROWS[1]
    arguments = ["gate", row.image, "--require", row.require, "--effective-time", "2026-12-01T00:00:00Z", "-o", "json"]
    cores = []
    for folder in (program.folder / "demo", tmp_path / "copy"):
        done = program(*arguments, "--policy", folder / "policies" / f"{row.policy}.yaml", "--ledger", folder / "countermark.db")
        cores.append(done.json["decisions"][0]["core"])
    assert cores[0] == cores[1]


def test_a_folder_that_is_not_empty_is_left_alone(program: Program) -> None:
    (program.folder / "full").mkdir()
    (program.folder / "full" / "mine").write_text("mine")
    assert program("demo", "full").code == 3
    assert [path.name for path in (program.folder / "full").iterdir()] == ["mine"]


def test_json_is_clean(program: Program) -> None:
    done = program("demo", "fresh", "-o", "json")
    assert (done.code, done.json["verdict"], done.json["details"]["surprises"]) == (0, "OK", [])
