"""`docs/contracts.md`: every command of it is run, in its order, and what it shows is what comes out."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from program import PROGRAM

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contracts.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = [line.removeprefix("$ ") for language, text in BLOCKS if language == "console" for line in text.splitlines()]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, int, str]]:
    """Each command with its exit code and its output, run one after the other in one shell."""
    folder = tmp_path_factory.mktemp("page")
    mark = "@exit@"
    script = "\n".join(f"{command.replace('/tmp', str(folder))}\necho {mark}$?" for command in COMMANDS)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COUNTERMARK_", "GIT_", "GITHUB_"))}
    environment = kept | {"PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "XDG_STATE_HOME": str(folder / "state"), "NO_COLOR": "1"}
    done = subprocess.run(
        ["bash", "-c", script], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    parts = re.split(rf"{mark}(\d+)\n", done.stdout)
    return [(command, int(code), out) for command, out, code in zip(COMMANDS, parts[::2], parts[1::2], strict=False)]


def test_every_command_ends_as_the_page_says(log: list[tuple[str, int, str]]) -> None:
    assert len(log) == len(COMMANDS) > 20
    for command, code, out in log:
        stated = re.search(r"# exit (\d+)$", command)
        assert code == (int(stated[1]) if stated else 0), f"{command}\n{out}"


def test_what_the_page_shows_comes_out(log: list[tuple[str, int, str]]) -> None:
    printed = "\n".join(out for _, _, out in log)
    shown = [line for language, text in BLOCKS if not language for line in text.splitlines()]
    assert len(shown) > 6
    for line in shown:
        pattern = ".*".join(map(re.escape, line.split("…")))
        assert re.search(rf"^{pattern}$", printed, re.MULTILINE), line


def test_the_workflow_and_the_hooks_name_what_there_is() -> None:
    workflow, hooks = (yaml.safe_load(text) for language, text in BLOCKS if language == "yaml")
    action: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    (step,) = [item for item in workflow["jobs"]["contracts"]["steps"] if item.get("id") == "countermark"]
    assert set(step["with"]) <= set(action["inputs"])
    assert "steps.countermark.outputs.reports" in str(workflow)
    assert "reports" in action["outputs"]
    known = {item["id"] for item in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    assert {hook["id"] for hook in hooks["repos"][0]["hooks"]} <= known
    (named,) = re.findall(r"^Its inputs (.*?) add .*?; its outputs are (.*?)\.", PAGE, re.MULTILINE)
    assert [set(re.findall(r"\w+", part)) - {"and"} for part in named] == [
        set(action["inputs"]) - {"contracts", "against", "python"},
        set(action["outputs"]),
    ]


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)", PAGE):
        assert (ROOT / "docs" / target).exists(), target
