"""Markdown for a pull request's comment or a page: the verdict, a table of findings, and what was evaluated."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from countermark.attestations.codes import Outcome, Severity
from countermark.attestations.errors import Location
from countermark.attestations.findings import Finding
from countermark.cli.formats.wording import title
from countermark.cli.report import Check, Report
from countermark.contracts.explain_text import plain

_SPECIAL: Final = re.compile(r"[\\`*_{}\[\]<>|~&#]")
_LONGEST: Final = 400
_SUBJECT: Final = len("oci-manifest:sha256:") + 8
_MARKS: Final = {Severity.BLOCK: "✗", Severity.WARN: "!", Severity.INFO: "·"}


def render(command: str, report: Report) -> str:
    """The report as GitHub-flavoured Markdown; nothing that a record says becomes markup."""
    parts = [f"### {_cell(report.verdict_line(command))}"]
    if report.told:
        parts.append(_table(("", "where", "rule", "required", "observed", "fix"), map(_row, report.told)))
    if report.not_evaluated:
        parts.append("Not evaluated: " + "; ".join(map(_cell, report.not_evaluated)))
    if report.checks:
        counted = f"{sum(check.outcome is Outcome.PASS for check in report.checks)} of {len(report.checks)} hold"
        waived = sum(any(finding.waived_by for finding in check.findings) for check in report.checks)
        counted += f", {waived} waived" if waived else ""
        rows = (_check(check) for check in report.checks)
        parts.append(f"<details><summary>{counted}</summary>\n\n{_table(('of', 'check', 'outcome'), rows)}\n\n</details>")
    return "\n\n".join(parts)


def _row(finding: Finding) -> Iterator[str]:
    where = _place(finding.location) if finding.location else (finding.subject or "")
    where += f" · {finding.subject[:_SUBJECT]}…" if finding.location and finding.subject else ""
    mark = "✗ waived" if finding.waived_by else _MARKS[finding.severity]
    fix = f"waived by {finding.waived_by}" if finding.waived_by else finding.fix
    for text in (mark, where, title(finding), finding.required, finding.observed, fix):
        yield _cell(text or "")


def _place(at: Location) -> str:
    place = ":".join(str(part) for part in (at.file, at.line) if part is not None)
    return f"{place} {at.pointer}" if at.pointer else place


def _check(check: Check) -> Iterator[str]:
    return map(_cell, (check.group, check.name, str(check.outcome)))


def _table(headings: Sequence[str], rows: Iterable[Iterator[str]]) -> str:
    lines = (headings, ["---"] * len(headings), *rows)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cell(text: str) -> str:
    """The text as text: on one line, not too long, with every sign that Markdown reads escaped."""
    shown = plain(text)
    shown = shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"
    return _SPECIAL.sub(lambda sign: f"\\{sign.group()}", shown)
