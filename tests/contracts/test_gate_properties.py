"""Random small worlds: the gate against an oracle that walks the table by brute force, and what must never turn a no into a yes."""

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.predicate_types import TEST_RESULT, PredicateName
from countermark.attestations.statement import Subject
from countermark.contracts.decision import Decision, Verdict
from countermark.contracts.evidence import Record
from countermark.contracts.explain_text import explain
from countermark.contracts.policy import ReleasePolicy
from countermark.ledger.derive import derive
from countermark.ledger.leaf import EntryKind

from .gate_world import COMMIT, IMAGE, OTHER_COMMIT, RESTORE, Ledger, config, decided, index, manifest, policy, requiring

IMAGES = (IMAGE, config("b2"), manifest("c3"))
FRESH, STALE = "2026-11-29T00:00:00Z", "2026-01-01T00:00:00Z"
PEOPLE = ("ci", "lab", "alice", "mallory")
FEW = settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


@dataclass(frozen=True)
class Receipt:
    image: Digest
    outcome: str
    by: str
    tp: int | None
    cells: tuple[tuple[int | None, int | None], ...]
    research: bool
    observed: str | None


@dataclass(frozen=True)
class Reject:
    image: Digest
    by: str
    capability: bool
    tp: int | None


@dataclass(frozen=True)
class Alias:
    first: Digest
    second: Digest
    proven: bool
    by: str


@dataclass(frozen=True)
class TakeBack:
    target: int
    by: str
    how: str


@dataclass(frozen=True)
class BuiltAndTested:
    image: Digest


Fact = Receipt | Reject | Alias | TakeBack | BuiltAndTested
_image, _person = st.sampled_from((IMAGE, IMAGE, *IMAGES)), st.sampled_from(PEOPLE)
_count = st.sampled_from([1, 1, 2, None])
RECEIPTS = st.builds(
    Receipt,
    image=_image,
    outcome=st.sampled_from(["pass"] * 6 + ["fail", "inconclusive"]),
    by=st.sampled_from(["lab", "lab", "lab", "lab2", "ci", "mallory"]),
    tp=st.sampled_from([4, 4, 4, 2, None]),
    cells=st.lists(st.tuples(_count, _count), min_size=1, max_size=2, unique=True).map(tuple),
    research=st.sampled_from([False, False, False, True]),
    observed=st.sampled_from([FRESH, FRESH, FRESH, STALE, None]),
)
GOOD = Receipt(IMAGE, "pass", "lab", 4, ((1, 1), (2, 1)), False, FRESH)
FACTS = st.one_of(
    RECEIPTS,
    RECEIPTS,
    st.builds(Reject, image=_image, by=_person, capability=st.booleans(), tp=st.sampled_from([None, 4, 2])),
    st.builds(Alias, first=_image, second=_image, proven=st.booleans(), by=st.sampled_from(["ci", "ci", "lab", "mallory"])),
    st.builds(TakeBack, target=st.integers(0, 5), by=_person, how=st.sampled_from(["retract", "retract", "supersede"])),
    st.builds(BuiltAndTested, image=_image),
)
WORLDS = st.one_of(st.lists(FACTS, max_size=7, unique=True), st.lists(FACTS, max_size=6, unique=True).map(lambda facts: [GOOD, *facts]))
ACCEPT = st.sampled_from(["qualified", "qualified, research-only", "research-only, implemented", "implemented"])


def tell(facts: Sequence[Fact]) -> tuple[Ledger, list[Record]]:
    """The ledger in which these facts were said, and the record of each fact; one that can be about nothing says nothing."""
    ledger, said = Ledger(check=False), list[Record]()
    for number, fact in enumerate(facts):
        match fact:
            case Receipt():
                cells = [{"context_tokens": tokens, "concurrency": many} for tokens, many in fact.cells]
                topology = {"tp": fact.tp, "dcp": 1, "pp": None}
                observed = {"from": None, "to": fact.observed}
                claim = "research-only" if fact.research else None
                record = ledger.receipt(
                    fact.image,
                    outcome=fact.outcome,
                    by=fact.by,
                    cells=cells,
                    scope={"topology": topology},
                    observed=observed,
                    claim=claim,
                    limitations=[str(number)],
                )
            case Reject():
                scope = {"image": str(fact.image), "topology": {"tp": fact.tp, "dcp": None, "pp": None}, "cells": [{}]}
                capability = RESTORE if fact.capability else None
                record = ledger.reject(
                    fact.image, by=fact.by, scope=scope if fact.tp else "image-wide", capability=capability, reason=str(number)
                )
            case Alias():
                record = ledger.image(fact.first, aliases=[(fact.second, fact.proven)], by=fact.by, published=[str(number)])
            case BuiltAndTested():
                ledger.image(fact.image, published=[str(number)])
                record = ledger.tests(fact.image)
            case TakeBack():
                if not said:
                    record = ledger.image(config("dd"), published=[str(number)])
                elif fact.how == "retract":
                    record = ledger.retract(said[fact.target % len(said)], by=fact.by, reason=str(number))
                else:
                    target = said[fact.target % len(said)]
                    record = ledger.supersede(target, target, by=fact.by)
        said.append(record)
    return ledger, said


# The oracle: the table as it is written, over facts


class Oracle:
    def __init__(self, facts: Sequence[Fact]) -> None:
        self.facts = facts
        self.aliases = [fact for n, fact in enumerate(facts) if isinstance(fact, Alias) and fact.by != "mallory"]

    def target(self, n: int) -> int | None:
        fact = self.facts[n]
        return fact.target % n if isinstance(fact, TakeBack) and n else None

    def taking_back(self, n: int, how: str) -> Iterator[int]:
        for other, fact in enumerate(self.facts):
            if isinstance(fact, TakeBack) and fact.how == how and self.target(other) == n and fact.by != "mallory":
                yield other

    def gone(self, n: int) -> bool:
        """Taken back by anyone with a role."""
        return any(True for how in ("retract", "supersede") for _ in self.taking_back(n, how))

    def lifted(self, n: int) -> bool:
        """Retracted by the approver, who is nobody who said it, and that not taken back."""
        said_by = getattr(self.facts[n], "by", "ci")
        by_approver = [m for m in self.taking_back(n, "retract") if getattr(self.facts[m], "by", "") == "alice" != said_by]
        return any(not any(True for _ in self.taking_back(m, "retract")) for m in by_approver)

    def same(self, image: Digest, only_proven: bool) -> set[Digest]:
        """Everything that one can walk to over aliases, one step after the other."""
        steps = set()
        for n, fact in enumerate(self.facts):
            if isinstance(fact, Alias) and fact.by != "mallory":
                if only_proven and not (fact.proven and fact.by == "ci" and not self.gone(n)):
                    continue
                steps |= {(fact.first, fact.second), (fact.second, fact.first)}
        found = {image}
        for _ in IMAGES:
            found |= {second for first, second in steps if first in found}
        return found

    def code(self, image: Digest, tp: int, tokens: int, many: int) -> str:
        names = {getattr(fact, field, None) for fact in self.facts for field in ("image", "first", "second") if self.says(fact, field)}
        if image not in names:
            return "SUBJECT_UNKNOWN"
        related = self.same(image, only_proven=False)
        own = self.same(image, only_proven=True)
        rejects = [(n, f) for n, f in enumerate(self.facts) if isinstance(f, Reject) and f.by != "mallory" and f.image in related]
        standing = [fact for n, fact in rejects if not self.lifted(n)]
        if any(not fact.capability and fact.tp is None for fact in standing):
            return "IMAGE_REJECTED"
        if any(fact.tp in (None, tp) for fact in standing):
            return "CAP_REJECTED"
        receipts = [(n, fact) for n, fact in enumerate(self.facts) if isinstance(fact, Receipt)]
        for n, fact in receipts:
            may_be = fact.tp in (None, tp) and any(a in (None, tokens) and b in (None, many) for a, b in fact.cells)
            if fact.outcome == "fail" and fact.image in related and fact.by != "mallory" and may_be and not self.lifted(n):
                return "CAP_FAILED"
        mine = [fact for n, fact in receipts if fact.image in own and fact.outcome != "fail" and not self.gone(n)]
        covering = [fact for fact in mine if fact.tp == tp and (tokens, many) in fact.cells]
        lacks = {id(fact): self.lacks(fact) for fact in covering}
        if any(not lacks[id(fact)] and not fact.research for fact in covering):
            return "OK"
        if any(fact.research for fact in covering):
            return "CAP_RESEARCH_ONLY"
        if covering:
            return min((lacks[id(fact)] for fact in covering), key=len)[0]
        tested = {fact.image for fact in self.facts if isinstance(fact, BuiltAndTested)}
        if not any(fact.image in own for _, fact in receipts) and any(self.built(n, own, tested) for n in range(len(self.facts))):
            return "CAP_UNQUALIFIED"
        return "CAP_SCOPE" if mine else "CAP_NO_EVIDENCE"

    def built(self, n: int, own: set[Digest], tested: set[Digest]) -> bool:
        """A fact that holds an image statement of one of the names, by someone who may, while some test passed for one of them."""
        fact = self.facts[n]
        if isinstance(fact, BuiltAndTested):
            return fact.image in own
        said = isinstance(fact, Alias) and fact.by == "ci" and fact.first in own and not self.gone(n)
        return said and bool(own & {image for m, image in self.tested() if not self.gone(m)})

    def tested(self) -> list[tuple[int, Digest]]:
        return [(m, fact.image) for m, fact in enumerate(self.facts) if isinstance(fact, BuiltAndTested)]

    @staticmethod
    def says(fact: Fact, field: str) -> bool:
        return field != "second" or (isinstance(fact, Alias) and fact.by != "mallory")

    @staticmethod
    def lacks(fact: Receipt) -> list[str]:
        found = ["EVIDENCE_EXPIRED"] if fact.observed != FRESH else []
        found += ["SIGNER_UNTRUSTED"] if fact.by not in ("lab", "lab2") else []
        return found + (["EVIDENCE_INCONCLUSIVE"] if fact.outcome != "pass" else [])


@cache
def demanding(accept: str = "qualified") -> ReleasePolicy:
    evidence = f"{{basis: [reported], max_age: 90d, accept: [{accept}]}}"
    return requiring(f"{RESTORE}@tp=4,dcp=1,context_tokens=1,concurrency=1", evidence)


def verdict(ledger: Ledger, records: Sequence[Record], accept: str = "qualified") -> Verdict:
    return decided(ledger, demanding(accept), records=records).verdict


@FEW
@given(facts=WORLDS)
def test_the_gate_says_what_the_oracle_says(facts: list[Fact]) -> None:
    # A test-result that is taken back leaves its image statement; the oracle is told of neither, so such worlds are left out.
    oracle = Oracle(facts)
    if any(isinstance(facts[target], BuiltAndTested) for n in range(len(facts)) if (target := oracle.target(n)) is not None):
        return
    ledger, _ = tell(facts)
    (result,) = decided(ledger, demanding()).requirements
    assert str(result.code) == oracle.code(IMAGE, 4, 1, 1)


def without_indexes(decision: Decision) -> Any:
    core = decision.core()
    core["ledger"] = None
    for requirement in core["requirements"]:
        requirement["evidence"] = sorted(json.dumps(item) for item in requirement["evidence"])
    return core


@FEW
@given(facts=WORLDS, data=st.data(), noise=st.lists(RECEIPTS, max_size=3))
def test_order_repetition_and_what_is_about_other_images_change_nothing(
    facts: list[Fact], data: st.DataObject, noise: list[Receipt]
) -> None:
    ledger, _ = tell(facts)
    wanted = without_indexes(decided(ledger, demanding()))
    extra = Ledger(check=False)
    for fact in noise:
        extra.receipt(config("ee"), outcome=fact.outcome, by=fact.by, cells=[{"context_tokens": 2, "concurrency": 1}])
    strangers = [replace(record, index=record.index + 1000) for record in extra.records]
    records = data.draw(st.permutations([*ledger.records, *strangers, *ledger.records[:2]]))
    assert without_indexes(decided(ledger, demanding(), records=records)) == wanted


def is_notice(record: Record) -> bool:
    """Whether the ledger holds the gate to reading it, whatever becomes of the rows that find it."""
    return derive(EntryKind.ATTESTATION, "application/vnd.in-toto+json", record.statement.encode()).notice


@FEW
@given(facts=WORLDS, accept=ACCEPT)
def test_a_record_that_can_be_hidden_turns_no_denial_into_an_allowance(facts: list[Fact], accept: str) -> None:
    ledger, _ = tell(facts)
    if verdict(ledger, ledger.records, accept) is Verdict.ALLOW:
        return
    hideable = [record for record in ledger.records if not is_notice(record)]
    for hidden in (*itertools.combinations(hideable, 1), *itertools.combinations(hideable, 2), hideable):
        left = [record for record in ledger.records if record not in hidden]
        assert verdict(ledger, left, accept) is Verdict.DENY


def blanked(record: Record) -> Iterator[Record]:
    """The record with one field of its scope, or of a cell of it, not recorded."""
    predicate = record.statement.predicate
    assert isinstance(predicate, dict)
    scope = predicate["scope"]
    assert isinstance(scope, dict)
    scopes: list[dict[str, Any]] = [{**scope, name: None} for name in ("image", "topology")]
    scopes += [{**scope, "topology": {**scope["topology"], name: None}} for name in ("tp", "dcp")]  # type: ignore[dict-item]  # an object
    cells: Any = scope["cells"]
    for number, cell in enumerate(cells):
        scopes += [{**scope, "cells": [*cells[:number], {**cell, name: None}, *cells[number + 1 :]]} for name in cell]
    for changed in scopes:
        statement = replace(record.statement, predicate={**predicate, "scope": changed})
        yield replace(record, statement=statement, payload=Digest.of(DigestKind.PAYLOAD, statement.encode()))


@FEW
@given(facts=WORLDS, accept=ACCEPT)
def test_a_receipt_that_records_less_turns_no_denial_into_an_allowance(facts: list[Fact], accept: str) -> None:
    ledger, said = tell([fact for fact in facts if not isinstance(fact, TakeBack)])
    if verdict(ledger, ledger.records, accept) is Verdict.ALLOW:
        return
    receipts = [record for record in said if record.statement.predicate_type == PredicateName.QUALIFICATION_RECEIPT.uri]
    for whole, less in [(receipt, less) for receipt in receipts for less in blanked(receipt)]:
        records = [less if other is whole else other for other in ledger.records]
        assert verdict(ledger, records, accept) is Verdict.DENY


@FEW
@given(facts=st.lists(RECEIPTS, max_size=8), capability=st.booleans(), accept=ACCEPT)
def test_no_number_of_passes_lifts_a_rejection(facts: list[Receipt], capability: bool, accept: str) -> None:
    ledger, _ = tell([Reject(IMAGE, "lab", capability, None), *facts, *(replace(fact, outcome="pass", image=IMAGE) for fact in facts)])
    assert verdict(ledger, ledger.records, accept) is Verdict.DENY


PINS = st.sampled_from([{"engine": {"commit": COMMIT}}, {"engine": {"commit": OTHER_COMMIT}}, {}])


@FEW
@given(
    built=st.lists(st.tuples(st.sampled_from([COMMIT, OTHER_COMMIT]), st.sampled_from(["ci", "lab", "mallory"])), max_size=3),
    verdicts=st.lists(st.tuples(st.sampled_from(["pass", "fail"]), PINS, st.sampled_from(["ci", "lab", "mallory"])), max_size=3),
    taken_back=st.lists(st.tuples(st.integers(0, 5), _person), max_size=2),
)
def test_a_contract_that_does_not_hold_holds_with_no_less_said(
    built: list[tuple[str, str]], verdicts: list[tuple[str, dict[str, dict[str, str]], str]], taken_back: list[tuple[int, str]]
) -> None:
    ledger = Ledger(check=False)
    for number, (commit, by) in enumerate(built):
        ledger.image(IMAGE, components={"engine": {"commit": f"git-commit:{commit}"}}, by=by, published=[str(number)])
    for outcome, pins, by in verdicts:
        ledger.verdict(outcome, pins=pins, by=by)
    for target, by in taken_back[: len(ledger.records)]:
        ledger.retract(ledger.records[target % len(ledger.records)], by=by)
    demand = _contract_demand()
    if decided(ledger, demand).verdict is Verdict.ALLOW:
        counting = [number for number, (_, _, by) in enumerate(verdicts) if by == "ci"]
        assert counting
        assert any(commit == COMMIT for commit, by in built if by == "ci") or any(commit == OTHER_COMMIT for commit, _ in built)
        return
    for record in ledger.records:
        if not is_notice(record):
            left = [other for other in ledger.records if other is not record]
            assert decided(ledger, demand, records=left).verdict is Verdict.DENY


@pytest.mark.parametrize("subject", [config("a1"), manifest("a1"), index("a1")])
def test_an_empty_ledger_allows_nothing(subject: Digest) -> None:
    assert verdict(Ledger(), [], "implemented, unsupported, unqualified") is Verdict.DENY
    assert decided(Ledger(), demanding(), subject).verdict is Verdict.DENY


_WORDS = [
    "pass",
    "fail",
    "image-wide",
    "serving",
    RESTORE,
    "not-recorded",
    "none",
    "",
    str(IMAGE),
    "oci-config:sha256:00",
    "TP4/DCP1",
    FRESH,
    "x",
]
_FIELDS = [
    *("capability", "outcome", "basis", "claim", "claims", "scope", "controls", "observed", "to", "runs", "rests_on", "limitations"),
    *("image", "topology", "tp", "model", "cells", "context_tokens", "concurrency", "aliases", "digest", "proven", "verified", "platform"),
    *("built_from", "components", "engine", "commit", "pins", "binds_image", "contract", "id", "version", "findings", "checkers"),
    *("severity", "location", "file", "line", "evaluated", "of", "reason", "required", "text", "test_results", "ranks", "rungs", "checks"),
]
_LEAF = st.one_of(st.none(), st.booleans(), st.integers(-1, 2**53 - 1), st.sampled_from(_WORDS))
_JSON: st.SearchStrategy[Any] = st.recursive(
    _LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_FIELDS), inner, max_size=6), max_leaves=25
)
_GARBAGE = st.tuples(
    st.sampled_from([*PredicateName, None]),
    st.dictionaries(st.sampled_from(_FIELDS), _JSON, max_size=9) | st.none(),
    st.sampled_from([IMAGE, *IMAGES]),
    _person,
)


@FEW
@given(items=st.lists(_GARBAGE, max_size=5))
def test_whatever_the_ledger_holds_there_is_a_decision(items: list[tuple[PredicateName | None, Any, Digest, str]]) -> None:
    """No schema has seen what an old or a hostile writer may have put there."""
    ledger = Ledger(check=False)
    for name, predicate, about, by in items:
        ledger.say_unchecked(name.uri if name else TEST_RESULT, Subject.of(about), by, predicate)
    for receipt in list(ledger.records):
        ledger.receipt(rests_on=[receipt], limitations=[str(receipt.payload)])
    ledger.image(IMAGE, components={"engine": {"commit": f"git-commit:{COMMIT}"}})
    for demand in (demanding(), _contract_demand()):
        decision = decided(ledger, demand)
        assert len(decision.id) == 26
        assert explain(decision).startswith(str(decision.verdict))


@cache
def _contract_demand() -> ReleasePolicy:
    return policy("    - {id: c, contract: serving}")
