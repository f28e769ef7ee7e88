"""Markdown: a table whose cells are text, whatever a record says."""

import re
from dataclasses import replace

from hypothesis import given, settings

from countermark.attestations.codes import ExitCode
from countermark.cli.formats import render
from countermark.cli.report import Report

from .some_reports import DRIFTED, FAILED, GOOD, PINNED, REPORTS

BARE_PIPE = re.compile(r"(?<!\\)(?:\\\\)*\|")


def test_the_table_says_where_what_and_how_to_mend_it() -> None:
    text = render("markdown", "verify contract", FAILED)
    assert text.startswith("### FAIL  verify contract · evaluated 2 of 2 · exit 1\n")
    (row,) = [line for line in text.splitlines() if line.startswith("| ✗")]
    for part in ("profiles/dflash.yaml:4 /source/commit", "pins.agree", PINNED, "8 of 9 places", DRIFTED.fix):
        assert part in row
    assert "1 of 2 hold" in text


@settings(deadline=None)
@given(REPORTS)
def test_every_row_has_the_columns_of_its_table(report: Report) -> None:
    lines = render("markdown", "verify contract", report).split("\n")
    tables = [line for line in lines if line.startswith("|")]
    assert all(len(BARE_PIPE.findall(line)) in (7, 4) for line in tables)
    assert len(tables) == len(report.told) + len(report.checks) + 2 * bool(report.told) + 2 * bool(report.checks)


def test_no_record_writes_markup() -> None:
    evil = replace(DRIFTED, observed="<img src=x> [a](b) `c` | d\n# e")
    text = render("markdown", "verify contract", Report(ExitCode.NO, findings=(evil,)))
    assert not re.search(r"(?<!\\)[<\[`]", text)
    assert "\n# e" not in text


def test_a_yes_has_no_table_of_findings() -> None:
    text = render("markdown", "verify contract", GOOD)
    assert "fix" not in text
    assert "1 of 1 hold" in text
