"""`docs/first-receipt.md`: every command of it is run, in its order, and what it shows is what comes out."""

from pathlib import Path

import pytest
from command_page import ROOT, CommandPage, Ran
from pages import read, text_of

PAGE = CommandPage("first-receipt.md")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Ran]]:
    folder = tmp_path_factory.mktemp("receipt")
    return folder, PAGE.run(folder)


def test_every_command_ends_as_the_page_says(ran: tuple[Path, list[Ran]]) -> None:
    PAGE.check(ran[1])


def test_the_pages_that_it_ends_with_show_the_receipts(ran: tuple[Path, list[Ran]]) -> None:
    for name in ("decision", "report"):
        text = text_of(read(ran[0] / "box" / f"{name}.html"))
        assert "qualification-receipt: restore.correctness" in text


def test_links_lead_somewhere() -> None:
    assert PAGE.links()
    for target in PAGE.links():
        assert (ROOT / "docs" / target).exists(), target
