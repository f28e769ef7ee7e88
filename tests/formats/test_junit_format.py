"""JUnit: one case a check, read by our own recorder of test results; what was not evaluated is never green."""

from dataclasses import replace
from xml.etree import ElementTree

from hypothesis import given, settings

from countermark.attestations.codes import Code, ExitCode, Outcome, Severity
from countermark.attestations.errors import Location, NothingError
from countermark.attestations.findings import Finding
from countermark.cli.formats import render
from countermark.cli.report import Check, Report
from countermark.recorders.junit import Case, read_report

from .some_reports import DRIFTED, FAILED, GOOD, HELD, REPORTS


def cases(report: Report) -> list[Case]:
    return read_report(render("junit", "verify contract", report).encode(), "report.xml")


def test_a_check_is_a_case() -> None:
    found = cases(FAILED)
    assert [(case.name, bool(case.failed)) for case in found] == [
        ("serving@2::pins-agree (pins.agree)", True),
        ("serving@2::pins-whole (pins.full-length)", False),
    ]
    failure = ElementTree.fromstring(render("junit", "verify contract", FAILED)).find(".//failure")
    assert failure is not None
    assert failure.get("type") == "CONTRACT_VIOLATED"
    assert (failure.text or "").startswith("profiles/dflash.yaml:4:3")


@settings(deadline=None)
@given(REPORTS)
def test_our_own_recorder_reads_every_report(report: Report) -> None:
    named = replace(report, checks=tuple(replace(check, group="g", name=check.name or "n") for check in report.checks))
    assert len(cases(named)) >= max(1, len(named.checks))


def test_what_was_not_evaluated_is_an_error_and_what_was_not_asked_is_skipped() -> None:
    idle = Finding(Code.NOTHING_EVALUATED, Outcome.NOT_APPLICABLE, "name places")
    checks = (
        Check("c", "cannot-tell", Outcome.INCONCLUSIVE),
        Check("c", "not-run", Outcome.NOT_RUN),
        Check("c", "error", Outcome.ERROR),
        Check("c", "idle", Outcome.NOT_APPLICABLE, (idle,)),
        Check("c", "does-not-apply", Outcome.NOT_APPLICABLE),
        Check("c", "skipped", Outcome.SKIPPED),
    )
    text = render("junit", "gate", Report(ExitCode.NOTHING, checks=checks))
    ended = {case.get("name"): [child.tag for child in case] for case in ElementTree.fromstring(text).iter("testcase")}
    assert ended == {
        "cannot-tell": ["error"],
        "not-run": ["error"],
        "error": ["error"],
        "idle": ["error"],
        "does-not-apply": ["skipped"],
        "skipped": ["skipped"],
    }


def test_warnings_are_told_in_a_good_case() -> None:
    warned = Check("c", "units", Outcome.PASS, (replace(DRIFTED, severity=Severity.WARN),))
    (case,) = ElementTree.fromstring(render("junit", "verify contract", Report(checks=(warned,)))).iter("testcase")
    assert [child.tag for child in case] == ["system-out"]


def test_a_command_without_an_answer_is_a_case_that_is_not_good() -> None:
    error = NothingError(Code.NOTHING_EVALUATED, "no contract here", at=Location("contract.yaml"), fix="write one")
    (case,) = cases(Report.of_error(error))
    assert case.failed


def test_a_finding_of_no_check_is_a_case_of_its_own() -> None:
    report = Report(ExitCode.NO, 1, 1, (DRIFTED,), checks=(HELD,))
    assert [bool(case.failed) for case in cases(report)] == [False, True]
    told = replace(report, exit=ExitCode.YES, findings=(replace(DRIFTED, severity=Severity.INFO),))
    assert [bool(case.failed) for case in cases(told)] == [False, False]


def test_a_yes_has_its_cases() -> None:
    assert [bool(case.failed) for case in cases(GOOD)] == [False]
