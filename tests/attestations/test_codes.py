"""The closed lists and the page that describes them say the same."""

import re
from pathlib import Path

import pytest

from countermark.attestations.codes import Code, ExitCode

PAGE = Path(__file__).parents[2] / "docs" / "codes.md"
DESIGN = Path(__file__).parents[3] / "shared" / "design" / "07-documents.md"
CODE_ROW = re.compile(r"^\| ([A-Z][A-Z_]*) \| (\S.*) \|$", re.MULTILINE)
EXIT_ROW = re.compile(r"^\| (\d+) \| ([A-Z_]+) \| (\S.*) \|$", re.MULTILINE)


def test_the_page_lists_each_code_once_in_the_order_of_the_code() -> None:
    assert [name for name, _ in CODE_ROW.findall(PAGE.read_text(encoding="utf-8"))] == [code.value for code in Code]


def test_the_page_lists_each_exit_code_once() -> None:
    rows = EXIT_ROW.findall(PAGE.read_text(encoding="utf-8"))
    assert [(int(number), name) for number, name, _ in rows] == [(code.value, code.name) for code in ExitCode]


def test_no_two_codes_have_the_same_meaning() -> None:
    meanings = [meaning for _, meaning in CODE_ROW.findall(PAGE.read_text(encoding="utf-8"))]
    assert len(set(meanings)) == len(meanings)


@pytest.mark.skipif(not DESIGN.is_file(), reason="the design pages are not beside this repository")
def test_the_codes_are_those_of_the_design() -> None:
    section = DESIGN.read_text(encoding="utf-8").partition("\n## 14 ")[2].partition("\n## ")[0]
    assert re.findall(r"\b[A-Z][A-Z_]+\b", section.partition("|---|---|")[2]) == [code.value for code in Code]


@pytest.mark.parametrize(
    ("happened", "exit_code"),
    [
        ([], ExitCode.NOTHING),
        ([ExitCode.YES, ExitCode.NOTHING], ExitCode.NOTHING),
        ([ExitCode.NO, ExitCode.NOTHING, ExitCode.YES], ExitCode.NO),
        ([ExitCode.NO, ExitCode.CANNOT_TELL], ExitCode.CANNOT_TELL),
        ([ExitCode.CANNOT_TELL, ExitCode.INVALID], ExitCode.INVALID),
        ([ExitCode.INVALID, ExitCode.TAMPERED], ExitCode.TAMPERED),
        ([ExitCode.TAMPERED, ExitCode.INTERNAL], ExitCode.INTERNAL),
        ([ExitCode.YES], ExitCode.YES),
    ],
)
def test_of_several_exit_codes_the_graver_wins(happened: list[ExitCode], exit_code: ExitCode) -> None:
    assert ExitCode.first_of(happened) is exit_code
    assert ExitCode.first_of(reversed(happened)) is exit_code
