"""Waivers: one that keeps every rule lets a release go on and leaves the requirement red; any other changes nothing, and is told."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countermark.attestations.codes import Code, ExitCode, Outcome
from countermark.attestations.times import Instant
from countermark.contracts.decision import Mode
from countermark.contracts.explain_text import explain
from countermark.contracts.summary import verification_summary

from .gate_world import IMAGE, NOW, OTHER, RESTORE, Ledger, config, manifest
from .waiver_world import GOOD, REQUIRES, STARTUP, changed, lab, outcome, people, reasons, waive, world


def test_a_waiver_that_keeps_every_rule_lets_the_release_go_on_and_the_requirement_stays_red() -> None:
    ledger = world()
    assert outcome(ledger).verdict == "DENY"
    waive(ledger)
    decision = outcome(ledger)
    startup, restore = decision.requirements
    assert (decision.verdict, decision.exit, decision.evaluated, decision.satisfied) == ("ALLOW", ExitCode.YES, 2, 1)
    assert (startup.outcome, startup.code, startup.waived_by) == (Outcome.FAIL, Code.EVIDENCE_EXPIRED, "w-1@1")
    assert startup.next_expiry == Instant.parse("2026-12-04T22:00:00Z")
    assert (restore.outcome, restore.waived_by) == (Outcome.PASS, None)
    (weighed,) = decision.waivers
    assert (weighed.used, weighed.approved_by) == (True, ("alice", "bob"))
    assert [item.digest for item in decision.inputs.waivers] == [weighed.payload]
    text = explain(decision)
    assert "✗ startup" in text
    assert "waived    by w-1@1 until 2026-12-04T22:00:00Z, for EVIDENCE_EXPIRED" in text
    assert "asked by lab, approved by alice, bob; OPS-77: the rig is down" in text


def test_the_summary_of_a_waived_requirement_omits_its_level_and_names_the_waiver() -> None:
    ledger = world()
    (first, _) = waive(ledger)
    summary = verification_summary(outcome(ledger), NOW)
    assert summary["verificationResult"] == "PASSED"
    assert summary["verifiedLevels"] == [f"QUALIFIED:{RESTORE}"]
    assert {"digest": {"sha256": first.payload.hex}} in summary["inputAttestations"]  # type: ignore[operator]  # a list


def test_a_capability_of_which_one_requirement_is_waived_has_no_level_from_another() -> None:
    requires = f"    - {{id: fresh, capability: {STARTUP}}}\n" + REQUIRES
    ledger = world()
    waive(ledger)
    decision = outcome(ledger, lab(requires=requires))
    assert decision.verdict == "ALLOW"
    assert verification_summary(decision, NOW)["verifiedLevels"] == [f"QUALIFIED:{RESTORE}"]


def test_warn_mode_keeps_deny_on_record_and_passes_nothing() -> None:
    decision = outcome(world(), mode=Mode.WARN)
    assert (decision.verdict, decision.exit) == ("DENY", ExitCode.YES)
    assert verification_summary(decision, NOW)["verificationResult"] == "FAILED"
    ledger = world()
    waive(ledger)
    assert verification_summary(outcome(ledger, mode=Mode.WARN), NOW)["verificationResult"] == "FAILED"


@dataclass(frozen=True)
class Wrong:
    name: str
    why: str
    document: dict[str, Any]
    by: tuple[str, ...] = ("alice", "bob")
    about: Any = None


WRONG = (
    Wrong("another image's digest", "it names oci-config:", changed(subject=str(OTHER))),
    Wrong("another image", "it names oci-config:", changed(subject=str(OTHER)), about=OTHER),
    Wrong("another kind of the same hex", "it names oci-manifest:", changed(subject=str(manifest("a1"))), about=manifest("a1")),
    Wrong("about another image than it names", "its subject is another image", GOOD, about=manifest("a1")),
    Wrong("another policy", "it is for policy other, and this is lab", changed(policy="other")),
    Wrong("no requirement of the policy", "policy lab has no requirement start", changed(requirement="start")),
    Wrong("another requirement", "policy lab does not let restore be waived", changed(requirement="restore")),
    Wrong("another code", "it covers CAP_SCOPE, and startup fails with EVIDENCE_EXPIRED", changed(codes=["CAP_SCOPE"])),
    Wrong("codes that never are", "IMAGE_REJECTED can never be waived", changed(codes=["IMAGE_REJECTED"])),
    Wrong("self-approved", "alice asks and approves", changed(requested_by="alice")),
    Wrong("self-approved alone", "lab is no approver", changed(approved_by=["lab"]), ("lab",)),
    Wrong("asked by nobody known", "zoe, who asks, is no principal", changed(requested_by="zoe")),
    Wrong("approved by nobody", "it names nobody who approves it", changed(approved_by=[])),
    Wrong("approved by nobody known", "zoe is no approver", changed(approved_by=["zoe"])),
    Wrong("one approval missing", "not approved by bob", GOOD, ("alice",)),
    Wrong("approved by others than it names", "not approved by alice, bob", GOOD, ("carol",)),
    Wrong("expired", "it ended at 2026-11-30T23:59:59Z", changed(expires="2026-11-30T23:59:59Z")),
    Wrong("not begun", "it begins at 2026-12-01T00:00:01Z", changed(not_before="2026-12-01T00:00:01Z")),
    Wrong("upside down", "before it begins at", changed(not_before="2026-12-09T00:00:00Z")),
    Wrong("too long", "longer than the 14 days of policy lab", changed(expires="2026-12-14T00:00:01Z")),
    Wrong("far in the future", "longer than the 14 days", changed(expires="9999-12-31T23:59:59Z")),
    Wrong("no offset", "it is no whole waiver", changed(expires="2026-12-05T00:00:00")),
    Wrong("a day", "it is no whole waiver", changed(expires="2026-12-05")),
    Wrong("a day that is none", "it is no whole waiver", changed(expires="2026-02-30T00:00:00Z")),
    Wrong("next tuesday", "it is no whole waiver", changed(expires="next tuesday")),
    Wrong("no end", "it is no whole waiver", changed(expires=None)),
    Wrong("no reason", "it is no whole waiver", changed(reason=None)),
    Wrong("no ticket", "it is no whole waiver", changed(ticket=None)),
    Wrong("all codes", "it is no whole waiver", changed(codes=["*"])),
    Wrong("no codes", "it is no whole waiver", changed(codes=[])),
    Wrong("more than a waiver has", "it is no whole waiver", changed(scope="any")),
    Wrong("another document", "it is no whole waiver", {**GOOD, "kind": "Profile"}),
)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_any_other_waiver_changes_nothing_and_is_told(wrong: Wrong) -> None:
    ledger = world()
    before = outcome(ledger)
    waive(ledger, wrong.document, wrong.by, wrong.about)
    decision = outcome(ledger)
    assert decision.verdict == "DENY"
    assert decision.requirements == before.requirements
    assert wrong.why in reasons(decision)
    assert decision.inputs.waivers == ()
    assert "changes nothing: " in explain(decision)


def test_thresholds_count_principals_and_approvers_are_judged_by_the_trust_policy() -> None:
    alone = changed(approved_by=["alice"])
    ledger = world()
    waive(ledger, alone, ("alice", "alice"))
    assert outcome(ledger).verdict == "ALLOW"
    strict = world(_two_of_three())
    waive(strict, alone, ("alice", "alice"))
    assert "needs 2 of 3 principals, 1 approve" in reasons(outcome(strict))
    waive(strict)
    assert outcome(strict).verdict == "ALLOW"


def _two_of_three() -> Any:
    from dataclasses import replace

    policy = people()
    roles = {**policy.roles, "approver": replace(policy.roles["approver"], k=2)}
    return replace(policy, roles=roles)


def test_a_key_that_is_no_longer_believed_approves_nothing() -> None:
    ledger = world()
    (record, _) = waive(ledger)
    ledger.records = [item for item in ledger.records if item.signers != ("bob",)]
    ledger.say_unchecked(record.statement.predicate_type, record.statement.subjects[0], "bob", GOOD, code=Code.KEY_REVOKED)
    assert "not approved by bob" in reasons(outcome(ledger))


def test_one_operator_waives_nothing() -> None:
    ledger = world(people(single_operator=True))
    waive(ledger)
    assert "one person holds all roles" in reasons(outcome(ledger))
    assert outcome(ledger).verdict == "DENY"


def test_who_qualifies_and_approves_approves_nothing_where_the_roles_are_kept_apart() -> None:
    ledger = world(people(members={"qualifier": ["lab", "bob"]}, separate=[("qualifier", "approver")]))
    waive(ledger)
    decision = outcome(ledger)
    assert decision.verdict == "DENY"
    assert "bob is both approver and qualifier" in reasons(decision)


def test_a_waiver_can_be_taken_back_by_anyone_who_is_heard() -> None:
    for by in ("lab", "carol", "ci"):
        ledger = world()
        (record, _) = waive(ledger)
        ledger.retract(record, by=by)
        decision = outcome(ledger)
        assert decision.verdict == "DENY"
        assert f"taken back by {by}" in reasons(decision)


def test_every_code_that_applies_must_be_covered() -> None:
    old = {"from": None, "to": "2026-01-01T00:00:00Z"}
    requires = REQUIRES.replace("max_age: 12h", "max_age: 12h, min_runs: 2")
    ledger = Ledger(people(), check=False)
    ledger.image(IMAGE)
    ledger.receipt()
    ledger.receipt(capability=STARTUP, cells=[{}], observed=old)
    waive(ledger)
    decision = outcome(ledger, lab(requires=requires))
    assert decision.verdict == "DENY"
    assert decision.requirements[0].to_json()["codes"] == ["EVIDENCE_EXPIRED", "RUNS_TOO_FEW"]
    assert "and startup fails with RUNS_TOO_FEW" in reasons(decision)
    waive(ledger, changed(codes=["RUNS_TOO_FEW"]))
    assert outcome(ledger, lab(requires=requires)).verdict == "DENY"
    waive(ledger, changed(codes=["RUNS_TOO_FEW", "EVIDENCE_EXPIRED"]))
    assert outcome(ledger, lab(requires=requires)).verdict == "ALLOW"


def test_every_point_of_a_requirement_must_be_covered() -> None:
    scope = "{topology: TP4/DCP1, context_tokens: [131072, 262144], concurrency: 1, model: any, draft: any}"
    requires = f"    - {{id: startup, capability: {STARTUP}}}\n    - {{id: restore, capability: {RESTORE}, scope: {scope}}}\n"
    ledger = world()
    ledger.receipt(observed={"from": None, "to": "2026-01-01T00:00:00Z"}, cells=[{"context_tokens": 262144, "concurrency": 2}])
    waive(ledger, changed(requirement="restore"))
    decision = outcome(ledger, lab("restore", requires))
    assert "restore fails with CAP_SCOPE" in reasons(decision)
    waive(ledger, changed(requirement="restore", codes=["CAP_SCOPE"]))
    assert outcome(ledger, lab("restore", requires)).verdict == "ALLOW"


def test_what_is_true_of_the_image_itself_is_never_waived() -> None:
    ledger = world()
    waive(ledger, changed(codes=["IMAGE_REJECTED", "EVIDENCE_EXPIRED"]))
    ledger.reject(IMAGE)
    decision = outcome(ledger, lab("startup, restore", never=""))
    assert decision.verdict == "DENY"
    assert "startup fails with IMAGE_REJECTED can never" not in reasons(decision)
    assert "IMAGE_REJECTED can never be waived" in reasons(decision)
    unknown = config("77")
    codes = ["SUBJECT_UNKNOWN", "CAP_NO_EVIDENCE", "SUBJECT_KIND"]
    for requirement in ("startup", "restore"):
        waive(ledger, changed(subject=str(unknown), requirement=requirement, codes=codes), about=unknown)
    decision = outcome(ledger, lab("startup, restore", never=""), subject=unknown)
    assert {result.code for result in decision.requirements} == {Code.SUBJECT_UNKNOWN}
    assert decision.verdict == "DENY"


def test_an_image_of_which_everything_is_waived_is_not_allowed() -> None:
    ledger = Ledger(people(), check=False)
    ledger.image(IMAGE)
    for requirement in ("startup", "restore"):
        waive(ledger, changed(requirement=requirement, codes=["CAP_NO_EVIDENCE"]))
    decision = outcome(ledger, lab("startup, restore"))
    assert [result.waived_by for result in decision.requirements] == ["w-1@1", "w-1@1"]
    assert (decision.verdict, decision.exit) == ("DENY", ExitCode.NO)
    assert "ALL_WAIVED" in decision.notes
    assert verification_summary(decision, NOW)["verificationResult"] == "FAILED"


def test_an_adhoc_requirement_is_never_waived() -> None:
    from .gate_world import requiring

    ledger = world()
    waive(ledger, changed(requirement=STARTUP))
    decision = outcome(ledger, requiring(STARTUP, "{basis: [measured, reported], max_age: 12h}"))
    assert decision.verdict == "DENY"
    assert f"policy lab does not let {STARTUP} be waived" in reasons(decision)


def test_of_many_waivers_of_other_images_the_newest_are_told_and_the_others_counted() -> None:
    ledger = world()
    for number in range(7):
        other = config(f"c{number}")
        waive(ledger, changed(subject=str(other)), about=other)
    waive(ledger, changed(subject=str(OTHER), expires="2026-11-30T12:00:00Z"), about=OTHER)
    decision = outcome(ledger)
    assert [item.waiver.subject for item in decision.waivers if item.waiver] == [config(f"c{number}") for number in (3, 4, 5, 6)]
    assert "WAIVERS_OF_OTHER_IMAGES:3" in decision.notes


_TIMES = st.sampled_from(
    [
        "2026-11-20T00:00:00Z",
        "2026-11-30T00:00:00Z",
        "2026-12-01T00:00:00Z",
        "2026-12-01T00:00:01Z",
        "2026-12-05T00:00:00",
        "2027-01-01T00:00:00Z",
    ]
)
_SPECS: dict[str, st.SearchStrategy[Any]] = {
    "subject": st.sampled_from([str(IMAGE), str(OTHER), str(manifest("a1"))]),
    "policy": st.sampled_from(["lab", "other"]),
    "requirement": st.sampled_from(["startup", "restore", "other"]),
    "codes": st.lists(st.sampled_from(["EVIDENCE_EXPIRED", "CAP_SCOPE", "IMAGE_REJECTED"]), max_size=2, unique=True),
    "reason": st.sampled_from(["a reason", "", None]),
    "requested_by": st.sampled_from(["lab", "alice", "zoe"]),
    "approved_by": st.lists(st.sampled_from(["alice", "bob", "lab"]), max_size=3, unique=True),
    "not_before": _TIMES,
    "expires": _TIMES,
}


def _holds(spec: dict[str, Any], by: tuple[str, ...], about: Any) -> bool:
    """All rules, told once more and in another way."""
    if spec["not_before"].endswith("00:00:00") or spec["expires"].endswith("00:00:00") or not spec.get("reason"):
        return False
    begins, ends = Instant.parse(spec["not_before"]).ns, Instant.parse(spec["expires"]).ns
    in_time = begins <= NOW.ns <= ends and ends - begins <= 14 * 24 * 3600 * 10**9
    exact = (spec["subject"], about, spec["policy"], spec["requirement"]) == (str(IMAGE), IMAGE, "lab", "startup")
    approvers = set(spec["approved_by"])
    people_right = spec["requested_by"] in ("lab", "alice") and approvers and approvers <= {"alice", "bob"} - {spec["requested_by"]}
    return bool(in_time and exact and people_right and approvers <= set(by) and "EVIDENCE_EXPIRED" in spec["codes"])


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    changes=st.lists(st.sampled_from(sorted(_SPECS)), max_size=4, unique=True).flatmap(
        lambda names: st.fixed_dictionaries({name: _SPECS[name] for name in names})
    ),
    by=st.sampled_from([("alice", "bob"), ("bob", "alice"), ("alice",), ("lab",), ("zoe", "alice"), ()]),
    about=st.sampled_from([IMAGE, IMAGE, IMAGE, OTHER]),
)
def test_only_a_waiver_of_which_all_rules_hold_turns_a_no_into_a_yes(changes: dict[str, Any], by: tuple[str, ...], about: Any) -> None:
    document = changed(**changes)
    ledger = world()
    waive(ledger, document, by, about)
    decision = outcome(ledger)
    assert (decision.verdict == "ALLOW") is _holds(document["spec"], by, about)
    assert not decision.requirements[0].satisfied


@settings(max_examples=200, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_waiver_of_any_other_shape_changes_nothing(data: st.DataObject) -> None:
    document = copy.deepcopy(GOOD)
    place: Callable[..., Any] = data.draw
    holder = document["spec"] if place(st.booleans()) else document
    name = place(st.sampled_from(sorted(holder)))
    junk = place(
        st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.lists(st.integers(-2, 2), max_size=2), st.just({}), st.just(""))
    )
    holder[name] = junk
    ledger = world()
    waive(ledger, document)
    assert outcome(ledger).verdict == "DENY"


@settings(max_examples=60, deadline=None, derandomize=True)
@given(hidden=st.sets(st.integers(0, 9)))
def test_hiding_anything_turns_no_no_into_a_yes(hidden: set[int]) -> None:
    """The waiver lists one code; whatever is hidden, a DENY with it in sight stays one, unless the hidden thing took the waiver back."""
    ledger = world()
    waive(ledger, by=("alice",))
    ledger.receipt(IMAGE, outcome="fail")
    notices = {record.index for record in ledger.records if record.statement.predicate.get("outcome") == "fail"}  # type: ignore[union-attr]  # a receipt
    assert outcome(ledger).verdict == "DENY"
    kept = [record for record in ledger.records if record.index not in hidden or record.index in notices]
    assert outcome(ledger, records=kept).verdict == "DENY"
