"""A finding: one thing that a check saw, with everything a person needs to act on it."""

from dataclasses import dataclass
from typing import Any

from countermark.attestations.codes import Code, Outcome, Severity
from countermark.attestations.errors import Location


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a check saw. `required` and `observed` are text for people; `fix` is an action; `waived_by` names the exception made."""

    code: Code
    outcome: Outcome
    fix: str = ""
    severity: Severity = Severity.BLOCK
    checker: str | None = None
    location: Location | None = None
    subject: str | None = None
    required: str | None = None
    observed: str | None = None
    evidence: tuple[str, ...] = ()
    waived_by: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The `Finding` object of the documents page; absent fields are left out."""
        optional = {
            "checker": self.checker,
            "location": location_json(self.location) if self.location else None,
            "subject": self.subject,
            "required": self.required,
            "observed": self.observed,
            "waived_by": self.waived_by,
        }
        return {
            "code": str(self.code),
            "severity": str(self.severity),
            "outcome": str(self.outcome),
            **{name: value for name, value in optional.items() if value is not None},
            "evidence": list(self.evidence),
            "fix": self.fix,
        }


def location_json(at: Location) -> dict[str, Any]:
    """The `Location` object of the documents page."""
    fields = {"file": at.file, "line": at.line, "column": at.column, "pointer": at.pointer}
    return {name: value for name, value in fields.items() if value is not None}
