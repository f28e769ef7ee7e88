"""What a checker is: one class, one rule, which it can state in one sentence and which it can be seen to break.

A checker sets no outcome. It says how many things it looked at and what it found, and the outcome follows.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from countermark.attestations.codes import Code, Outcome, Severity
from countermark.attestations.errors import Location
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.contracts.places import Resolution
from countermark.contracts.terms import Terms
from countermark.contracts.tree import Tree

Parameters = Mapping[str, JsonValue]
"""What stands under `with`, valid by the checker's own schema."""

_WORST_FIRST = (Outcome.FAIL, Outcome.ERROR, Outcome.INCONCLUSIVE, Outcome.NOT_RUN, Outcome.SKIPPED)


@dataclass(frozen=True, slots=True)
class Case:
    """What is judged: the terms of a contract, the values at its places, and the files for whoever needs more of them."""

    terms: Terms
    places: Resolution
    tree: Tree


@dataclass(frozen=True, slots=True)
class Result:
    """How many things a checker looked at, and all that it found."""

    evaluated: int
    findings: tuple[Finding, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """The worst that blocks; else pass if anything was looked at; else not-applicable, which satisfies nothing."""
        found = {finding.outcome for finding in self.findings if finding.severity is Severity.BLOCK}
        worst = next((outcome for outcome in _WORST_FIRST if outcome in found), None)
        return worst or (Outcome.PASS if self.evaluated else Outcome.NOT_APPLICABLE)


class Checker(ABC):
    """A rule. The version rises whenever the same input can get another answer."""

    name: ClassVar[str]
    version: ClassVar[int]
    rule: ClassVar[str]
    parameters: ClassVar[Mapping[str, JsonValue]] = {"type": "object", "additionalProperties": False, "properties": {}}
    """JSON Schema (Draft 2020-12) of the parameters, with a description for each."""

    @abstractmethod
    def check(self, case: Case, given: Parameters) -> Result:
        """Hold the rule against a case. An `InputError` says that something it needs cannot be read."""

    def violation(self, at: Location, *, required: str, observed: str, fix: str) -> Finding:
        """The finding that the rule is broken at a place."""
        return Finding(Code.CONTRACT_VIOLATED, Outcome.FAIL, fix, checker=self.name, location=at, required=required, observed=observed)
