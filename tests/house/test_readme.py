"""The README is true: its links lead somewhere, its commands exist, it is short, and it names no other folder's files."""

import hashlib
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from countermark.attestations.codes import ExitCode
from countermark.cli.app import app

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
LINKS = [target for target in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in target]
COMMANDS = sorted(set(re.findall(r"^\$ countermark ((?:[a-z]+ ?)+)", README, re.MULTILINE)))


@pytest.mark.parametrize("target", LINKS)
def test_links_lead_somewhere(target: str) -> None:
    assert (ROOT / target).exists()


@pytest.mark.parametrize("words", COMMANDS)
def test_commands_exist(words: str) -> None:
    """Each command's words are asked for their help; what is no command is a usage error."""
    for count in (2, 1):
        command = words.split()[:count]
        done = CliRunner().invoke(app, [*command, "--help"])
        if done.exit_code == 0 and f"countermark {' '.join(command)}" in done.output.replace("root", "countermark"):
            return
    pytest.fail(f"{words} is no command")


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 140


def test_the_exit_codes_are_those_of_the_program() -> None:
    told = {int(code) for code in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)}
    assert told == {int(code) for code in ExitCode}


def test_the_digest_of_the_stand_alone_verifier_is_told() -> None:
    file = ROOT / "apps" / "countermark" / "standalone" / "verify.py"
    assert hashlib.sha256(file.read_bytes()).hexdigest() in README


def test_the_changelog_is_open() -> None:
    assert "## Unreleased" in (ROOT / "CHANGELOG.md").read_text()


def test_nothing_names_this_machine_or_a_registry() -> None:
    """Neither a path of a build machine nor the host of a package registry may stand in what is committed."""
    import subprocess

    dot = "[.]"
    hosts = "|".join(f"{name}{dot}{end}" for name, end in (("pypi", "org"), ("files[.]pythonhosted", "org"), ("registry[.]npmjs", "org")))
    done = subprocess.run(["git", "grep", "-nIE", f"({hosts})", "--", "."], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode > 1:
        pytest.skip("this is no git checkout")
    assert done.stdout == ""
