"""The table of derived statuses, row by row, as the gate answers it for one demanded capability."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from countermark.attestations.codes import Code, Outcome, Status
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import Subject
from countermark.attestations.times import Instant
from countermark.attestations.trust import Role
from countermark.contracts.decision import Decision
from countermark.contracts.evidence import Record
from countermark.contracts.status import ROWS as CODES

from .gate_world import AT_131072, IMAGE, OTHER, RESTORE, Ledger, ask, code, manifest, policy, requiring, trust

STRICT = "{basis: [measured, reported], max_age: 90d}"
STRUCTURAL = "restore.structural@tp=4,dcp=1,context_tokens=131072"


def asked(
    ledger: Ledger, require: str = AT_131072, evidence: str = "{basis: [measured, reported], max_age: none}", **more: Any
) -> Decision:
    return ask(ledger, requiring(require, evidence), **more)


def nothing(ledger: Ledger) -> None:
    del ledger


def passes(ledger: Ledger) -> None:
    ledger.receipt()


def image_only(ledger: Ledger) -> None:
    ledger.image(IMAGE)


def built_and_tested(ledger: Ledger) -> None:
    ledger.image(IMAGE)
    ledger.tests(IMAGE)


def built_and_broken(ledger: Ledger) -> None:
    ledger.image(IMAGE)
    ledger.tests(IMAGE, "FAILED")


def rejected(ledger: Ledger) -> None:
    ledger.receipt()
    ledger.reject()


def capability_rejected(ledger: Ledger) -> None:
    ledger.receipt()
    ledger.reject(capability=RESTORE)


def rejected_in_the_same_scope(ledger: Ledger) -> None:
    ledger.receipt()
    ledger.reject(scope={"image": str(IMAGE), "topology": "TP4/DCP1", "cells": [{"context_tokens": 131072}]})


def rejected_in_another_scope(ledger: Ledger) -> None:
    ledger.receipt()
    ledger.reject(scope={"image": str(IMAGE), "topology": "TP2/DCP1", "cells": [{}]})


def another_capability_rejected(ledger: Ledger) -> None:
    ledger.receipt()
    ledger.reject(capability="restore.performance")


def failed_beside_a_pass(ledger: Ledger) -> None:
    ledger.receipt()
    ledger.receipt(outcome="fail")


def failed_without_saying_where(ledger: Ledger) -> None:
    ledger.receipt()
    ledger.receipt(outcome="fail", scope={"topology": None}, cells=[{}])


def failed_elsewhere(ledger: Ledger) -> None:
    ledger.receipt()
    ledger.receipt(outcome="fail", cells=[{"context_tokens": 262144, "concurrency": 1}])


def a_control_fails(ledger: Ledger) -> None:
    ledger.receipt(controls={"exact-answer": "fail"})


def research_only(ledger: Ledger) -> None:
    ledger.receipt(claim="research-only")


def by_a_builder(ledger: Ledger) -> None:
    ledger.receipt(by="ci")


def by_a_stranger(ledger: Ledger) -> None:
    ledger.receipt(by="mallory")


def inconclusive(ledger: Ledger) -> None:
    ledger.receipt(outcome="inconclusive")


def says_too_little(ledger: Ledger) -> None:
    ledger.receipt(controls={"exact-answer": "not-recorded"})


def in_another_topology(ledger: Ledger) -> None:
    ledger.receipt(scope={"topology": "TP2/DCP1"})


def topology_not_recorded(ledger: Ledger) -> None:
    ledger.receipt(scope={"topology": None, "ranks": 4})


def cells_that_are_not_together(ledger: Ledger) -> None:
    ledger.receipt(cells=[{"context_tokens": 262144, "concurrency": 1}, {"context_tokens": 131072, "concurrency": 8}])


def of_another_image(ledger: Ledger) -> None:
    ledger.image(IMAGE)
    ledger.receipt(OTHER)


def of_the_same_hex_as_a_manifest(ledger: Ledger) -> None:
    ledger.image(IMAGE)
    ledger.receipt(manifest("a1"))


def of_another_capability(ledger: Ledger) -> None:
    ledger.receipt(capability="service.startup")


ROWS: list[tuple[Callable[[Ledger], None], Status, Code]] = [
    (nothing, Status.UNQUALIFIED, Code.SUBJECT_UNKNOWN),
    (rejected, Status.REJECTED, Code.IMAGE_REJECTED),
    (capability_rejected, Status.REJECTED, Code.CAP_REJECTED),
    (rejected_in_the_same_scope, Status.REJECTED, Code.CAP_REJECTED),
    (rejected_in_another_scope, Status.QUALIFIED, Code.OK),
    (another_capability_rejected, Status.QUALIFIED, Code.OK),
    (failed_beside_a_pass, Status.UNQUALIFIED, Code.CAP_FAILED),
    (failed_without_saying_where, Status.UNQUALIFIED, Code.CAP_FAILED),
    (failed_elsewhere, Status.QUALIFIED, Code.OK),
    (a_control_fails, Status.UNQUALIFIED, Code.CAP_FAILED),
    (passes, Status.QUALIFIED, Code.OK),
    (research_only, Status.RESEARCH_ONLY, Code.CAP_RESEARCH_ONLY),
    (by_a_builder, Status.UNQUALIFIED, Code.SIGNER_UNTRUSTED),
    (by_a_stranger, Status.UNQUALIFIED, Code.SIGNER_UNTRUSTED),
    (inconclusive, Status.UNQUALIFIED, Code.EVIDENCE_INCONCLUSIVE),
    (says_too_little, Status.UNQUALIFIED, Code.CONTROLS_INCOMPLETE),
    (built_and_tested, Status.IMPLEMENTED, Code.CAP_UNQUALIFIED),
    (built_and_broken, Status.UNSUPPORTED, Code.CAP_NO_EVIDENCE),
    (in_another_topology, Status.UNSUPPORTED, Code.CAP_SCOPE),
    (topology_not_recorded, Status.UNSUPPORTED, Code.CAP_SCOPE),
    (cells_that_are_not_together, Status.UNSUPPORTED, Code.CAP_SCOPE),
    (image_only, Status.UNSUPPORTED, Code.CAP_NO_EVIDENCE),
    (of_another_image, Status.UNSUPPORTED, Code.CAP_NO_EVIDENCE),
    (of_the_same_hex_as_a_manifest, Status.UNSUPPORTED, Code.CAP_NO_EVIDENCE),
    (of_another_capability, Status.UNSUPPORTED, Code.CAP_NO_EVIDENCE),
]


@pytest.mark.parametrize(("world", "status", "expected"), ROWS, ids=[row[0].__name__ for row in ROWS])
def test_each_row_of_the_table(world: Callable[[Ledger], None], status: Status, expected: Code) -> None:
    ledger = Ledger()
    world(ledger)
    decision = asked(ledger)
    (result,) = decision.requirements
    assert (result.status, result.code) == (status, expected)
    assert code(decision) == ("ALLOW OK" if expected is Code.OK else f"DENY {expected}")
    assert result.outcome is (Outcome.PASS if expected is Code.OK else Outcome.FAIL)
    assert bool(result.fix) is (expected is not Code.OK)


def test_every_row_is_tried() -> None:
    tried = {expected for _, _, expected in ROWS}
    elsewhere = {Code.EVIDENCE_EXPIRED, Code.EVIDENCE_BASIS, Code.RUNS_TOO_FEW, Code.RECEIPT_CONTRADICTED}
    barred = {Code.SUBJECT_UNKNOWN, Code.IMAGE_REJECTED}
    assert tried | elsewhere == set(CODES) | barred


@pytest.mark.parametrize(
    ("evidence", "receipt", "expected"),
    [
        (STRICT, {}, "ALLOW OK"),
        (STRICT, {"observed": {"from": None, "to": "2026-09-02T00:00:00Z"}}, "ALLOW OK"),
        (STRICT, {"observed": {"from": None, "to": "2026-09-01T23:59:59Z"}}, "DENY EVIDENCE_EXPIRED"),
        (STRICT, {"observed": {"from": None, "to": "2026-09-02T02:00:00+02:00"}}, "ALLOW OK"),
        (STRICT, {"observed": {"from": None, "to": None}}, "DENY EVIDENCE_EXPIRED"),
        (STRICT, {"observed": None}, "DENY EVIDENCE_EXPIRED"),
        (STRICT, {"observed": {"from": None, "to": "2026-11-30T13:00:00Z"}}, "DENY EVIDENCE_EXPIRED"),
        ("{basis: [measured, reported], max_age: none}", {"observed": None}, "ALLOW OK"),
        ("{max_age: none}", {}, "DENY EVIDENCE_BASIS"),
        ("{}", {"observed": None}, "DENY EVIDENCE_EXPIRED"),
        ("{basis: [measured, reported], min_runs: 2}", {}, "DENY RUNS_TOO_FEW"),
        ("{basis: [measured, reported], min_runs: 2}", {"runs": None}, "DENY RUNS_TOO_FEW"),
        ("{basis: [measured, reported], min_runs: 2}", {"runs": 2}, "ALLOW OK"),
        ("{basis: [measured, reported], min_boots: 2}", {"boots": 1}, "DENY RUNS_TOO_FEW"),
        ("{basis: [measured, reported], signed_by: approver}", {}, "DENY SIGNER_UNTRUSTED"),
    ],
)
def test_what_a_policy_asks_of_evidence(evidence: str, receipt: dict[str, Any], expected: str) -> None:
    ledger = Ledger()
    ledger.receipt(**receipt)
    assert code(asked(ledger, evidence=evidence)) == expected


def test_all_that_a_receipt_lacks_is_told_in_the_order_of_the_codes() -> None:
    ledger = Ledger()
    ledger.receipt(by="ci", observed=None, controls={}, runs=1)
    (result,) = asked(ledger, evidence="{min_runs: 2}").requirements
    lacks = ["EVIDENCE_EXPIRED", "EVIDENCE_BASIS", "CONTROLS_INCOMPLETE", "SIGNER_UNTRUSTED", "RUNS_TOO_FEW"]
    places = [result.observed.index(name) for name in lacks]
    assert places == sorted(places)
    assert result.code is Code.EVIDENCE_EXPIRED


def test_an_answer_says_when_age_alone_can_change_it() -> None:
    ledger = Ledger()
    ledger.receipt()
    decision = asked(ledger, evidence=STRICT)
    assert str(decision.next_expiry) == "2027-02-27T01:00:00Z"
    assert asked(ledger).next_expiry is None
    later = asked(ledger, evidence=STRICT, now=Instant.parse("2027-02-27T01:00:01Z"))
    assert (code(later), later.next_expiry) == ("DENY EVIDENCE_EXPIRED", None)


def test_of_several_that_cover_the_first_is_used() -> None:
    ledger = Ledger()
    first, second = ledger.receipt(), ledger.receipt(runs=2)
    (result,) = asked(ledger).requirements
    assert [(item.payload, item.used) for item in result.evidence] == [(first.payload, True), (second.payload, False)]
    assert result.evidence[1].why == "an earlier receipt or a failure decides"


def test_each_demanded_cell_may_be_covered_by_another_receipt_of_the_image() -> None:
    line = f"    - {{id: r, capability: {RESTORE}, scope: {{topology: TP4/DCP1, context_tokens: [131072, 262144], concurrency: 1}}}}"
    ledger = Ledger()
    ledger.receipt()
    (result,) = ask(ledger, policy(line)).requirements
    assert result.code is Code.CAP_SCOPE
    assert "required 262144" in result.observed
    assert "(1 of 2 points hold)" in result.observed
    ledger.receipt(cells=[{"context_tokens": 262144, "concurrency": 1}])
    decision = ask(ledger, policy(line))
    assert code(decision) == "ALLOW OK"
    assert [item.used for item in decision.requirements[0].evidence] == [True, True]


def test_receipts_of_other_images_are_told_and_do_not_transfer() -> None:
    ledger = Ledger()
    of_another_image(ledger)
    assert "1 receipts of other images match, and results do not transfer" in asked(ledger).requirements[0].observed


@pytest.mark.parametrize("accept", ["research-only", "qualified, research-only", "implemented, research-only"])
def test_a_policy_may_accept_research(accept: str) -> None:
    ledger = Ledger()
    research_only(ledger)
    evidence = f"{{basis: [measured, reported], accept: [{accept}]}}"
    (result,) = asked(ledger, evidence=evidence).requirements
    assert (result.code, result.status, result.outcome) == (Code.CAP_RESEARCH_ONLY, Status.RESEARCH_ONLY, Outcome.PASS)
    ledger.receipt()
    assert code(asked(ledger, evidence=evidence)) == "ALLOW OK"


def test_accepted_research_must_be_as_good_as_other_evidence() -> None:
    ledger = Ledger()
    ledger.receipt(claim="research-only", observed=None)
    assert code(asked(ledger, evidence="{basis: [measured, reported], accept: [research-only]}")) == "DENY CAP_RESEARCH_ONLY"


def test_what_is_accepted_as_implemented_stays_so_when_more_is_known() -> None:
    ledger = Ledger()
    built_and_tested(ledger)
    evidence = "{basis: [measured, reported], accept: [implemented]}"
    assert code(asked(ledger, evidence=evidence)) == "ALLOW CAP_UNQUALIFIED"
    ledger.receipt(observed=None)
    assert code(asked(ledger, evidence=evidence)) == "ALLOW CAP_UNQUALIFIED"
    ledger.receipt(outcome="fail")
    assert code(asked(ledger, evidence=evidence)) == "DENY CAP_FAILED"


# What a receipt rests on


def restore_run(ledger: Ledger, about: Digest = IMAGE, device: str = "cuda", outcome: str = "pass", **fields: Any) -> Record:
    rung = {"outcome": outcome, "controls": []}
    predicate = {
        "engine": {"version": "0.1.0", "source": f"git-commit:{'5e' * 20}", "kernel_source_sha256": "a" * 64},
        "device": {"kind": device, "driver": "present" if device == "cuda" else "absent"},
        "tuple": {"image": str(about)},
        "plan": f"file:sha256:{'b' * 64}",
        "ranks": [],
        "rungs": {"1-signed-root": rung, "2-coverage": rung, "3-readback": rung},
        "trace": {"events": 1, "digest": f"file:sha256:{'c' * 64}"},
        "outcome": "verified",
        **fields,
    }
    rank = {"rank": 0, "structural": "pass", "image": str(about)}
    return ledger.say_unchecked(PredicateName.RESTORE_RUN.uri, Subject.of(about), "lab", {**predicate, "ranks": [rank]})


STRUCTURAL_PASS: dict[str, Any] = {
    "capability": "restore.structural",
    "basis": "measured",
    "controls": {"signed-root": "pass", "coverage": "pass", "readback": "pass"},
    "cells": [{"context_tokens": 131072}],
}


def test_our_own_run_on_a_gpu_is_measured() -> None:
    ledger = Ledger()
    ledger.receipt(**STRUCTURAL_PASS, rests_on=[restore_run(ledger)])
    assert code(asked(ledger, STRUCTURAL, "{}")) == "ALLOW OK"


@pytest.mark.parametrize("device", ["cpu", "simulated"])
def test_a_run_without_the_accelerator_shows_that_it_is_implemented(device: str) -> None:
    ledger = Ledger()
    ledger.receipt(**STRUCTURAL_PASS, rests_on=[restore_run(ledger, device=device)])
    decision = asked(ledger, STRUCTURAL, "{}")
    assert code(decision) == "DENY CAP_UNQUALIFIED"
    assert decision.requirements[0].status is Status.IMPLEMENTED


def test_a_structural_pass_qualifies_no_answer() -> None:
    ledger = Ledger()
    ledger.receipt(**STRUCTURAL_PASS, rests_on=[restore_run(ledger)])
    assert code(asked(ledger)) == "DENY CAP_NO_EVIDENCE"
    run = restore_run(ledger)
    ledger.receipt(basis="measured", controls=dict.fromkeys(("all-ranks-structural", "exact-answer"), "pass"), rests_on=[run])
    assert code(asked(ledger)) == "DENY RECEIPT_CONTRADICTED"


CONTRADICTIONS: dict[str, Callable[[Ledger], Any]] = {
    "the basis is better than it computes to": lambda ledger: ledger.receipt(basis="measured"),
    "the run is of another image": lambda ledger: ledger.receipt(**STRUCTURAL_PASS, rests_on=[restore_run(ledger, OTHER)]),
    "the run did not restore": lambda ledger: ledger.receipt(**STRUCTURAL_PASS, rests_on=[restore_run(ledger, outcome="fail")]),
    "the document claims nothing of the kind": lambda ledger: ledger.receipt(rests_on=[ledger.document()]),
    "the statement cannot show it": lambda ledger: ledger.receipt(rests_on=[ledger.image(IMAGE)]),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_receipt_that_says_more_than_it_rests_on_never_satisfies(name: str) -> None:
    ledger = Ledger()
    receipt = CONTRADICTIONS[name](ledger)
    require = STRUCTURAL if receipt.statement.predicate["capability"] == "restore.structural" else AT_131072
    decision = asked(ledger, require)
    assert code(decision) == "DENY RECEIPT_CONTRADICTED", decision.requirements[0].observed


def claim(**changes: Any) -> dict[str, Any]:
    return {
        "capability": RESTORE,
        "outcome": "pass",
        "claim": None,
        "source": "/a",
        "derived": [],
        "observed": {"from": None, "to": "2026-11-29T01:00:00Z"},
        "controls": {},
        "scope": {"image": str(IMAGE), "topology": "TP4/DCP1/PP1", "cells": [{"context_tokens": 131072, "concurrency": 1}]},
        **changes,
    }


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"outcome": "fail"}, "does not claim a pass"),
        ({"outcome": "inconclusive"}, "does not claim a pass"),
        ({"claim": "research-only"}, "no more than research-only"),
        ({"controls": {"exact-answer": "fail"}}, "its control exact-answer fails"),
        ({"observed": None}, "observed later than the document"),
        ({"observed": {"from": None, "to": "2026-11-01T00:00:00Z"}}, "observed later than the document"),
        ({"scope": {"image": str(IMAGE), "cells": [{"context_tokens": 131072, "concurrency": 1}]}}, "covers more than the document"),
        ({"scope": {"image": str(OTHER), "topology": "TP4/DCP1/PP1", "cells": [{}]}}, "covers more than the document"),
        ({"capability": "restore.performance"}, "covers more than the document"),
    ],
)
def test_a_receipt_is_held_against_the_claims_of_its_document(changes: dict[str, Any], why: str) -> None:
    ledger = Ledger()
    ledger.receipt(rests_on=[ledger.document(claim(**changes))])
    (result,) = asked(ledger).requirements
    assert result.code is (Code.RECEIPT_CONTRADICTED if why else Code.OK)
    assert why in result.observed


def test_a_claim_about_another_cell_does_not_disturb() -> None:
    ledger = Ledger()
    elsewhere = claim(outcome="fail", scope={"image": str(IMAGE), "cells": [{"context_tokens": 262144}]})
    ledger.receipt(rests_on=[ledger.document(claim(), elsewhere)])
    assert code(asked(ledger)) == "ALLOW OK"


@pytest.mark.parametrize("how", ["missing", "stranger", "retracted", "nothing"])
def test_a_receipt_that_rests_on_nothing_usable_is_incomplete(how: str) -> None:
    ledger = Ledger()
    document = ledger.document(claim(), by="mallory" if how == "stranger" else "ci")
    ledger.receipt(rests_on=[document])
    records = list(ledger.records)
    if how == "missing":
        records.remove(document)
    if how == "retracted":
        records.append(ledger.retract(document, by="ci"))
    if how == "nothing":
        fields = dict(records[-1].statement.predicate or {}, rests_on=[])  # type: ignore[arg-type]  # a predicate is an object here
        records[-1] = ledger.say_unchecked(PredicateName.QUALIFICATION_RECEIPT.uri, records[-1].statement.subjects[0], "lab", fields)
    assert code(asked(ledger, records=records)) == "DENY CONTROLS_INCOMPLETE"


# Taking back


def test_a_rejection_is_sticky() -> None:
    ledger = Ledger()
    rejection = ledger.reject(by="lab")
    for _ in range(3):
        ledger.receipt(runs=len(ledger.records))
    ledger.retract(rejection, by="lab")
    ledger.retract(rejection, by="ci")
    ledger.retract(rejection, by="mallory")
    ledger.supersede(rejection, ledger.records[-1])
    assert code(asked(ledger)) == "DENY IMAGE_REJECTED"
    ledger.retract(rejection, by="alice", reason=" ")
    assert code(asked(ledger)) == "DENY IMAGE_REJECTED"
    ledger.retract(rejection, by="alice")
    assert code(asked(ledger)) == "ALLOW OK"


def test_nobody_retracts_a_rejection_of_their_own() -> None:
    ledger = Ledger(trust(members={"qualifier": ["lab", "alice"]}))
    ledger.receipt()
    rejection = ledger.reject(by="alice")
    ledger.retract(rejection, by="alice")
    assert code(asked(ledger)) == "DENY IMAGE_REJECTED"
    ledger.retract(rejection, by="bob")
    assert code(asked(ledger)) == "ALLOW OK"


def test_a_retraction_that_is_taken_back_lifts_nothing() -> None:
    ledger = Ledger()
    ledger.receipt()
    retraction = ledger.retract(ledger.reject(), by="alice")
    ledger.retract(retraction, by="lab")
    assert code(asked(ledger)) == "DENY IMAGE_REJECTED"


def test_a_single_operator_retracts_no_rejection() -> None:
    ledger = Ledger(trust(single_operator=True))
    ledger.receipt()
    ledger.retract(ledger.reject(), by="alice")
    decision = asked(ledger)
    assert code(decision) == "DENY IMAGE_REJECTED"
    assert decision.notes == ("SINGLE_OPERATOR",)


@pytest.mark.parametrize("role", ["ci", "lab", "alice", "gate"])
def test_anyone_with_a_role_may_reject(role: str) -> None:
    ledger = Ledger()
    ledger.receipt()
    ledger.reject(by=role)
    assert code(asked(ledger)) == "DENY IMAGE_REJECTED"


def test_a_stranger_rejects_nothing() -> None:
    ledger = Ledger()
    ledger.receipt()
    ledger.reject(by="mallory")
    assert code(asked(ledger)) == "ALLOW OK"


def test_revoking_a_key_takes_away_what_it_granted_and_nothing_that_it_refused() -> None:
    ledger = Ledger()
    ledger.receipt()
    ledger.reject(OTHER, by="lab2")
    ledger.receipt(OTHER, by="lab")
    labs = [record for record in ledger.records if record.signers != ("ci",)]
    revoked = [replace(record, code=Code.KEY_REVOKED, roles=()) if record in labs else record for record in ledger.records]
    assert code(asked(ledger, records=revoked)) == "DENY SIGNER_UNTRUSTED"
    assert code(asked(ledger, records=revoked, subject=OTHER)) == "DENY IMAGE_REJECTED"


@pytest.mark.parametrize("how", ["retract", "supersede", "reject"])
def test_a_pass_that_is_taken_back_is_no_evidence(how: str) -> None:
    ledger = Ledger()
    receipt = ledger.receipt()
    match how:
        case "retract":
            ledger.retract(receipt, by="lab")
        case "supersede":
            ledger.supersede(receipt, ledger.image(IMAGE))
        case _:
            ledger.reject(receipt.payload)
    decision = asked(ledger)
    assert code(decision) == "DENY CAP_NO_EVIDENCE"
    assert [item.why for item in decision.requirements[0].evidence] == ["it was taken back"]


def test_a_failure_is_lifted_by_an_approver_only() -> None:
    ledger = Ledger()
    ledger.receipt()
    failure = ledger.receipt(outcome="fail")
    ledger.supersede(failure, ledger.records[1])
    ledger.retract(failure, by="lab2")
    assert code(asked(ledger)) == "DENY CAP_FAILED"
    ledger.retract(failure, by="bob")
    assert code(asked(ledger)) == "ALLOW OK"


def test_one_who_holds_two_roles_that_must_be_apart_acts_in_neither() -> None:
    ledger = Ledger(trust(members={"builder": ["ci", "lab"]}, separate=[("builder", "qualifier")]))
    ledger.receipt(by="lab")
    assert code(asked(ledger)) == "DENY SIGNER_UNTRUSTED"
    ledger.receipt(by="lab2", runs=2)
    assert code(asked(ledger)) == "ALLOW OK"


def test_signatures_over_one_payload_count_together() -> None:
    two = Role("approver", ("alice", "bob"), 2, frozenset({PredicateName.RETRACTION.uri}))
    one = trust()
    ledger = Ledger(replace(one, roles={**one.roles, "approver": two}))
    ledger.receipt()
    rejection = ledger.reject()
    ledger.records[-1:] = [rejection]
    for person in ("alice", "alice", "bob"):
        assert code(asked(ledger)) == "DENY IMAGE_REJECTED"
        record = ledger.retract(rejection, by=person)
        ledger.records[-1] = replace(record, code=Code.THRESHOLD)
    assert code(asked(ledger)) == "ALLOW OK"


def test_a_rejection_of_an_untyped_digest_counts() -> None:
    ledger = Ledger()
    ledger.receipt()
    fields: dict[str, Any] = {"scope": "image-wide", "reason": "wrong", "rests_on": [], "observed_time": None}
    ledger.say(PredicateName.REJECTION.uri, Subject({"sha256": IMAGE.hex}), "lab", fields)
    assert code(asked(ledger)) == "DENY IMAGE_REJECTED"
    other = Subject({"sha256": IMAGE.hex}, annotations={"digestKind": str(DigestKind.FILE)})
    records = [*ledger.records[:-1], ledger.say(PredicateName.REJECTION.uri, other, "lab", fields)]
    assert code(asked(ledger, records=records)) == "ALLOW OK"
