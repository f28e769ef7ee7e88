"""What changed between two revisions of a repository, as its contract sees it: pins, facts, invariants and findings.

A change is information. One thing is a finding: a contract that means something else under the same version, because verdicts name
contracts by id and version.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from countermark.attestations.codes import Code, Outcome, Severity
from countermark.attestations.documents import Document, load_document
from countermark.attestations.errors import InputError, Location
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.contracts.checkers.differences import differences
from countermark.contracts.contract import Contract
from countermark.contracts.lock import locked
from countermark.contracts.pins import same, shown
from countermark.contracts.places import Occurrence, Resolver
from countermark.contracts.tree import Tree
from countermark.contracts.verdict import ContractVerdict, evaluate


@dataclass(frozen=True, slots=True)
class Revision:
    """A contract and the files of one revision. The contract's bytes are none where the revision has no such file."""

    tree: Tree
    data: bytes | None
    source: str


@dataclass(frozen=True, slots=True)
class RevisionComparison:
    """What changed, and how many findings of the present verdict are new and how many of the earlier one are gone."""

    changes: tuple[Finding, ...]
    introduced: int
    fixed: int


def compare_revisions(verdict: ContractVerdict, now: Revision, before: Revision) -> RevisionComparison:
    """Compare the revision that a verdict is about with an earlier one. A contract that was broken then is compared as far as it was
    readable."""
    contract = verdict.contract
    old_contract, unreadable = _load(before)
    changes = list(unreadable)
    if now.data is not None and before.data is not None and old_contract:
        changes += _meaning(load_document(now.data, now.source, "Contract"), load_document(before.data, before.source, "Contract"))
    changes += _pins(contract, old_contract) if old_contract else ()
    changes += _facts(contract, now.tree, before.tree)
    earlier = evaluate(old_contract or contract, before.tree)
    here, there = _identities(verdict), _identities(earlier)
    return RevisionComparison(tuple(changes), len(here - there), len(there - here))


def _load(before: Revision) -> tuple[Contract | None, tuple[Finding, ...]]:
    if before.data is None:
        return None, (_told(Location(before.source), "a contract", "none: the contract is new", "nothing to do"),)
    try:
        return Contract.load(before.data, before.source), ()
    except InputError as error:
        return None, (_told(Location(before.source), "a contract that can be read", error.message, "nothing to do: it can be read now"),)


def _identities(verdict: ContractVerdict) -> set[tuple[str | None, str | None, str | None, str | None]]:
    """Findings by what they say and in which file; a line that moved is no new finding."""
    return {(it.checker, it.location.file if it.location else None, it.required, it.observed) for it in verdict.findings}


def _meaning(now: Document, before: Document) -> Iterator[Finding]:
    changed = list(differences(before.spec, now.spec, "/spec"))
    if changed and now.version <= before.version and now.id == before.id:
        parts = ", ".join(dict.fromkeys("/".join(it.pointer.split("/")[:3]) for it in changed))
        yield Finding(
            Code.CONTRACT_VIOLATED,
            Outcome.FAIL,
            "raise the version of the contract",
            location=now.at("/metadata/version"),
            required=f"a version above {before.version}, because {parts} changed",
            observed=str(now.version),
        )
    gone = _checks(before) - _checks(now)
    if gone:
        at, fix = now.at("/spec/invariants"), "keep it, or say in the change why it is gone"
        yield _told(at, f"the invariants {', '.join(sorted(gone))}", "no longer there", fix, Severity.WARN)


def _checks(document: Document) -> set[str]:
    return {str(invariant["id"]) for invariant in document.spec["invariants"]}


def _pins(now: Contract, before: Contract) -> Iterator[Finding]:
    for name, pin in now.pins.items():
        old = before.pins.get(name)
        if old and not same(old.value, pin.value):
            yield _told(pin.at, f"{shown(old.value)}, as it was pinned", shown(pin.value), f"nothing to do if {name} was meant to advance")


def _facts(contract: Contract, now: Tree, before: Tree) -> Iterator[Finding]:
    values, earlier = _values(contract, now), _values(contract, before)
    for name in contract.facts:
        if name in values and name in earlier:
            for it in differences(locked(earlier[name]), locked(values[name])):
                part = f"{name}{it.pointer}"
                yield _told(
                    values[name][0].at, f"{part}: {it.before}, as it was", it.after, "nothing to do if the fact was meant to change"
                )


def _values(contract: Contract, tree: Tree) -> Mapping[str, Sequence[Occurrence]]:
    files = Resolver(tree)
    found = {name: files.resolve([place]) for name, place in contract.facts.items()}
    return {name: it.occurrences for name, it in found.items() if it.occurrences and not it.gaps}


def _told(at: Location, required: str, observed: JsonValue, fix: str, severity: Severity = Severity.INFO) -> Finding:
    return Finding(Code.CONTRACT_VIOLATED, Outcome.FAIL, fix, severity, location=at, required=required, observed=shown(observed))
