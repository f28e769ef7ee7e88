"""`contract lock`, `contract infer` and `verify contract --against`, as commands."""

import json
from pathlib import Path

import typer
from typer.testing import CliRunner

from countermark.cli import contract, verify_contract

from .small_repository import COMMIT, CONTRACT, FILES

APP = typer.Typer()
APP.add_typer(contract.app, name="contract")
APP.command("verify")(verify_contract.contract)
FACTS = CONTRACT.replace("  invariants:\n", "  facts:\n    geometry: {file: builder/pins.json, json: /geometry}\n  invariants:\n")


def repository(folder: Path) -> Path:
    for path, data in {**FILES, "contract.yaml": FACTS.encode()}.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return folder / "contract.yaml"


def run(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(APP, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout


def test_a_lock_is_written_and_told(tmp_path: Path) -> None:
    path = repository(tmp_path)
    code, text = run("contract", "lock", path)
    assert (code, "wrote" in text, (tmp_path / "small@1.lock.json").exists()) == (0, True, True)
    code, text = run("contract", "lock", path, "-o", "json")
    assert (code, json.loads(text)["details"]["written"]) == (0, False)


def test_a_draft_is_printed_or_written_and_holds(tmp_path: Path) -> None:
    repository(tmp_path).unlink()
    code, text = run("contract", "infer", tmp_path)
    assert (code, COMMIT in text) == (0, True)
    draft = tmp_path / "drafted.yaml"
    assert run("contract", "infer", tmp_path, "--write", draft)[0] == 0
    assert draft.read_text() == text
    assert run("verify", draft)[0] == 0
    assert run("contract", "infer", tmp_path, "--write", draft)[0] == 3


def test_nothing_to_draft_and_nothing_to_lock_are_five(tmp_path: Path) -> None:
    assert run("contract", "infer", tmp_path)[0] == 5
    path = repository(tmp_path)
    path.write_text(CONTRACT)
    assert run("contract", "lock", path)[0] == 5


def test_findings_name_the_contract_by_its_path_in_the_repository(tmp_path: Path) -> None:
    path = repository(tmp_path / "part")
    path.write_text(FACTS.replace("file: builder/pins.json, json: /engine/commit", "file: builder/pin.json, json: /engine/commit"))
    code, text = run("verify", path, "--root", tmp_path / "part", "-o", "json")
    assert (code, json.loads(text)["findings"][0]["location"]["file"]) == (5, "contract.yaml")


def test_an_earlier_revision_needs_a_git_repository(tmp_path: Path) -> None:
    path = repository(tmp_path)
    assert run("verify", path, "--root", tmp_path, "--against", "HEAD")[0] == 3
    assert run("verify", path, "--root", tmp_path, "--against", "")[0] == 2
