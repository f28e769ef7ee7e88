"""GitHub's log: each finding one workflow command, whatever a record says; and the page of a step."""

import re
from dataclasses import replace

from hypothesis import given, settings

from countermark.attestations.codes import ExitCode, Severity
from countermark.attestations.errors import Location
from countermark.cli.formats import github, render
from countermark.cli.formats.wording import sentence, title
from countermark.cli.report import Report

from .some_reports import DRIFTED, FAILED, GOOD, REPORTS

COMMAND = re.compile(r"::(error|warning|notice)(?: (.*?))?::(.*)")


def read(line: str) -> tuple[str, dict[str, str], str]:
    """A workflow command as the runner reads it: properties split at commas and the first equals sign, then unescaped."""
    match = COMMAND.fullmatch(line)
    assert match, line
    level, properties, message = match.groups()
    pairs = (item.partition("=") for item in (properties or "").split(",") if item)
    return level, {name: unescape(value.replace("%3A", ":").replace("%2C", ",")) for name, _, value in pairs}, unescape(message)


def unescape(text: str) -> str:
    return text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")


def commands(report: Report) -> list[str]:
    return [line for line in re.split(r"[\r\n]", render("github", "verify contract", report)) if line.lstrip().startswith("::")]


def test_a_finding_is_an_annotation_of_its_line() -> None:
    level, properties, message = read(commands(FAILED)[0])
    assert level == "error"
    assert properties == {"file": "profiles/dflash.yaml", "line": "4", "col": "3", "title": "pins.agree [CONTRACT_VIOLATED]"}
    assert "8 of 9 places" in message
    assert DRIFTED.fix in message


def test_commas_colons_and_newlines_survive() -> None:
    hard = replace(DRIFTED, location=Location("a,b:c%0A\n::error::d.md", 2), observed="x\n::error::forged")
    (line,) = commands(Report(ExitCode.NO, findings=(hard,)))
    _, properties, message = read(line)
    assert properties["file"] == "a,b:c%0A\n::error::d.md"
    assert properties["line"] == "2"
    assert "\n" not in message


@settings(deadline=None)
@given(REPORTS)
def test_no_record_forges_a_command(report: Report) -> None:
    lines = commands(report)
    assert len(lines) == len(report.told)
    wanted = {(title(finding), sentence(finding)) for finding in report.told}
    assert {(read(line)[1]["title"], read(line)[2]) for line in lines} <= {(text, said) for text, said in wanted}


def test_what_is_in_no_file_names_none() -> None:
    report = Report(ExitCode.NO, findings=(replace(DRIFTED, location=Location("--require restore")),))
    assert set(read(commands(report)[0])[1]) == {"title"}


def test_the_tenth_of_a_level_tells_how_many_more() -> None:
    many = tuple(replace(DRIFTED, location=Location("a.md", line)) for line in range(1, 13))
    few = tuple(replace(finding, severity=Severity.WARN) for finding in many[:10])
    lines = [read(line) for line in commands(Report(ExitCode.NO, findings=(*many, *few)))]
    errors = [line for line in lines if line[0] == "error"]
    assert (len(errors), len(lines) - len(errors)) == (10, 10)
    assert errors[-1] == ("error", {}, "3 more, in the report")


def test_a_yes_is_the_verdict_alone() -> None:
    assert render("github", "verify contract", GOOD) == "OK  verify contract · evaluated 1 of 1 · exit 0"


def test_a_page_is_cut_at_a_line_and_says_so() -> None:
    many = tuple(replace(DRIFTED, observed="x" * 300, location=Location(f"file-{n}.md", 1)) for n in range(2000))
    page = github.step_summary("verify contract", Report(ExitCode.NO, findings=many))
    assert len(page.encode()) < 1 << 20
    assert "cut here" in page
    assert github.step_summary("verify contract", FAILED).startswith("### FAIL")
