"""Computed outcomes: one from the measurements, and an error, never a pass, from what cannot be read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countermark.attestations.codes import Outcome
from countermark.attestations.located import JsonValue
from countermark.attestations.outcomes import (
    contract_outcome,
    outcome_of,
    quality_outcome,
    receipt_outcome,
    restore_outcome,
    roll_up,
    suite_outcome,
)
from countermark.attestations.predicate_types import TEST_RESULT, PredicateName

ALL = (contract_outcome, quality_outcome, receipt_outcome, restore_outcome, suite_outcome)

scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([str(word) for word in Outcome]) | st.text(max_size=4)
names = st.sampled_from(
    ["checks", "outcome", "controls", "ranks", "rungs", "answer", "structural", "evaluated", "of", "findings", "result"]
)
anything = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=5), max_leaves=20)


def _checks(*outcomes: str) -> JsonValue:
    return {"checks": [{"id": str(number), "outcome": outcome} for number, outcome in enumerate(outcomes)]}


@pytest.mark.parametrize(
    ("predicate", "outcome"),
    [
        (_checks("pass", "pass"), Outcome.PASS),
        (_checks("pass", "not-applicable"), Outcome.PASS),
        (_checks("fail", "skipped"), Outcome.FAIL),
        (_checks("error", "fail", "pass"), Outcome.FAIL),
        (_checks("pass", "skipped"), Outcome.INCONCLUSIVE),
        (_checks("pass", "not-run"), Outcome.INCONCLUSIVE),
        (_checks("pass", "no such word"), Outcome.INCONCLUSIVE),
        (_checks(), Outcome.ERROR),
        (_checks("not-applicable"), Outcome.ERROR),
        ({}, Outcome.INCONCLUSIVE),
        ({"checks": "pass"}, Outcome.INCONCLUSIVE),
    ],
)
def test_quality_reports_roll_up(predicate: JsonValue, outcome: Outcome) -> None:
    assert quality_outcome(predicate) is outcome


@pytest.mark.parametrize(
    ("stated", "controls", "outcome"),
    [
        ("pass", {"exact-answer": "pass"}, Outcome.PASS),
        ("pass", {"exact-answer": "not-recorded"}, Outcome.PASS),
        ("pass", {}, Outcome.PASS),
        ("pass", {"exact-answer": "fail", "coverage": "pass"}, Outcome.FAIL),
        ("pass", {"exact-answer": "inconclusive"}, Outcome.INCONCLUSIVE),
        ("fail", {"exact-answer": "pass"}, Outcome.FAIL),
        ("inconclusive", {}, Outcome.INCONCLUSIVE),
        ("not-applicable", {}, Outcome.ERROR),
        ("qualified", {}, Outcome.ERROR),
        ("pass", None, Outcome.ERROR),
    ],
)
def test_receipts_are_lowered_by_their_controls(stated: str, controls: JsonValue, outcome: Outcome) -> None:
    assert receipt_outcome({"outcome": stated, "controls": controls}) is outcome


def _run(**changes: JsonValue) -> JsonValue:
    run: dict[str, JsonValue] = {
        "ranks": [{"rank": 0, "structural": "pass"}],
        "rungs": {"1": {"outcome": "pass", "controls": [{"outcome": "pass"}]}, "5": {"outcome": "not-run", "controls": []}},
        "answer": {"outcome": "pass"},
        "outcome": "verified",
    }
    return {**run, **changes}


@pytest.mark.parametrize(
    ("predicate", "outcome"),
    [
        (_run(), Outcome.PASS),
        (_run(answer=None), Outcome.PASS),
        (_run(ranks=[{"structural": "pass"}, {"structural": "fail"}]), Outcome.FAIL),
        (_run(rungs={"1": {"outcome": "pass", "controls": [{"outcome": "fail"}]}}), Outcome.FAIL),
        (_run(answer={"outcome": "fail"}), Outcome.FAIL),
        (_run(outcome="recompute"), Outcome.INCONCLUSIVE),
        (_run(rungs={"1": {"outcome": "pass"}}), Outcome.INCONCLUSIVE),
        (_run(ranks=[]), Outcome.ERROR),
        (_run(rungs={"1": {"outcome": "not-run"}}, answer=None), Outcome.ERROR),
    ],
)
def test_restore_runs_need_every_rank_rung_and_answer(predicate: JsonValue, outcome: Outcome) -> None:
    assert restore_outcome(predicate) is outcome


@pytest.mark.parametrize(
    ("predicate", "outcome"),
    [
        ({"outcome": "pass", "evaluated": 8, "of": 8, "findings": []}, Outcome.PASS),
        ({"outcome": "pass", "evaluated": 8, "of": 8, "findings": [{"severity": "warn", "outcome": "fail"}]}, Outcome.PASS),
        ({"outcome": "pass", "evaluated": 8, "of": 8, "findings": [{"severity": "block", "outcome": "fail"}]}, Outcome.FAIL),
        ({"outcome": "pass", "evaluated": 7, "of": 8, "findings": []}, Outcome.INCONCLUSIVE),
        ({"outcome": "pass", "evaluated": 0, "of": 0, "findings": []}, Outcome.ERROR),
        ({"outcome": "pass", "evaluated": True, "of": True, "findings": []}, Outcome.ERROR),
        ({"outcome": "fail", "evaluated": 8, "of": 8, "findings": []}, Outcome.FAIL),
        ({"outcome": "pass"}, Outcome.ERROR),
    ],
)
def test_a_contract_passes_only_when_all_of_it_was_evaluated(predicate: JsonValue, outcome: Outcome) -> None:
    assert contract_outcome(predicate) is outcome


@pytest.mark.parametrize(("result", "outcome"), [("PASSED", "pass"), ("WARNED", "inconclusive"), ("FAILED", "fail"), ("passed", "error")])
def test_only_passed_passes(result: str, outcome: str) -> None:
    assert suite_outcome({"result": result}) == outcome


def test_types_with_and_without_an_outcome() -> None:
    assert outcome_of(TEST_RESULT, {"result": "FAILED"}) is Outcome.FAIL
    assert outcome_of(PredicateName.QUALITY_REPORT.uri, {"checks": []}) is Outcome.ERROR
    assert outcome_of(PredicateName.REJECTION.uri, {}) is None
    assert outcome_of("https://example.com/anything/v1", {}) is None


@given(anything)
def test_any_value_has_an_outcome_and_passes_only_as_an_object(value: JsonValue) -> None:
    for compute in ALL:
        outcome = compute(value)
        assert isinstance(outcome, Outcome)
        assert outcome is not Outcome.PASS or isinstance(value, dict)


@given(st.lists(st.sampled_from(list(Outcome))))
def test_more_of_what_does_not_pass_never_makes_a_pass(outcomes: list[Outcome]) -> None:
    for worse in Outcome:
        if worse not in (Outcome.PASS, Outcome.NOT_APPLICABLE):
            assert roll_up([*outcomes, worse]) is not Outcome.PASS
