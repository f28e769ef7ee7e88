"""What a predicate says once it is computed: one outcome from its measurements, never read from a roll-up.

These functions are total. They see payloads that no schema has checked, in an audit for instance, and whatever they cannot read is an
`error`, which satisfies nothing.
"""

from collections.abc import Callable, Iterable
from typing import Final

from countermark.attestations.codes import Outcome
from countermark.attestations.located import JsonValue, as_integer, as_object
from countermark.attestations.predicate_types import TEST_RESULT, PredicateName

_WORDS: Final = frozenset(map(str, Outcome))
_UNSETTLED: Final = frozenset({Outcome.ERROR, Outcome.INCONCLUSIVE, Outcome.NOT_RUN, Outcome.SKIPPED})


def roll_up(outcomes: Iterable[Outcome]) -> Outcome:
    """Any fail is fail, else anything unsettled is inconclusive, else pass. Nothing that applied, nothing checked: error."""
    found = set(outcomes) - {Outcome.NOT_APPLICABLE}
    if not found:
        return Outcome.ERROR
    if Outcome.FAIL in found:
        return Outcome.FAIL
    return Outcome.INCONCLUSIVE if found & _UNSETTLED else Outcome.PASS


def quality_outcome(predicate: JsonValue) -> Outcome:
    """The outcome of a quality-report/v1: its checks rolled up."""
    return roll_up(_word(_field(check, "outcome")) for check in _list(_field(predicate, "checks")))


def receipt_outcome(predicate: JsonValue) -> Outcome:
    """The outcome of a qualification-receipt/v1 as far as it shows in the receipt itself.

    It is the stated one, lowered by its controls: a control that fails fails the receipt whatever its basis, and one that is unsettled
    leaves a pass inconclusive. `not-recorded` lowers the basis, not the outcome. What the receipt rests on is not looked at here.
    """
    stated, controls = _word(_field(predicate, "outcome")), _field(predicate, "controls")
    if stated not in (Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE) or not isinstance(controls, dict):
        return Outcome.ERROR
    recorded = [_word(value) for value in controls.values() if value != "not-recorded"]
    return roll_up([stated, *recorded])


def restore_outcome(predicate: JsonValue) -> Outcome:
    """The outcome of a restore-run/v1: every rank structurally placed, every rung that ran with its controls, and the answer.

    A rung that the plan left out is `not-run` and says nothing. An engine that fell back to recomputing has restored nothing.
    """
    ranks = [_word(_field(rank, "structural")) for rank in _list(_field(predicate, "ranks"))]
    rungs = _field(predicate, "rungs")
    if not ranks or not isinstance(rungs, dict):
        return Outcome.ERROR
    ran = [rung for rung in rungs.values() if _word(_field(rung, "outcome")) is not Outcome.NOT_RUN]
    seen = [_word(_field(rung, "outcome")) for rung in ran]
    seen += [_word(_field(control, "outcome")) for rung in ran for control in _list(_field(rung, "controls"))]
    answer = _field(predicate, "answer")
    if answer is not None:
        seen.append(_word(_field(answer, "outcome")))
    if not seen:
        return Outcome.ERROR
    verified = Outcome.PASS if _field(predicate, "outcome") == "verified" else Outcome.INCONCLUSIVE
    return roll_up([*ranks, *seen, verified])


def contract_outcome(predicate: JsonValue) -> Outcome:
    """The outcome of a contract-verdict/v1: a pass needs every invariant evaluated, at least one, and no blocking finding that fails."""
    evaluated, of = _field(predicate, "evaluated"), _field(predicate, "of")
    findings = _field(predicate, "findings")
    if not _is_count(evaluated) or not _is_count(of) or not evaluated or not isinstance(findings, list):
        return Outcome.ERROR
    complete = Outcome.PASS if evaluated == of else Outcome.INCONCLUSIVE
    blocking = [_word(_field(finding, "outcome")) for finding in findings if _field(finding, "severity") not in ("warn", "info")]
    return roll_up([_word(_field(predicate, "outcome")), complete, *blocking])


def suite_outcome(predicate: JsonValue) -> Outcome:
    """The outcome of an in-toto test-result/v0.1: only PASSED passes."""
    words = {"PASSED": Outcome.PASS, "WARNED": Outcome.INCONCLUSIVE, "FAILED": Outcome.FAIL}
    result = _field(predicate, "result")
    return words.get(result, Outcome.ERROR) if isinstance(result, str) else Outcome.ERROR


_COMPUTED: Final[dict[str, Callable[[JsonValue], Outcome]]] = {
    PredicateName.QUALITY_REPORT.uri: quality_outcome,
    PredicateName.QUALIFICATION_RECEIPT.uri: receipt_outcome,
    PredicateName.RESTORE_RUN.uri: restore_outcome,
    PredicateName.CONTRACT_VERDICT.uri: contract_outcome,
    TEST_RESULT: suite_outcome,
}


def outcome_of(predicate_type: str, predicate: JsonValue) -> Outcome | None:
    """The computed outcome of a predicate; none for a type that has no outcome."""
    compute = _COMPUTED.get(predicate_type)
    return compute(predicate) if compute else None


def _field(value: JsonValue, name: str) -> JsonValue:
    return as_object(value).get(name)


def _list(value: JsonValue) -> list[JsonValue]:
    """A list as it is; anything else, absent included, as one element that nobody can read."""
    return value if isinstance(value, list) else [None]


def _word(value: JsonValue) -> Outcome:
    return Outcome(value) if isinstance(value, str) and value in _WORDS else Outcome.ERROR


def _is_count(value: JsonValue) -> bool:
    number = as_integer(value)
    return number is not None and number >= 0
