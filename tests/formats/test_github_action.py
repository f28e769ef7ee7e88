"""The composite action and the pre-commit hooks: their own scripts and entries, run as a runner would run them."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from program import Program

ROOT = Path(__file__).parents[2]
COMMIT = "5ec6a9953ad5d39120298bbfc26e95a6fa4b1dc3"
CONTRACT = f"""\
apiVersion: countermark.dev/v1
kind: Contract
metadata: {{id: small, version: 1}}
spec:
  pins: {{engine: {{commit: "{COMMIT}"}}}}
  places:
    - {{file: pins.json, json: /commit, is: engine.commit}}
    - {{file: lock.json, json: /commit, is: engine.commit}}
  invariants: [{{id: pins-agree, check: pins.agree}}]
"""
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
HOOKS: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())


class Runner:
    """What a GitHub runner gives to the second step of the action."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.temp = folder / "temp"
        for path in (self.folder, self.temp / "countermark" / "bin"):
            path.mkdir(parents=True)
        python = self.temp / "countermark" / "bin" / "python"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
        (self.folder / "contract.yaml").write_text(CONTRACT)
        for name in ("pins.json", "lock.json"):
            (self.folder / name).write_text(json.dumps({"commit": COMMIT}))

    def drift(self) -> None:
        (self.folder / "lock.json").write_text(json.dumps({"commit": COMMIT[:-1] + "0"}))

    def __call__(self, **inputs: str) -> tuple[int, str]:
        """The exit code and the log of the step, with the inputs that are given and the defaults of the others."""
        values = {name: str(declared["default"]) for name, declared in ACTION["inputs"].items()} | inputs
        step = ACTION["runs"]["steps"][1]
        given = {name: values[text.removeprefix("${{ inputs.").removesuffix(" }}")] for name, text in step["env"].items()}
        files = {"GITHUB_OUTPUT": str(self.temp / "output"), "GITHUB_STEP_SUMMARY": str(self.temp / "summary.md")}
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.temp), "RUNNER_TEMP": str(self.temp), **files, **given}
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(shell, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    @property
    def outputs(self) -> dict[str, str]:
        lines = (self.temp / "output").read_text().splitlines()
        return {name: value for name, _, value in (line.partition("=") for line in lines)}


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def test_a_contract_that_holds(runner: Runner) -> None:
    code, log = runner()
    assert (code, runner.outputs["exit"], "::error" in log) == (0, "0", False)
    reports = Path(runner.outputs["reports"])
    assert sorted(path.name for path in reports.iterdir()) == ["verify-contract.json", "verify-contract.sarif", "verify-contract.xml"]
    assert json.loads((reports / "verify-contract.json").read_text())["verdict"] == "OK"
    assert (runner.temp / "summary.md").read_text().startswith("### OK")


def test_a_contract_that_is_broken_fails_the_job_at_its_line(runner: Runner) -> None:
    runner.drift()
    code, log = runner()
    assert (code, runner.outputs["exit"]) == (1, "1")
    assert "\n::error file=lock.json,line=1," in log
    assert "lock.json:1" in (runner.temp / "summary.md").read_text()


def test_of_several_commands_the_first_that_applies_is_the_exit_code(runner: Runner) -> None:
    runner.drift()
    (runner.folder / "README.md").write_text("Nothing.\n")
    code, _ = runner(claims="README.md", ledger="nothing.db")
    assert (code, runner.outputs["exit"]) == (4, "4")
    assert {path.stem for path in Path(runner.outputs["reports"]).iterdir()} == {"verify-contract", "verify-claims"}
    assert runner(images=f"oci-config:sha256:{'a' * 64}", ledger="nothing.db")[0] == 2, "a gate without a policy asks nothing"


def test_nothing_asked_is_no_success(runner: Runner) -> None:
    assert runner(contracts="")[0] == 5


def test_an_input_is_a_word_and_never_a_command(runner: Runner) -> None:
    code, _ = runner(contracts="$(touch forged); `touch forged`\n--help\n", against="HEAD; touch forged")
    assert code != 0
    assert not (runner.folder / "forged").exists()
    assert "${{" not in "".join(step["run"] for step in ACTION["runs"]["steps"])


def test_every_input_and_output_is_described() -> None:
    assert all(item["description"] for item in [*ACTION["inputs"].values(), *ACTION["outputs"].values()])
    used = {text for step in ACTION["runs"]["steps"] for text in step["env"].values() if text.startswith("${{ inputs.")}
    assert used == {f"${{{{ inputs.{name} }}}}" for name in ACTION["inputs"]}


def test_the_action_installs_what_is_pinned() -> None:
    install = ACTION["runs"]["steps"][0]["run"]
    assert "--require-hashes" in install
    rooms = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["dev-mode-dirs"]
    assert f"for room in {' '.join(rooms)};" in install
    assert install.count("pip install") == 1


def hook(name: str) -> list[str]:
    (found,) = [item for item in HOOKS if item["id"] == name]
    entry = str(found["entry"]).split()
    assert entry.pop(0) == "countermark"
    return [*entry, *found.get("args", [])]


def test_the_contract_hook(runner: Runner, tmp_path: Path) -> None:
    program = Program(runner.folder, tmp_path / "state")
    assert program(*hook("countermark-contract")).code == 0
    runner.drift()
    assert program(*hook("countermark-contract")).code == 1


def test_the_evidence_hook(runner: Runner, tmp_path: Path) -> None:
    example = ROOT / "examples" / "serving" / "evidence"
    program = Program(runner.folder, tmp_path / "state")
    arguments: list[str | Path] = [*hook("countermark-evidence"), "--adapter", example / "mapping.yaml", example / "readiness.json"]
    assert program(*arguments).code == 0
    assert program(*arguments[:-1], "nothing.json").code == 3


def test_the_claims_hook_needs_a_ledger(runner: Runner, tmp_path: Path) -> None:
    (runner.folder / "README.md").write_text(f"sha256:{'a' * 64} is qualified.\n")
    program = Program(runner.folder, tmp_path / "state")
    assert program(*hook("countermark-claims")).code == 4
    assert program("init", "box").code == 0
    done = program(*hook("countermark-claims"), COUNTERMARK_LEDGER="box/countermark.db")
    assert (done.code, "CLAIM_EXCEEDS" in done.out) == (1, True)


def test_the_hooks_name_what_they_take() -> None:
    assert [item["id"] for item in HOOKS] == ["countermark-contract", "countermark-evidence", "countermark-claims"]
    assert all(item["language"] == "python" and item["description"] for item in HOOKS)
