"""JUnit XML, as CI servers read it: one test case for each thing that was to be evaluated.

A failure is a no. What could not be evaluated is an error and not a skip, since servers take a skipped case for a good one.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final
from xml.etree import ElementTree

from countermark.attestations.codes import ExitCode, Outcome, Severity
from countermark.attestations.findings import Finding
from countermark.cli.formats.wording import sentence, title
from countermark.cli.report import Check, Report

_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 (section 2.2) has no characters for."""


def render(command: str, report: Report) -> str:
    """The report as one suite."""
    cases = [_case(check) for check in _checks(command, report)]
    suite = ElementTree.Element("testsuite", name=f"countermark {command}", tests=str(len(cases)))
    for child, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(attribute, str(sum(case.find(child) is not None for case in cases)))
    suite.extend(cases)
    root = ElementTree.Element("testsuites", dict(list(suite.attrib.items())[1:]))
    root.append(suite)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode")


def _checks(command: str, report: Report) -> Iterator[Check]:
    """The checks, and the command itself as one where there are none, or where it found something that is of none of them."""
    yield from report.checks
    known = {finding for check in report.checks for finding in check.findings}
    others = tuple(finding for finding in report.findings if finding not in known)
    if others or not report.checks:
        yield Check("countermark", command, _outcome(report, others), others)


def _outcome(report: Report, found: Iterable[Finding]) -> Outcome:
    blocking = {finding.outcome for finding in found if finding.severity is Severity.BLOCK}
    if blocking or not report.checks:
        return Outcome.PASS if report.exit is ExitCode.YES else Outcome.FAIL if report.exit is ExitCode.NO else Outcome.ERROR
    return Outcome.PASS


def _case(check: Check) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname=_text(check.group), name=_text(check.name))
    child = _child(check)
    if child:
        first = check.findings[0] if check.findings else None
        message = sentence(first) if first else str(check.outcome)
        element = ElementTree.SubElement(case, child, message=_text(message))
        element.text = _text(_lines(check.findings))
        if child != "skipped":
            element.set("type", str(first.code) if first else str(check.outcome))
    elif check.findings:
        ElementTree.SubElement(case, "system-out").text = _text(_lines(check.findings))
    return case


def _child(check: Check) -> str:
    """The element that says how the case ended; none for a good one."""
    if check.outcome is Outcome.PASS:
        return ""
    if check.outcome is Outcome.FAIL:
        return "failure"
    return "error" if check.blocks else "skipped"


def _lines(findings: Iterable[Finding]) -> str:
    return "\n".join(f"{finding.location or finding.subject or ''}: {title(finding)} {sentence(finding)}" for finding in findings)


def _text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
