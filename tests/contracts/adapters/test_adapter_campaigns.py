"""Rates and strict rules: which definition a number follows, and what a roll-up or a repair is worth."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countermark.attestations.codes import ExitCode, Outcome
from countermark.contracts.adapters.rates import DECODE, Operands, middle, recomputing

from .evidence_records import PLACES, Record, checkers, copies, outcomes, sha256

Change = Callable[[Any], None]
PASSING, FAILING, OPEN = (("output.contract", outcome) for outcome in ("pass", "fail", "inconclusive"))


def arm(change: Change) -> Record:
    """The campaign with one arm alone, the second, changed; its quality report left out."""

    def alone(value: Any) -> None:
        value[:] = [value[1]]
        change(value[0])

    record = copies()["campaign"].changed(alone)
    record.files = {}
    return record


def rates(name: str) -> Change:
    def change(value: Any) -> None:
        rows = [(row, Operands(row["usage"]["completion_tokens"], row["wall_s"], row["ttft_s"])) for row in value["rows"]]
        for row, operands in rows:
            row["decode_est_tps"] = DECODE[name](operands)
        value["median_decode_est_tps"] = middle([operands for _, operands in rows], name)

    return change


@pytest.mark.parametrize("name", DECODE)
def test_the_operands_decide_which_definition_it_is(name: str) -> None:
    reading = arm(rates(name)).read()
    (told,) = [finding for finding in reading.findings if finding.checker == "bench.denominator-declared"]
    assert f"are {name} = " in (told.observed or "")
    assert ("decode.rate", "pass") in outcomes(reading)


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value.update(median_decode_est_tps=20.6),
        lambda value: value["rows"][0].update(decode_est_tps=30.0),
        lambda value: value["rows"][2].update(wall_s=50.0),
        lambda value: value["rows"][2]["usage"].update(completion_tokens=5),
        lambda value: value["rows"][2].update(end_to_end_tps=1.0),
        lambda value: value["rows"][3].pop("ttft_s"),
        lambda value: value["rows"][3].update(ttft_s=1e300),
        lambda value: value.update(rows=[]),
    ],
)
def test_a_rate_that_does_not_recompute_is_no_pass(change: Change) -> None:
    reading = arm(change).read()
    assert ("decode.rate", "inconclusive") in outcomes(reading)
    assert ("decode.rate", "pass") not in outcomes(reading)


@given(st.lists(st.tuples(st.integers(2, 10**6), st.floats(0.1, 1e4), st.floats(0.0, 0.09)), min_size=1, max_size=8))
@settings(max_examples=50, deadline=None)
def test_values_made_by_a_definition_are_found_to_follow_it(rows: list[tuple[int, float, float]]) -> None:
    operands = [Operands(*row) for row in rows]
    for name, rate in DECODE.items():
        assert name in recomputing(operands, [rate(row) for row in operands])


def test_counters_that_do_not_cohere_are_found() -> None:
    assert "metric.speculation-coherent" in checkers(
        arm(lambda value: value["speculative_counters"].update(num_accepted_tokens=1e6)).read()
    )
    assert "metric.speculation-coherent" not in checkers(arm(lambda value: None).read())


def strict(*failures: dict[str, Any], passed: Any = False) -> Change:
    return lambda value: value.update(strict_failures=list(failures), quality_passed=passed)


EXACT = {"probe": "sum", "requirement": "Final content exactly 703"}
FENCE = {"probe": "code", "requirement": "Only Python code, no Markdown fence"}
BLOCK = {"probe": "block", "category": "semantic", "error": "Expected one code block"}


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        (strict({**EXACT, "passed": False, "observed": "the answer is 703"}), FAILING),
        (strict({**EXACT, "passed": True, "observed": "the answer is 703"}, passed=True), FAILING),
        (strict({**EXACT, "passed": True, "observed": " 703"}, passed=True), FAILING),
        (strict({**EXACT, "passed": False, "observed": "703"}), OPEN),
        (strict({**EXACT, "passed": True}), FAILING),
        (strict({**FENCE, "passed": False}), FAILING),
        (strict({**FENCE, "passed": True, "observed": "```python\nx\n```"}, passed=True), FAILING),
        (strict({**FENCE, "passed": False, "observed": "x = 1"}), OPEN),
        (strict({**BLOCK, "passed": False}), FAILING),
        (strict({**BLOCK, "passed": False, "observed": "text\n```\nx\n```"}), FAILING),
        (strict({**BLOCK, "passed": False, "observed": "```py\nx\n```"}), OPEN),
        (strict({"probe": "new", "requirement": "A rule nobody knows", "passed": False}), FAILING),
        (strict(passed=True), PASSING),
        (strict(passed=False), OPEN),
        (strict(passed="true"), OPEN),
        (lambda value: value.update(strict_failures=None, quality_passed=True), OPEN),
    ],
)
def test_strict_rules_are_held_against_the_raw_response(change: Change, outcome: tuple[str, str]) -> None:
    found = {entry for entry in outcomes(arm(change).read()) if entry[0] == "output.contract"}
    assert found == {outcome}


@pytest.mark.parametrize(
    "change",
    [
        strict({**EXACT, "passed": False, "observed": "wrong"}, passed=True),
        strict({**EXACT, "passed": True, "observed": "wrong"}),
        strict({**EXACT, "passed": False, "observed": "703"}),
        strict({"probe": "s", "category": "semantic", "requirement": "Final content exactly 1", "passed": False, "observed": "2"}),
    ],
)
def test_a_stored_boolean_that_disagrees_with_its_data_is_found(change: Change) -> None:
    reading = arm(change).read()
    assert "quality.aggregate-consistent" in checkers(reading, "block")
    assert reading.exit is ExitCode.NO


def test_a_stop_makes_later_checks_skipped_and_its_roll_up_refused() -> None:
    reading = arm(lambda value: (strict({**BLOCK, "passed": False})(value), value.update(semantic_checks_passed=False))[0]).read()
    assert "/0/semantic_checks_passed" in [item.pointer for item in reading.refused]
    (skipped,) = [finding for finding in reading.findings if finding.checker == "quality.skipped-declared"]
    assert (skipped.outcome, skipped.observed) == (Outcome.SKIPPED, "semantic checks after block: skipped, not measured")


def test_an_arm_that_sums_up_other_failures_than_its_report_contradicts_it() -> None:
    record = copies()["campaign"].changed(lambda value: value[1]["strict_failures"].pop())
    assert "quality.aggregate-consistent" in checkers(record.read(), "block")


def test_a_summary_without_the_failures_of_its_source_is_no_pass() -> None:
    def clean(value: Any) -> None:
        value.update(strict_failures=[], quality_passed=True, semantic_checks_passed=True)

    summed = copies()["campaign"].changed(lambda value: clean(value[1])).read()
    told = [claim for claim in summed.claims if claim["capability"] == "output.contract"]
    assert [claim["outcome"] for claim in told] == ["fail", "fail", "fail"]
    quoted = copies()["explainer"].changed(lambda value: clean(value["quality_comparisons"][1]))
    assert {claim["outcome"] for claim in quoted.read().claims if claim["capability"] == "output.contract"} == {"fail"}
    quoted.files = {}
    assert PASSING in outcomes(quoted.read())


def explained(change: Change) -> Record:
    return copies()["explainer"].changed(change)


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        (lambda value: value["long_context_cases"][0].update(exact_all_three_markers=False), ("longcontext.retrieval", "fail")),
        (lambda value: value["quality_comparisons"][1].update(long_context_passed=False), ("longcontext.retrieval", "inconclusive")),
        (lambda value: value["long_context_cases"][0].update(actual_input_tokens=131073), ("longcontext.retrieval", "inconclusive")),
        (lambda value: value["reported_results"][1].update(value=25.5), ("decode.rate", "inconclusive")),
        (
            lambda value: value["reported_results"][1]["conditions"].update(actual_completion_tokens_by_prompt=[1, 2]),
            ("decode.rate", "inconclusive"),
        ),
    ],
)
def test_a_report_that_says_other_than_its_sources_is_no_pass(change: Change, outcome: tuple[str, str]) -> None:
    reading = explained(change).read()
    assert outcome in outcomes(reading)
    assert reading.exit is ExitCode.NO or outcome[1] == "fail"


def test_a_definition_that_fits_its_operands_is_no_finding() -> None:
    record = copies()["explainer"]
    campaign = json.loads(record.files["comparison.json"])
    values = []
    for item in campaign:
        rates("decode.all")(item)
        values.append(item["median_decode_est_tps"])
    text = json.dumps(campaign, indent=2)

    def change(value: Any) -> None:
        for result, rate in zip(value["reported_results"], values, strict=True):
            result.update(value=rate, source_document_sha256=sha256(text))
            result.pop("source_line")
        value["supplemental_sources"][0]["document_sha256"] = sha256(text)

    changed = explained(change)
    changed.files = {"anything.json": text.encode()}
    reading = changed.read()
    assert (reading.exit, checkers(reading, "block")) == (ExitCode.YES, [])
    assert [file.name for file in reading.referenced] == ["anything.json"]


def test_a_definition_in_unknown_words_is_refused() -> None:
    reading = explained(lambda value: value["reported_results"][0]["conditions"].update(metric_denominator="tokens per tick")).read()
    assert "/reported_results/0/conditions/metric_denominator" in [item.pointer for item in reading.refused]


def test_without_a_kind_the_explainer_claims_nothing_of_any_image() -> None:
    record = copies()["explainer"]
    record.binds = ()
    reading = record.read()
    assert (reading.claims, reading.exit, set(checkers(reading, "block"))) == (
        (),
        ExitCode.CANNOT_TELL,
        {"image.id-kind", "bench.denominator-declared"},
    )


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ["explainer", "campaign"])
def test_the_serving_claim_of_a_published_rate_is_denied_by_the_benchmark_rules(place: str, name: str) -> None:
    reading = PLACES[place]()[name].read()
    rates = [claim for claim in reading.claims if claim["capability"] == "decode.rate"]
    told = set(checkers(reading))
    assert {"bench.repetitions", "bench.attainable-significance", "bench.output-length-band", "bench.quality-attached"} <= told
    assert name == "campaign" or {"bench.denominator-declared", "bench.recompute"} <= told
    assert {claim["claim"] for claim in rates} == {"research-only"}
    skipped = [finding for finding in reading.findings if finding.checker == "quality.skipped-declared"]
    assert {finding.outcome for finding in skipped} == {Outcome.SKIPPED}
