"""Whether a contract holds for an image: what its last verdict says, and whether the image was built from what the contract pins.

Of the verdicts for one contract the one with the highest ledger index counts. One that passes must come from a builder or qualifier;
one that does not pass counts whoever with a role has made it.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from countermark.attestations.codes import Code, Outcome, Status
from countermark.attestations.located import JsonValue, as_integer, as_list, as_object
from countermark.attestations.predicate_types import PredicateName
from countermark.contracts.aliases import Names
from countermark.contracts.answer import Answer, Considered
from countermark.contracts.deficits import in_both_roles
from countermark.contracts.evidence import Entry, Evidence
from countermark.contracts.requirement import ContractRequirement

MAKERS: Final = ("builder", "qualifier")
_SHOWN_FINDINGS: Final = 5
_TYPED_LEAVES: Final = {"commit": "git-commit:", "tree": "git-tree:", "source_sha256": ""}
"""The leaves of a pin that an image's component records too, and what stands before the hex there."""


def judge_contract(requirement: ContractRequirement, names: Names, evidence: Evidence) -> Answer:
    """The answer to a contract requirement about one image."""
    verdicts = [entry for entry in evidence.of_type(PredicateName.CONTRACT_VERDICT) if verdict_identity(entry)[0] == requirement.contract]
    recent = [entry for entry in verdicts if verdict_identity(entry)[1] >= (requirement.min_version or 0)]
    last, later = _last(recent, evidence)
    if last is None:
        return _none_counts(requirement, verdicts, recent, evidence)
    considered = (Considered(last), *(Considered(entry, _why_ignored(entry, evidence)) for entry in later))
    bound = _bound(last, names, evidence, considered)
    return bound if last.outcome is Outcome.PASS else _also(_not_passed(last, considered), bound)


def _also(answer: Answer, bound: Answer) -> Answer:
    """A contract that does not hold, and an image that was built from something else: two faults, of which one may be waived."""
    if bound.accepted:
        return answer
    return replace(answer, observed=f"{answer.observed}; besides, {bound.observed}", codes=(answer.code, bound.code))


def verdict_identity(entry: Entry) -> tuple[str, int]:
    """Id and version of the contract that a verdict is about; empty and 0 where it does not say."""
    contract = as_object(entry.predicate.get("contract"))
    name = contract.get("id")
    return name if isinstance(name, str) else "", as_integer(contract.get("version")) or 0


def verdict_checkers(entry: Entry) -> dict[str, int]:
    """The checkers that took part in a verdict, by name, with their versions."""
    stated = as_object(entry.predicate.get("checkers"))
    return {name: version for name, value in stated.items() if (version := as_integer(value)) is not None}


def _last(verdicts: list[Entry], evidence: Evidence) -> tuple[Entry | None, list[Entry]]:
    """The verdict that counts, and those after it that do not. Older ones are not looked at, for a contract may have very many."""
    best, ignored = None, list[Entry]()
    for entry in sorted(verdicts, key=lambda entry: entry.last, reverse=True):
        if best and _place(best) >= entry.last:
            break
        if not _counts(entry, evidence):
            ignored.append(entry)
        elif best is None or _place(entry) > _place(best):
            best = entry
    return best, ignored


def _place(entry: Entry) -> int:
    """A pass counts from when it was first said, anything else from when it was last said."""
    return entry.index if entry.outcome is Outcome.PASS else entry.last


def _counts(entry: Entry, evidence: Evidence) -> bool:
    if entry.outcome is Outcome.PASS:
        return entry.counts_as(*MAKERS) and not evidence.taken_back(entry)
    return entry.heard and not evidence.lifted(entry)


def _why_ignored(entry: Entry, evidence: Evidence) -> str:
    if evidence.taken_back(entry) or evidence.lifted(entry):
        return "it was taken back"
    code = entry.code if entry.code is not Code.OK else Code.ROLE
    return f"{entry.signer} may not make it as {' or '.join(MAKERS)} [{code}]{in_both_roles(entry, MAKERS, evidence.trust)}"


def _none_counts(requirement: ContractRequirement, verdicts: list[Entry], recent: list[Entry], evidence: Evidence) -> Answer:
    considered = tuple(Considered(entry, _why_ignored(entry, evidence)) for entry in recent)
    if recent:
        signers = ", ".join(sorted({entry.signer for entry in recent}))
        fix = "have the contract verified and recorded by a builder or qualifier of the trust policy"
        return Answer(Status.UNQUALIFIED, Code.SIGNER_UNTRUSTED, f"verdicts by {signers} only, none of which counts", fix, considered)
    versions = sorted({verdict_identity(entry)[1] for entry in verdicts})
    observed = f"verdicts for version {', '.join(map(str, versions))} only" if versions else "no verdict is recorded"
    fix = f"run countermark verify contract PATH --record in the repository that holds contract {requirement.contract}"
    return Answer(Status.UNSUPPORTED, Code.CONTRACT_NOT_EVALUATED, observed, fix, considered)


def _not_passed(verdict: Entry, considered: tuple[Considered, ...]) -> Answer:
    findings = [finding for finding in _findings(verdict) if finding.get("severity") not in ("warn", "info")]
    if verdict.outcome is not Outcome.FAIL:
        counts = f"evaluated {verdict.predicate.get('evaluated')} of {verdict.predicate.get('of')}"
        observed = "; ".join([f"the verdict is {verdict.outcome}, {counts}", *map(_told, findings[:_SHOWN_FINDINGS])])
        fix = "mend what kept the contract from being evaluated, then verify and record it again"
        return Answer(Status.UNSUPPORTED, Code.CONTRACT_NOT_EVALUATED, observed, fix, considered)
    more = [f"and {len(findings) - _SHOWN_FINDINGS} more"] if len(findings) > _SHOWN_FINDINGS else []
    observed = "; ".join([*map(_told, findings[:_SHOWN_FINDINGS]), *more]) or "the contract failed"
    mend = next((str(finding["fix"]) for finding in findings if finding.get("fix")), "mend the repository")
    fix = f"{mend}, then verify and record the contract again"
    return Answer(Status.UNQUALIFIED, Code.CONTRACT_VIOLATED, observed, fix, considered)


def _findings(verdict: Entry) -> list[dict[str, JsonValue]]:
    return [item for item in as_list(verdict.predicate.get("findings")) if isinstance(item, dict)]


def _told(finding: dict[str, JsonValue]) -> str:
    """A finding in one line: where, by which checker, what was there and what should be."""
    place = as_object(finding.get("location"))
    where = ":".join(str(place[part]) for part in ("file", "line") if place.get(part) is not None)
    pointer = place.get("pointer")
    head = " ".join(str(part) for part in (where, pointer, finding.get("checker") or finding.get("code")) if part)
    seen = [f"{name} {finding[name]}" for name in ("observed", "required") if finding.get(name) is not None]
    return f"{head}: {', '.join(seen)}" if seen else head


def _bound(verdict: Entry, names: Names, evidence: Evidence, considered: tuple[Considered, ...]) -> Answer:
    images = [
        entry
        for entry in evidence.of_type(PredicateName.IMAGE)
        if entry.heard and any(entry.is_about(digest) for digest in names.passes) and not evidence.taken_back(entry)
    ]
    by_name = [(name, component, image) for image in images for name, component in _components(image)]
    pins = _pins(verdict)
    bound = _bound_names(verdict, pins, {name for name, _, _ in by_name})
    problems = [problem for name in bound for problem in _mismatches(name, pins.get(name, {}), by_name)]
    if not bound:
        problems = [f"no component of the image is recorded that the contract pins ({', '.join(pins) or 'it pins nothing'})"]
    weighed = (*considered, *(Considered(image) for image in images if any(name in bound for name, _ in _components(image))))
    name, version = verdict_identity(verdict)
    if problems:
        wanted = bound[0] if bound else next(iter(pins), "NAME")
        fix = f"build the image from the pinned {wanted}, and record it with --component {wanted}=COMMIT"
        return Answer(Status.UNQUALIFIED, Code.PIN_MISMATCH, "; ".join(problems), fix, weighed)
    observed = (
        f"contract {name}@{version} passed, evaluated {verdict.predicate.get('evaluated')}; image built from pinned {', '.join(bound)}"
    )
    return Answer(Status.QUALIFIED, Code.OK, observed, "", weighed, accepted=True)


def _pins(verdict: Entry) -> dict[str, dict[str, JsonValue]]:
    return {name: leaves for name, leaves in as_object(verdict.predicate.get("pins")).items() if isinstance(leaves, dict)}


def _bound_names(verdict: Entry, pins: dict[str, dict[str, JsonValue]], recorded: set[str]) -> list[str]:
    """The pins that must equal the image's components: those the contract binds, or else all that have a component's name."""
    bound = [name for name in as_list(verdict.predicate.get("binds_image")) if isinstance(name, str)]
    return bound or [name for name in pins if name in recorded]


def _components(image: Entry) -> Iterator[tuple[str, dict[str, JsonValue]]]:
    components = as_object(as_object(image.predicate.get("built_from")).get("components"))
    for name, fields in components.items():
        if isinstance(fields, dict):
            yield name, fields


def _mismatches(name: str, pin: dict[str, JsonValue], by_name: list[tuple[str, dict[str, JsonValue], Entry]]) -> list[str]:
    recorded = [(component, image) for other, component, image in by_name if other == name]
    if not any(image.counts_as() for _, image in recorded):
        return [f"no component {name} is recorded for the image"]
    wanted = {
        leaf: f"{prefix}{value.removeprefix(prefix)}" for leaf, prefix in _TYPED_LEAVES.items() if isinstance(value := pin.get(leaf), str)
    }
    found = [
        f"{name}.{leaf} is {component[leaf]}, pinned {value}"
        for component, _ in recorded
        for leaf, value in wanted.items()
        if component.get(leaf, value) != value
    ]
    settled = all(any(component.get(leaf) == value for leaf, value in wanted.items()) for component, _ in recorded)
    return found or ([] if settled else [f"the contract does not pin a commit, tree or source of {name}"])
