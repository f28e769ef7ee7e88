"""`docs/operators.md`: every command of it is run, and it names the verifier that is here."""

import hashlib
import re
from pathlib import Path

import pytest
from command_page import ROOT, CommandPage, Ran

from countermark.attestations.codes import Code

PAGE = CommandPage("operators.md")
VERIFIER = ROOT / "apps" / "countermark" / "standalone" / "verify.py"
DIGEST = re.compile(r"\b([0-9a-f]{64})\b[^\n]*verify\.py|verify\.py[^\n]*\b([0-9a-f]{64})\b")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> list[Ran]:
    return PAGE.run(tmp_path_factory.mktemp("operator"))


def test_every_command_does_what_the_page_says(ran: list[Ran]) -> None:
    assert len(PAGE.commands) > 40
    PAGE.shown.remove(next(line for line in PAGE.shown if line.endswith("verify.py")))
    PAGE.check(ran)


def test_every_command_of_the_ledger_group_is_shown() -> None:
    for word in (
        "checkpoint",
        "prove",
        "witness new",
        "witness cosign",
        "witness add",
        "witness show",
        "export",
        "backup",
        "restore",
        "reindex",
    ):
        assert any(f"countermark ledger {word}" in command for command in PAGE.commands), word


def test_the_verifier_has_the_digest_that_is_published() -> None:
    """In this page, and wherever else one is told."""
    right = hashlib.sha256(VERIFIER.read_bytes()).hexdigest()
    told = {
        name: {left or after for left, after in DIGEST.findall((ROOT / name).read_text())} for name in ("docs/operators.md", "README.md")
    }
    assert told["docs/operators.md"] == {right}
    assert told["README.md"] <= {right}


def test_links_lead_somewhere() -> None:
    for target in PAGE.links():
        assert (ROOT / "docs" / target).exists(), target


def test_incidents_have_known_names() -> None:
    named = re.findall(r"^\| ([A-Z_]+)(?: \(a witness\))? \|", PAGE.text, re.MULTILINE)
    assert len(named) == 10
    assert all(Code(name) for name in named)
    assert Path(PAGE.links()[-1]).name == "documents.md"
