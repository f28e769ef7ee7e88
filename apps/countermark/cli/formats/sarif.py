"""SARIF 2.1.0 (OASIS), as code scanning reads it.

Every result has a physical location: one result without makes GitHub refuse the whole file. A run without findings has an empty list of
results, so that alerts of earlier runs are closed.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from countermark.attestations.codes import ExitCode, Severity
from countermark.attestations.findings import Finding
from countermark.attestations.release import __version__
from countermark.cli.formats.wording import rule_of, sentence
from countermark.cli.report import Report
from countermark.contracts.explain_text import plain

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_HOME: Final = "https://countermark.dev/"
_LEVELS: Final = {Severity.BLOCK: "error", Severity.WARN: "warning", Severity.INFO: "note"}
_ROOT: Final = "%SRCROOT%"
_ANSWERED: Final = frozenset({ExitCode.YES, ExitCode.NO})


def render(command: str, report: Report) -> str:
    """The report as one run, in a category of its own for each command."""
    rules = list(dict.fromkeys(rule_of(finding) for finding in report.told))
    driver = {"name": "countermark", "version": __version__, "informationUri": _HOME, "rules": _rules(rules)}
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"countermark/{command.replace(' ', '-')}/"},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": report.exit in _ANSWERED, "exitCode": int(report.exit)}],
        "results": [_result(finding, rules) for finding in report.told],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)


def _rules(names: Sequence[str]) -> list[dict[str, Any]]:
    """A rule is a checker with its sentence, or a result code."""
    from countermark.contracts.checkers.registry import CHECKERS

    sentences = {name: CHECKERS[name].rule if name in CHECKERS else f"The result code {name} of countermark." for name in names}
    return [
        {
            "id": name,
            "shortDescription": {"text": text},
            "fullDescription": {"text": text},
            "help": {"text": f"{text} Each result says what was required and what mends it."},
        }
        for name, text in sentences.items()
    ]


def _result(finding: Finding, rules: Sequence[str]) -> dict[str, Any]:
    rule = rule_of(finding)
    return {
        "ruleId": rule,
        "ruleIndex": rules.index(rule),
        "level": _LEVELS[finding.severity],
        "message": {"text": sentence(finding)},
        "locations": [{"physicalLocation": _physical(finding)}],
        "partialFingerprints": {"countermark/v1": _fingerprint(finding)},
        **({"suppressions": [_suppression(finding.waived_by)]} if finding.waived_by else {}),
        "properties": {"code": str(finding.code), "outcome": str(finding.outcome), "evidence": list(finding.evidence)},
    }


def _suppression(waived_by: str) -> dict[str, str]:
    """An exception that others approved, kept outside the code (SARIF 2.1.0, section 3.35)."""
    return {"kind": "external", "status": "accepted", "justification": plain(f"waived by {waived_by}")}


def _physical(finding: Finding) -> dict[str, Any]:
    """Where the finding is. What is in no file is named all the same: an option of the command line, or the subject."""
    at = finding.location
    file = (at.file if at else "") or finding.subject or "countermark"
    artifact = {"uri": f"file://{quote(file)}"} if file.startswith("/") else {"uri": quote(file), "uriBaseId": _ROOT}
    region = {"startLine": at.line if at and at.line else 1}
    if at and at.line and at.column:
        region["startColumn"] = at.column
    return {"artifactLocation": artifact, "region": region}


def _fingerprint(finding: Finding) -> str:
    """The same for the same finding in another revision, where it may stand on another line."""
    at = finding.location
    parts = (rule_of(finding), str(finding.code), at.file if at else "", (at.pointer if at else "") or "", finding.observed or "")
    return hashlib.sha256("\n".join((*parts, finding.subject or "")).encode()).hexdigest()
