"""The commands as they are typed: every one in the auditors' page, the shape of their JSON, and their last line."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result
from worlds import COMMIT, IMAGE, UNKNOWN, World

from countermark.actions.workspace import open_reader
from countermark.cli import query
from countermark.cli.app import app

PAGE = Path(__file__).parents[2] / "docs" / "auditors.md"
COMMANDS = re.findall(r"^\$ countermark (.+)$", PAGE.read_text(), re.MULTILINE)
LISTINGS = [
    "query capability restore.correctness",
    f"query receipts {IMAGE}",
    f"query history {IMAGE}",
    f"query impact --commit {COMMIT}",
    "query decisions",
    "query signers",
    "query signers --conflicts",
    "query expiring --within 30d --policy serving.yaml",
    f"diff {IMAGE} {UNKNOWN}",
]


@pytest.fixture
def folder(full: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of the ledger as the current one, with the checkpoint and the release notes that the page speaks of."""
    monkeypatch.chdir(full.folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with open_reader(full.workspace) as reader:
        (full.folder / "held.note").write_text(reader.head.note)
    (full.folder / "RELEASE-NOTES.md").write_text(f"The image {IMAGE} is research-only.\n")
    return full.folder


def run(command: str) -> Result:
    return CliRunner().invoke(app, shlex.split(command))


def answer(command: str) -> dict[str, Any]:
    done = run(f"{command} -o json")
    assert done.exit_code == 0, done.output
    value: dict[str, Any] = json.loads(done.stdout)
    return value


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_page_answers(folder: Path, full: World, command: str) -> None:
    """Two words of the page stand for what differs from run to run."""
    done = run(command.replace("DECISION", str(full.at["allow"].payload)).replace("THEN", "2999-01-01T00:00:00Z"))
    assert done.exit_code == 0, done.output
    assert done.stdout.strip()


def test_the_page_has_a_command_for_every_question_of_this_program() -> None:
    asked = {command.split()[1] for command in COMMANDS if command.startswith("query ")}
    assert asked == {command.name for command in query.app.registered_commands} - {"views"}
    assert any(command.startswith("diff ") for command in COMMANDS)


@pytest.mark.parametrize("command", LISTINGS)
def test_a_listing_ends_with_head_and_effective_time(folder: Path, full: World, command: str) -> None:
    at = "" if command.startswith(("query history", "query signers")) else " --effective-time 2024-06-11T00:00:00Z"
    last = run(command + at).stdout.rstrip().splitlines()[-1]
    with open_reader(full.workspace) as reader:
        head = reader.head
    assert f"ledger {head.origin} size {head.size} root {head.root.hex()}" in last
    assert last.endswith(" · exit 0")
    assert not at or " · at 2024-06-11T00:00:00Z · " in last


@pytest.mark.parametrize("command", LISTINGS)
def test_the_json_of_a_listing(folder: Path, command: str) -> None:
    value = answer(command)
    assert (value["verdict"], value["exit"], value["findings"]) == ("OK", 0, [])
    assert {"origin", "size", "root", "notices", "protected_to"} == set(value["ledger"])
    assert value["effective_time"]
    assert {row["bearing"] for row in value["rows"]} <= {"found", "negative", "not-found"}
    assert sum(value["counts"].values()) == value["evaluated"] == value["of"]


def test_negative_and_not_found_have_their_own_headings(folder: Path) -> None:
    lines = run("query capability restore.correctness --policy serving.yaml").stdout.splitlines()
    assert [line for line in lines if line in ("found:", "negative:", "not found:")] == ["found:", "negative:", "not found:"]


def test_no_rows_is_an_answer(folder: Path) -> None:
    value = answer(f"query history {UNKNOWN}")
    assert (value["rows"], value["not_found"]) == ([], [f"{UNKNOWN}: no entry names it [SUBJECT_UNKNOWN]"])


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("query impact", 2),
        (f"query impact --commit {COMMIT} --checker a@1", 2),
        ("query capability restore.correctness --status good", 2),
        ("query expiring --within soon --policy serving.yaml", 2),
        ("query decisions --since yesterday", 3),
        ("query decisions --since 2024-06-01", 3),
        ("query receipts example/image:latest", 3),
        ("query capability restore.corectness", 3),
        ("query receipts --ledger nowhere.db oci-config:sha256:" + "a1" * 32, 4),
        ("query signers --trust nowhere.yaml", 4),
    ],
)
def test_what_is_no_question_has_its_exit_code(folder: Path, command: str, code: int) -> None:
    done = run(command)
    assert done.exit_code == code, done.output


def test_signed_text_cannot_write_on_the_terminal(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.reject(reason="\x1b[2Jnothing to see\nOK")
    monkeypatch.chdir(world.folder)
    done = run(f"query receipts {IMAGE}")
    assert "\x1b" not in done.stdout
    assert "\\x1b[2Jnothing to see\\nOK" in done.stdout
