"""What a rule about a measurement says when it is broken, before it is known where the document stands that breaks it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from countermark.attestations.codes import Code, Outcome, Severity
from countermark.attestations.errors import Location
from countermark.attestations.findings import Finding

Places = Callable[[str], Location]
"""Where a pointer of the document stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """One broken rule: which checker of the catalogue, at which pointer, and the words of the finding."""

    checker: str
    pointer: str
    required: str
    observed: str
    fix: str
    outcome: Outcome = Outcome.FAIL
    code: Code = Code.RECORD_CONTRADICTED
    severity: Severity = Severity.BLOCK

    def finding(self, at: Places) -> Finding:
        """The finding, at its place."""
        return Finding(
            self.code,
            self.outcome,
            self.fix,
            self.severity,
            self.checker,
            location=at(self.pointer),
            required=self.required,
            observed=self.observed,
        )


def findings(broken: Iterable[Broken], at: Places) -> tuple[Finding, ...]:
    """The findings of several rules, each once."""
    return tuple(dict.fromkeys(item.finding(at) for item in broken))
