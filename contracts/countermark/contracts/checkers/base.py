"""What a checker is: one class, one rule, which it can state in one sentence and which it can be seen to break.

A checker sets no outcome. It says how many things it looked at and what it found, and the outcome follows.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from countermark.attestations.codes import Code, Outcome, Severity
from countermark.attestations.errors import InputError, Location
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.contracts.places import Occurrence, Resolution, Resolver
from countermark.contracts.terms import Profile, Terms, lookup
from countermark.contracts.tree import Tree

Parameters = Mapping[str, JsonValue]
"""What stands under `with`, valid by the checker's own schema."""

_WORST_FIRST = (Outcome.FAIL, Outcome.ERROR, Outcome.INCONCLUSIVE, Outcome.NOT_RUN, Outcome.SKIPPED)


@dataclass(frozen=True, slots=True)
class Case:
    """What is judged: the terms of a contract and its id, the values at its places, the files for whoever needs more of them, and where
    the invariant stands that asks."""

    contract: str
    terms: Terms
    places: Resolution
    files: Resolver
    at: Location

    @property
    def tree(self) -> Tree:
        """The files as bytes."""
        return self.files.tree

    def profiles(self, names: Iterable[str] | None, *, serving: bool | None = None) -> list[Profile]:
        """The profiles of the contract by name, or all of them; of one class if asked. `InputError` for a name that is none."""
        known = self.terms.profiles
        named = [lookup(name, known, "profile", self.at) for name in (known if names is None else names)]
        return [profile for profile in named if serving in (None, profile.serves)]

    def fact(self, name: str) -> list[Occurrence]:
        """The values of a fact; `InputError` when there is no such fact, or a file of it gives no value."""
        found = self.files.resolve([lookup(name, self.terms.facts, "fact", self.at)])
        for gap in found.gaps:
            finding = gap.finding
            if finding.required is None:  # its file cannot be read, which is told in these words by all who meet it
                raise InputError(finding.code, finding.observed or "it cannot be read", at=finding.location, fix=finding.fix)
            message = f"fact {name}: {finding.observed} where {finding.required} is needed"
            raise InputError(finding.code, message, at=finding.location, fix=finding.fix)
        return list(found.occurrences)

    def expression(self, pattern: str) -> re.Pattern[str]:
        """A regular expression that is a parameter; `InputError` for what is none."""
        try:
            return re.compile(pattern)
        except re.error as error:
            message = f"{pattern!r} is no regular expression: {error}"
            raise InputError(Code.SCHEMA_INVALID, message, at=self.at, fix="mend the expression") from None

    def command(self, label: str) -> tuple[str, ...]:
        """The tokens of a command of the contract; `InputError` for a label that is none."""
        return lookup(label, self.terms.commands, "command", self.at)


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


NO_PARAMETERS: Mapping[str, JsonValue] = {"type": "object", "additionalProperties": False, "properties": {}}


class Checker(ABC):
    """A rule. The version rises whenever the same input can get another answer."""

    name: ClassVar[str]
    version: ClassVar[int] = 1
    rule: ClassVar[str]
    ids: ClassVar[tuple[str, ...]] = ()
    """The numbered rules of the catalogue that this checker is."""
    parameters: ClassVar[Mapping[str, JsonValue]] = NO_PARAMETERS
    """JSON Schema (Draft 2020-12) of the parameters, with a description for each."""

    @abstractmethod
    def check(self, case: Case, given: Parameters) -> Result:
        """Hold the rule against a case. An `InputError` says that something it needs cannot be read, a `NothingError` that it is not
        there."""

    def violation(
        self,
        at: Location,
        *,
        required: str,
        observed: str,
        fix: str,
        outcome: Outcome = Outcome.FAIL,
        severity: Severity = Severity.BLOCK,
        code: Code = Code.CONTRACT_VIOLATED,
    ) -> Finding:
        """The finding that the rule is broken at a place, or whatever else `outcome` says of it."""
        return Finding(code, outcome, fix, severity, self.name, location=at, required=required, observed=observed)
