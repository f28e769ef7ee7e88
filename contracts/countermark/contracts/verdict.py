"""What a contract says about a tree: the one evaluator that command line, service and audit share.

The verdict is a pure function of the contract's bytes, the files and the versions of the checkers. Whatever was not evaluated is
named, and only a contract whose every invariant was evaluated and holds is a yes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from countermark.attestations.codes import Code, ExitCode, Outcome, Severity
from countermark.attestations.errors import InputError, Location, NothingError
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.attestations.outcomes import contract_outcome
from countermark.contracts.checkers.base import Case, Result
from countermark.contracts.contract import Contract, Invariant
from countermark.contracts.places import Resolver, finding_of
from countermark.contracts.tree import Tree

_EVALUATED = (Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE)

_EXITS: Mapping[Outcome, ExitCode] = {
    Outcome.PASS: ExitCode.YES,
    Outcome.FAIL: ExitCode.NO,
    Outcome.ERROR: ExitCode.INVALID,
    Outcome.INCONCLUSIVE: ExitCode.CANNOT_TELL,
    Outcome.NOT_RUN: ExitCode.NOTHING,
    Outcome.SKIPPED: ExitCode.NOTHING,
    Outcome.NOT_APPLICABLE: ExitCode.NOTHING,
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """One invariant and what its checker said."""

    invariant: Invariant
    result: Result

    @property
    def evaluated(self) -> bool:
        """Whether the checker came to an answer."""
        return self.result.outcome in _EVALUATED


@dataclass(frozen=True, slots=True)
class ContractVerdict:
    """The judgement of each invariant, and all findings without repetition, sorted by file, line and column."""

    contract: Contract
    judgements: tuple[Judgement, ...]
    findings: tuple[Finding, ...]

    @property
    def of(self) -> int:
        """How many invariants there are."""
        return len(self.judgements)

    @property
    def evaluated(self) -> int:
        """How many of them their checkers could answer."""
        return sum(judgement.evaluated for judgement in self.judgements)

    @property
    def not_evaluated(self) -> tuple[str, ...]:
        """The invariants without an answer, each with the outcome that stands in its place."""
        silent = [judgement for judgement in self.judgements if not judgement.evaluated]
        return tuple(f"{it.invariant.id} ({it.invariant.checker.name}): {it.result.outcome}" for it in silent)

    @property
    def outcome(self) -> Outcome:
        """The outcome as any reader of the predicate computes it again."""
        return contract_outcome(self._predicate(Outcome.PASS))

    @property
    def exit(self) -> ExitCode:
        """0 all hold; 1 something is violated; 3 something could not be read; 4 a checker cannot tell; 5 something was not evaluated."""
        codes = {_EXITS[finding.outcome] for finding in self.findings if finding.severity is Severity.BLOCK}
        complete = ExitCode.YES if self.evaluated == self.of else ExitCode.NOTHING
        return ExitCode.first_of({complete, *codes} if self.evaluated else codes)

    def predicate(self) -> dict[str, JsonValue]:
        """The predicate contract-verdict/v1. It holds no time: the same contract and files give the same bytes."""
        return self._predicate(self.outcome)

    def _predicate(self, outcome: Outcome) -> dict[str, JsonValue]:
        contract = self.contract
        pins: dict[str, dict[str, JsonValue]] = {}
        for pin in contract.pins.values():
            pins.setdefault(pin.name.rpartition(".")[0], {})[pin.leaf] = pin.value
        versions = {judgement.invariant.checker.name: judgement.invariant.checker.version for judgement in self.judgements}
        return {
            "contract": {"id": contract.id, "version": contract.version, "digest": str(contract.digest)},
            "outcome": str(outcome),
            "evaluated": self.evaluated,
            "of": self.of,
            "pins": {**pins},
            "binds_image": list(contract.binds_image),
            "findings": [finding.to_json() for finding in self.findings],
            "checkers": {name: versions[name] for name in sorted(versions)},
        }


def evaluate(contract: Contract, tree: Tree) -> ContractVerdict:
    """Hold a contract against the files of a tree. Bad files are findings; nothing in them stops the rest from being judged."""
    files = Resolver(tree)
    case = Case(contract.id, contract, files.resolve(contract.places), files, Location(contract.source))
    judgements = tuple(Judgement(invariant, _judge(invariant, case)) for invariant in contract.invariants)
    found = [finding for judgement in judgements for finding in judgement.result.findings]
    idle = [_idle(it.invariant) for it in judgements if it.result.outcome is Outcome.NOT_APPLICABLE]
    gaps = [gap.finding for gap in case.places.gaps]
    return ContractVerdict(contract, judgements, tuple(sorted(dict.fromkeys([*found, *idle, *gaps]), key=_reading_order)))


def _judge(invariant: Invariant, case: Case) -> Result:
    """An error is of its file and not of the checker that met it, so that several checkers tell of it once."""
    try:
        return invariant.checker.check(replace(case, at=invariant.at), invariant.parameters)
    except (InputError, NothingError) as error:
        return Result(0, (finding_of(error),))


def _idle(invariant: Invariant) -> Finding:
    """Nothing checked is not success."""
    return Finding(
        Code.NOTHING_EVALUATED,
        Outcome.NOT_APPLICABLE,
        "name places that the rule is about, or remove the invariant",
        checker=invariant.checker.name,
        location=invariant.at,
        required=invariant.checker.rule,
        observed="the contract names nothing to hold this rule against",
    )


def _reading_order(finding: Finding) -> tuple[str, int, int, str, str, str, str]:
    at = finding.location
    place = (at.file, at.line or 0, at.column or 0, at.pointer or "") if at else ("", 0, 0, "")
    return (*place, finding.checker or "", str(finding.code), str(finding.observed))
