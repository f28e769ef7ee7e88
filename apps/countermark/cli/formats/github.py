"""GitHub Actions: annotations of the lines that are meant (workflow commands), and the page of a job's results.

A step shows ten annotations of each level and drops the rest without a word, so that the tenth says how many more there are.
"""

from collections.abc import Iterator
from typing import Final

from countermark.attestations.codes import Severity
from countermark.attestations.findings import Finding
from countermark.cli.formats import markdown
from countermark.cli.formats.wording import is_file, sentence, title
from countermark.cli.report import Report

_LEVELS: Final = {Severity.BLOCK: "error", Severity.WARN: "warning", Severity.INFO: "notice"}
_PER_LEVEL: Final = 10
_SUMMARY_BYTES: Final = 1 << 19
"""A step's page may have a mebibyte, over all that the step appends; half of it is left to others."""


def render(command: str, report: Report) -> str:
    """One workflow command a finding, and the verdict as a line of the log."""
    lines = [line for severity in _LEVELS for line in _of_level(severity, report.told)]
    return "\n".join([*lines, report.verdict_line(command)])


def step_summary(command: str, report: Report) -> str:
    """The report as Markdown, cut at a line where it is too long for a page, and saying so."""
    text = markdown.render(command, report) + "\n\n"
    data = text.encode()
    if len(data) <= _SUMMARY_BYTES:
        return text
    kept = data[:_SUMMARY_BYTES].rpartition(b"\n")[0].decode()
    return f"{kept}\n\nThis page is cut here; the whole report is what `-o json` prints.\n\n"


def _of_level(severity: Severity, told: tuple[Finding, ...]) -> Iterator[str]:
    found = [finding for finding in told if finding.severity is severity]
    shown = found if len(found) <= _PER_LEVEL else found[: _PER_LEVEL - 1]
    yield from (_command(_LEVELS[severity], _properties(finding), sentence(finding)) for finding in shown)
    if len(shown) < len(found):
        yield _command(_LEVELS[severity], {}, f"{len(found) - len(shown)} more, in the report")


def _properties(finding: Finding) -> dict[str, object]:
    at = finding.location
    place = {"file": at.file, "line": at.line, "col": at.column if at.line else None} if at and is_file(at) else {}
    return {**{name: value for name, value in place.items() if value}, "title": title(finding)}


def _command(level: str, properties: dict[str, object], message: str) -> str:
    written = ",".join(f"{name}={_escaped(str(value)).replace(':', '%3A').replace(',', '%2C')}" for name, value in properties.items())
    return f"::{level}{f' {written}' if written else ''}::{_escaped(message)}"


def _escaped(text: str) -> str:
    """As the runner's own toolkit escapes: the percent sign first, then what ends a line."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
