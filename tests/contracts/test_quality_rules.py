"""Strict rules over raw bytes: nothing that has to be repaired keeps one, and a rule without a meaning is an error and no verdict."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countermark.attestations.codes import Outcome
from countermark.attestations.predicate_types import PredicateName
from countermark.contracts.controls import control
from countermark.contracts.quality.judged import contradictions, shown_of_check
from countermark.contracts.quality.receipt_drafts import quality_receipt
from countermark.contracts.quality.rules import NORMALISE, RULES, hold, is_bounded

from .gate_world import IMAGE, catalogue

PASS, FAIL, ERROR = Outcome.PASS, Outcome.FAIL, Outcome.ERROR
BLOCK = "```python\nprint(1)\n```"
SCHEMA = json.dumps({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}})


@pytest.mark.parametrize(
    ("rule", "required", "response", "outcome"),
    [
        ("exact", "703", "703", PASS),
        ("exact", "703", "703\n", FAIL),
        ("exact", "703", " 703", FAIL),
        ("exact", "703", "**Answer:** 703", FAIL),
        ("exact", "", "", PASS),
        ("one-code-block", "one", BLOCK, PASS),
        ("one-code-block", "one", f"{BLOCK}\n", PASS),
        ("one-code-block", "one", f"{BLOCK}\n\n", FAIL),
        ("one-code-block", "one", f"Here it is:\n{BLOCK}", FAIL),
        ("one-code-block", "one", f"{BLOCK}\nIt prints 1.", FAIL),
        ("one-code-block", "one", f"{BLOCK}\n{BLOCK}", FAIL),
        ("one-code-block", "one", "print(1)", FAIL),
        ("one-code-block", "one", "```\n```", PASS),
        ("one-code-block", "one", "```python\nprint(1)", FAIL),
        ("one-code-block", "one", "~~~\nprint(1)\n~~~", PASS),
        ("one-code-block", "one", "````\n```\nprint(1)\n````", FAIL),
        ("one-code-block", "one", "```\nprint(1)\n~~~", FAIL),
        ("no-fence", "none", "print(1)\n", PASS),
        ("no-fence", "none", BLOCK, FAIL),
        ("no-fence", "none", "~~~\nprint(1)\n~~~", FAIL),
        ("no-fence", "none", "use ``` to fence", FAIL),
        ("json-schema", SCHEMA, '{"n": 1}', PASS),
        ("json-schema", SCHEMA, '{"n": 1.5}', FAIL),
        ("json-schema", SCHEMA, '```json\n{"n": 1}\n```', FAIL),
        ("json-schema", SCHEMA, '{"n": 1} hope this helps', FAIL),
        ("json-schema", SCHEMA, '{"n": 1, "n": 2}', FAIL),
        ("json-schema", SCHEMA, '{"n": NaN}', FAIL),
        ("json-schema", SCHEMA, "", FAIL),
        ("json-schema", "not json", "{}", ERROR),
        ("json-schema", '{"type": 7}', "{}", ERROR),
        ("json-schema", '{"$ref": "https://example.com/s"}', "{}", ERROR),
        ("json-schema", "[" * 100_000, "{}", ERROR),
        ("regex-fullmatch", "[0-9]+", "703", PASS),
        ("regex-fullmatch", "[0-9]+", "703\n", FAIL),
        ("regex-fullmatch", "[0-9]+", "it is 703", FAIL),
        ("regex-fullmatch", "[0-9", "703", ERROR),
        ("markers", '["Q7", "Z9"]', "first Z9, then Q7", PASS),
        ("markers", '["Q7", "Z9"]', "only Q7", FAIL),
        ("markers", '["Q7"]', "q7", FAIL),
        ("markers", "[]", "Q7", ERROR),
        ("markers", '[""]', "Q7", ERROR),
        ("markers", "Q7", "Q7", ERROR),
        ("suffix", "703", "it is 703", ERROR),
    ],
)
def test_rules_over_raw_responses(rule: str, required: str, response: str, outcome: Outcome) -> None:
    assert hold(rule, required, response.encode()).outcome is outcome


@pytest.mark.parametrize(
    ("rule", "required", "bounded"),
    [
        ("exact", "x", True),
        ("json-schema", SCHEMA, True),
        ("json-schema", '{"properties": {"a": {"pattern": "(a+)+b"}}}', False),
        ("json-schema", '{"allOf": [{"$ref": "#"}, {"$ref": "#"}]}', False),
        ("json-schema", "[" * 100_000, False),
        ("regex-fullmatch", "(a+)+b", False),
    ],
)
def test_what_may_run_for_ever_is_not_evaluated_for_somebody_else(rule: str, required: str, bounded: bool) -> None:
    assert is_bounded(rule, required) is bounded
    shown = shown_of_check(check(rule=rule, required=required), strict=True)
    assert (shown is not None) is bounded


def test_bytes_that_are_no_text_keep_no_rule() -> None:
    assert {hold(rule, '["a"]' if rule == "markers" else "{}", b"\xff\xfe").outcome for rule in RULES} == {FAIL}


@pytest.mark.parametrize("rule", ["one-code-block", "no-fence", "json-schema", "regex-fullmatch"])
@pytest.mark.parametrize("steps", [["strip"], ["casefold"], ["none", "nfc"], [], ["trim"]])
def test_a_strict_rule_knows_no_normalisation(rule: str, steps: list[str]) -> None:
    assert hold(rule, "{}", b"{}", steps).outcome is ERROR


@given(st.text(max_size=12), st.sampled_from(sorted(NORMALISE)), st.sampled_from([" ", "\n", "\t", "\u2003"]))
def test_a_repaired_answer_never_passes_strictly(word: str, step: str, around: str) -> None:
    """Whatever a normalisation would make right is wrong as raw bytes, and a report that says otherwise is contradicted."""
    repaired = around + word
    check: dict[str, Any] = {
        "id": "a",
        "outcome": "pass",
        "required": word,
        "observed": repaired,
        "response": raw(repaired),
        "normalisation": [step],
        "rule": "exact",
    }
    assert shown_of_check(check, strict=True) is FAIL
    assert control(PredicateName.QUALITY_REPORT.uri, {"checks": [check]}, "raw-bytes") is FAIL


def raw(text: str) -> str:
    return f"response-raw:sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def check(name: str = "a", observed: str = "703", **changes: Any) -> dict[str, Any]:
    stated = {"id": name, "outcome": "pass" if observed == "703" else "fail", "required": "703", "observed": observed}
    return {**stated, "response": raw(observed), "normalisation": ["none"], "rule": "exact", **changes}


def report(*checks: dict[str, Any], **changes: Any) -> dict[str, Any]:
    scope = {"image": str(IMAGE), "cells": [{"draft_tokens": 3}]}
    observed = {"from": "2026-10-05T08:00:00Z", "to": "2026-10-05T08:01:00Z"}
    return {"tuple": {"image": str(IMAGE)}, "scope": scope, "basis": "measured", "observed": observed, "checks": list(checks), **changes}


SKIPPED = {"id": "b", "outcome": "skipped", "required": "x", "response": None, "normalisation": ["none"], "rule": "exact", "cause": "a"}


@pytest.mark.parametrize(
    ("stated", "checker"),
    [
        (report(check(outcome="fail")), "quality.output-contract"),
        (report(check(observed="**703**", outcome="pass")), "quality.output-contract"),
        (report(check(response=raw("703 "))), "quality.output-contract"),
        (report(check(response=None)), "quality.output-contract"),
        (report(check(rule="markers")), "quality.output-contract"),
        (report(check(rule="no-fence", normalisation=["strip"])), "quality.output-contract"),
        (report(check(cause="zero")), "quality.skipped-declared"),
        (report(check(), SKIPPED), "quality.skipped-declared"),
        (report(check(observed="1"), {**SKIPPED, "cause": "c"}), "quality.skipped-declared"),
        (report(check(observed="1"), {**SKIPPED, "cause": "b"}), "quality.skipped-declared"),
        (report(check(observed="1"), {**SKIPPED, "response": raw("x")}), "quality.output-contract"),
        (report(check(), check()), "quality.verdict-closed"),
        (report(check(), scope={"image": "oci-config:sha256:" + "11" * 32, "cells": [{}]}), "evidence.subject"),
    ],
)
def test_a_report_that_contradicts_itself_is_told(stated: dict[str, Any], checker: str) -> None:
    assert checker in {item.checker for item in contradictions(stated, {})}
    assert quality_receipt(stated, IMAGE, catalogue().capabilities["output.contract"]) is None or checker == "evidence.subject"


def test_a_whole_report_and_one_that_stopped_early_hold_together() -> None:
    assert list(contradictions(report(check(), check("b")), {})) == []
    assert list(contradictions(report(check(observed="1"), SKIPPED), {})) == []
    kept = report(check(observed="x" * 9, rule="regex-fullmatch", required="y+"))
    del kept["checks"][0]["observed"]
    assert list(contradictions(kept, {})) == []
    assert list(
        contradictions({**kept, "checks": [{**kept["checks"][0], "outcome": "pass"}]}, {hashlib.sha256(b"x" * 9).hexdigest(): b"x" * 9})
    )


@pytest.mark.parametrize(
    ("checks", "outcome", "basis"),
    [
        ([check(), check("b")], "pass", "measured"),
        ([check(observed="1"), SKIPPED], "fail", "measured"),
        ([check(), check("b", rule="regex-fullmatch")], "pass", "reported"),
        ([check(), {**SKIPPED, "outcome": "not-run", "cause": "a"}], "inconclusive", "measured"),
    ],
)
def test_a_receipt_follows_from_the_raw_responses(checks: list[dict[str, Any]], outcome: str, basis: str) -> None:
    draft = quality_receipt(report(*checks), IMAGE, catalogue().capabilities["output.contract"])
    assert draft is not None
    assert (draft.predicate["outcome"], draft.predicate["basis"]) == (outcome, basis)


def test_a_report_shows_only_capabilities_that_rest_on_reports() -> None:
    whole = report(check())
    assert quality_receipt(whole, IMAGE, catalogue().capabilities["decode.rate"]) is None
    assert quality_receipt({**whole, "checks": []}, IMAGE, catalogue().capabilities["output.contract"]) is None
