"""Commands of the pages that have placeholders in them, and so are not run: the program takes each word and option of theirs."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from countermark.cli.app import app

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("keys.md", "measurements.md", "waivers.md")


def commands(page: str) -> list[list[str]]:
    """The words of every command in the fenced blocks of a page, without the program's name."""
    text = (DOCS / page).read_text(encoding="utf-8")
    lines = [line for block in re.findall(r"(?ms)^```(?:console)?\n(.*?)^```", text) for line in block.replace("\\\n", " ").splitlines()]
    words = [shlex.split(line.removeprefix("$ "), comments=True) for line in lines]
    return [found[1:] for found in words if found[:1] == ["countermark"]]


def parse(words: list[str]) -> Any:
    """The context that the program makes of the words; it fails as a command line does that is wrong, and runs nothing."""
    command: Any = get_command(app)
    context: Any = command.make_context("countermark", list(words))
    while hasattr(command, "resolve_command"):
        name, command, words = command.resolve_command(context, words)
        context = command.make_context(name, list(words), parent=context)
    return context


@pytest.mark.parametrize("page", PAGES)
def test_the_program_takes_the_commands_of_the_page(page: str) -> None:
    assert commands(page)
    for words in commands(page):
        assert parse(words), words


def test_a_word_or_an_option_that_is_none_is_noticed() -> None:
    for words in (["waiver", "renew", "w.yaml"], ["waiver", "check", "w.yaml", "--polcy", "p.yaml"]):
        with pytest.raises(Exception, match=r"(?i)no such (command|option)"):
            parse(words)
