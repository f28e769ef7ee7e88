"""`docs/contracts.md`: every command of it is run, in its order, and what it shows is what comes out."""

import re
from typing import Any

import pytest
import yaml
from command_page import ROOT, CommandPage, Ran

PAGE = CommandPage("contracts.md")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> list[Ran]:
    return PAGE.run(tmp_path_factory.mktemp("page"))


def test_every_command_does_what_the_page_says(ran: list[Ran]) -> None:
    assert len(PAGE.commands) > 20
    assert len(PAGE.shown) > 6
    PAGE.check(ran)


def test_the_workflow_and_the_hooks_name_what_there_is() -> None:
    workflow, hooks = (yaml.safe_load(text) for language, text in PAGE.blocks if language == "yaml")
    action: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    (step,) = [item for item in workflow["jobs"]["contracts"]["steps"] if item.get("id") == "countermark"]
    assert set(step["with"]) <= set(action["inputs"])
    assert "steps.countermark.outputs.reports" in str(workflow)
    assert "reports" in action["outputs"]
    known = {item["id"] for item in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    assert {hook["id"] for hook in hooks["repos"][0]["hooks"]} <= known
    (named,) = re.findall(r"^Its inputs (.*?) add .*?; its outputs are (.*?)\.", PAGE.text, re.MULTILINE)
    assert [set(re.findall(r"\w+", part)) - {"and"} for part in named] == [
        set(action["inputs"]) - {"contracts", "against", "python"},
        set(action["outputs"]),
    ]


def test_links_lead_somewhere() -> None:
    for target in PAGE.links():
        assert (ROOT / "docs" / target).exists(), target
