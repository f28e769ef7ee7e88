"""Controls recomputed from operands: what the statements show, what they do not, and what they show to be wrong."""

import hashlib
from typing import Any

import pytest

from countermark.attestations.codes import Outcome
from countermark.attestations.predicate_types import PredicateName
from countermark.contracts.controls import control, exact_answer, reported, worst

from .gate_world import IMAGE, OTHER

PASS, FAIL = Outcome.PASS, Outcome.FAIL


def raw(text: str) -> str:
    return f"response-raw:sha256:{hashlib.sha256(text.encode()).hexdigest()}"


@pytest.mark.parametrize(
    ("required", "response", "steps", "text", "outcome"),
    [
        ("red", raw("red"), ["none"], None, PASS),
        ("red", raw(" red"), ["none"], None, FAIL),
        ("red", raw(" red"), ["strip"], None, None),
        ("red", raw(" red"), ["strip"], " red", PASS),
        ("red", raw(" red"), ["strip"], "red", None),
        ("red", raw(" red"), ["none"], " red", FAIL),
        ("red", raw(" Spark"), ["strip", "casefold"], " Spark", FAIL),
        ("Straße", raw("STRASSE"), ["casefold"], "STRASSE", PASS),
        ("é", raw("é"), ["nfc"], "é", PASS),
        ("red", raw("the answer is red"), ["strip"], "the answer is red", FAIL),
        ("red", raw("red"), [], None, None),
        ("red", raw("red"), ["suffix"], "red", None),
        ("red", raw("red"), None, "red", None),
        ("red", raw("red"), [{}], "red", None),
        (None, raw("red"), ["none"], "red", None),
        ("red", None, ["none"], "red", None),
    ],
)
def test_an_answer_is_exact_on_its_raw_bytes_or_nothing_is_shown(
    required: Any, response: Any, steps: Any, text: Any, outcome: Outcome | None
) -> None:
    assert exact_answer(required, response, steps, text) is outcome


def check(**changes: Any) -> dict[str, Any]:
    return {"id": "a", "outcome": "pass", "required": "red", "response": raw("red"), "normalisation": ["none"], "rule": "exact", **changes}


STATUS_200 = check(id="health-200", required="200", observed="200", response=None)


@pytest.mark.parametrize(
    ("name", "checks", "outcome"),
    [
        ("exact-answer", [check()], PASS),
        ("exact-answer", [check(), check(response=None)], None),
        ("exact-answer", [check(), check(response=raw("blue"))], FAIL),
        ("exact-answer", [check(outcome="fail")], FAIL),
        ("exact-answer", [check(), check(outcome="skipped")], Outcome.INCONCLUSIVE),
        ("exact-answer", [check(rule="markers")], None),
        ("exact-answer", [check(outcome="passed")], Outcome.INCONCLUSIVE),
        ("exact-answer", [], None),
        ("raw-bytes", [check(rule="no-fence", outcome="fail")], FAIL),
        ("health-200", [STATUS_200, check(outcome="fail")], PASS),
        ("health-200", [{**STATUS_200, "observed": "503"}], FAIL),
        ("health-200", [{**STATUS_200, "observed": None}], None),
        ("health-200", [check()], None),
    ],
)
def test_controls_of_a_quality_report(name: str, checks: Any, outcome: Outcome | None) -> None:
    assert control(PredicateName.QUALITY_REPORT.uri, {"checks": checks}, name) is outcome


def run(**changes: Any) -> dict[str, Any]:
    ranks = [{"rank": rank, "structural": "pass", "image": str(IMAGE)} for rank in range(4)]
    caught = {"fault": "bit-flip", "caught_by": "3-readback", "outcome": "pass"}
    return {
        "tuple": {"image": str(IMAGE)},
        "ranks": ranks,
        "rungs": {"1-signed-root": {"outcome": "pass"}, "3-readback": {"outcome": "pass", "controls": [caught]}},
        "answer": {"required": "red", "raw": raw("red"), "normalisation": ["none"], "outcome": "pass"},
        **changes,
    }


@pytest.mark.parametrize(
    ("name", "changes", "outcome"),
    [
        ("signed-root", {}, PASS),
        ("coverage", {}, None),
        ("coverage", {"rungs": {"2-coverage": {"outcome": "not-run", "controls": []}}}, None),
        ("readback", {}, PASS),
        ("readback", {"rungs": {"3-readback": {"outcome": "pass", "controls": [{"outcome": "fail"}]}}}, FAIL),
        ("all-ranks-structural", {}, PASS),
        ("all-ranks-structural", {"ranks": [{"structural": "pass"}, {"structural": "fail"}]}, FAIL),
        ("all-ranks-structural", {"ranks": [{"structural": "pass"}, {}]}, Outcome.INCONCLUSIVE),
        ("all-ranks-structural", {"ranks": []}, Outcome.ERROR),
        ("one-image", {}, PASS),
        ("one-image", {"ranks": [{"image": str(IMAGE)}, {"image": str(OTHER)}]}, FAIL),
        ("one-image", {"ranks": [{"image": str(IMAGE)}, {"image": None}]}, None),
        ("one-image", {"tuple": {}}, None),
        ("exact-answer", {}, PASS),
        ("exact-answer", {"answer": {"required": "red", "raw": raw("spark"), "normalisation": ["none"], "outcome": "pass"}}, FAIL),
        ("exact-answer", {"answer": {"required": "red", "raw": raw("red"), "normalisation": ["none"], "outcome": "fail"}}, FAIL),
        ("exact-answer", {"answer": None}, None),
        ("negative-control", {}, None),
    ],
)
def test_controls_of_a_restore_run(name: str, changes: dict[str, Any], outcome: Outcome | None) -> None:
    assert control(PredicateName.RESTORE_RUN.uri, run(**changes), name) is outcome


def test_other_statements_show_no_control() -> None:
    assert control("https://example.com/v1", {"checks": [check()]}, "exact-answer") is None
    assert control(PredicateName.IMAGE.uri, {}, "exact-answer") is None


def test_of_several_that_show_a_control_the_worst_counts() -> None:
    assert worst([None, PASS, FAIL]) is FAIL
    assert worst([None, PASS]) is PASS
    assert worst([None]) is None
    assert reported("not-recorded") is None
    assert reported("fine") is Outcome.ERROR
