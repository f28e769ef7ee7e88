"""Benchmark runs: the published medians recompute, a run that contradicts itself is told, and too little is never a pass."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from measured import QUALITY, benchmark_run, observations, summarised

from countermark.attestations.codes import Outcome
from countermark.attestations.errors import InputError
from countermark.attestations.schema import problems
from countermark.contracts.measurements.judged import judge, judged
from countermark.contracts.measurements.run import BenchmarkRun, decimal

JsonObject = dict[str, Any]
CAMPAIGN = json.loads((Path(__file__).parents[1] / "data" / "evidence" / "weschera" / "comparison.json").read_bytes())
PASSED: JsonObject = {"checks": [{"id": "a", "outcome": "pass"}]}
FAILED: JsonObject = {"checks": [{"id": "a", "outcome": "fail"}]}


def against(run: JsonObject) -> set[str]:
    return {item.checker for item in judge(run).contradictions}


def lacking(run: JsonObject, quality: JsonObject | None = PASSED) -> set[str]:
    return {item.checker for item in judge(run, quality).limits}


def test_a_whole_run_bears_its_claim() -> None:
    run = benchmark_run()
    found = judge(run, PASSED)
    assert problems("benchmark-run", run) == []
    assert (found.contradictions, found.limits, found.outcome) == ((), (), Outcome.PASS)
    assert set(found.controls) == {"quality-passed", "repeats", "boots", "output-band", "interval"}
    assert set(found.controls.values()) == {Outcome.PASS}


CONTRADICTIONS: dict[str, tuple[Callable[[JsonObject], object], str]] = {
    "another value": (lambda run: run["summary"].update(value="21.5"), "bench.recompute"),
    "the value of another definition": (lambda run: run["metric"].update(definition="decode.all"), "bench.denominator-declared"),
    "another n": (lambda run: run["summary"].update(n=18), "bench.recompute"),
    "a boot too many": (lambda run: run.update(boots=4), "bench.boot-identity"),
    "repetitions that nobody ran": (lambda run: run.update(repeats_of_identical_task=4), "bench.repetitions"),
    "milliseconds": (lambda run: run["metric"].update(unit="ms"), "bench.unit-consistent"),
    "one observation twice": (lambda run: run["observations"].append(run["observations"][0]), "bench.coverage-exact"),
    "a window that is not there": (lambda run: run["observations"][0].update(window="w"), "bench.coverage-exact"),
    "a first token behind the last": (lambda run: run["observations"][0].update(ttft_s="99"), "bench.finite-numbers"),
    "negative time": (lambda run: run["observations"][0].update(wall_s="-1"), "bench.finite-numbers"),
    "no time at all": (lambda run: run["observations"][0].update(wall_s="0"), "bench.finite-numbers"),
    "a percentile without its rank": (lambda run: run["summary"].update(statistic="percentile"), "bench.statistic-named"),
    "a median by another method": (lambda run: run["summary"].update(method="linear"), "bench.statistic-named"),
    "an interval without the value": (lambda run: run["summary"]["interval"].update(low="25", high="26"), "bench.uncertainty"),
    "an interval that is too narrow": (lambda run: run["summary"]["interval"].update(low="20.9"), "bench.uncertainty"),
    "a level of one": (lambda run: run["summary"]["interval"].update(level="1"), "bench.uncertainty"),
    "a time before its beginning": (lambda run: run["observed"].update(to="2026-10-04T00:00:00Z"), "bench.date-window"),
    "a time without an offset": (lambda run: run["observed"].update(to="2026-10-05T09:00:00"), "bench.date-window"),
    "a context that nobody tested": (lambda run: run["scope"]["cells"][0].update(context_tokens=131072), "bench.tested-vs-configured"),
    "another image in its scope": (lambda run: run["scope"].update(image="oci-config:sha256:" + "11" * 32), "evidence.subject"),
    "another image of the file": (lambda run: run.update(image="oci-config:sha256:" + "11" * 32), "evidence.subject"),
    "another draft in its scope": (lambda run: run["scope"].update(draft={"repository": "none", "revision": "none"}), "evidence.subject"),
    "no time to first token": (lambda run: run["observations"][0].pop("ttft_s"), "bench.recompute"),
    "no observation": (lambda run: run.update(observations=[]), "bench.recompute"),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_run_that_contradicts_itself_bears_nothing(name: str) -> None:
    change, checker = CONTRADICTIONS[name]
    run = benchmark_run(change)
    assert checker in against(run)
    assert judge(run, PASSED).outcome is Outcome.INCONCLUSIVE
    assert judge(run, PASSED).controls == {}


LIMITS: dict[str, tuple[Callable[[JsonObject], object], str, Outcome]] = {
    "no revision": (lambda run: run["tuple"].pop("source"), "bench.execution-revision", Outcome.INCONCLUSIVE),
    "no draft named": (lambda run: run["tuple"].pop("draft"), "bench.target-draft-pinned", Outcome.INCONCLUSIVE),
    "no draft tokens": (lambda run: run["scope"]["cells"][0].pop("draft_tokens"), "bench.target-draft-pinned", Outcome.INCONCLUSIVE),
    "no interval": (lambda run: run["summary"].update(interval=None), "bench.uncertainty", Outcome.INCONCLUSIVE),
    "an interval by eye": (lambda run: run["summary"]["interval"].update(method="by eye"), "bench.uncertainty", Outcome.INCONCLUSIVE),
    "outputs of other lengths": (lambda run: relength(run, 0, 600), "bench.output-length-band", Outcome.INCONCLUSIVE),
    "two ways to end": (lambda run: run["observations"][0].update(finish="length"), "bench.stop-reason", Outcome.INCONCLUSIVE),
    "a failed request": (
        lambda run: run["observations"].append(observations()[0] | {"id": "x", "finish": "error"}),
        "bench.errors-zero",
        Outcome.INCONCLUSIVE,
    ),
    "no warm-up stated": (lambda run: run["conditions"].pop("warmup_requests"), "bench.duration-warmup", Outcome.INCONCLUSIVE),
    "no seed": (lambda run: run["conditions"].pop("seed"), "bench.sampling-params", Outcome.INCONCLUSIVE),
    "no harness version": (lambda run: run["harness"].update(version=None), "bench.harness-pinned", Outcome.INCONCLUSIVE),
    "no hardware": (lambda run: run["scope"].pop("hardware"), "bench.hardware-identity", Outcome.INCONCLUSIVE),
    "no time": (lambda run: run.update(observed=None), "bench.date-window", Outcome.INCONCLUSIVE),
    "no quality report": (lambda run: run.update(quality=None), "bench.quality-attached", Outcome.INCONCLUSIVE),
    "caches of unknown state": (lambda run: run["conditions"].update(cache_state="unknown"), "bench.cache-state", Outcome.PASS),
}


def relength(run: JsonObject, at: int, tokens: int) -> None:
    run["observations"][at]["completion_tokens"] = tokens
    summarised(run)


@pytest.mark.parametrize("name", LIMITS)
def test_what_a_claim_lacks_leaves_it_inconclusive(name: str) -> None:
    change, checker, outcome = LIMITS[name]
    run = benchmark_run(change)
    assert against(run) == set()
    assert checker in lacking(run)
    assert judge(run, PASSED).outcome is outcome


def test_a_rate_without_its_quality_fails_with_it_or_waits_for_it() -> None:
    run = benchmark_run()
    assert judge(run, FAILED).outcome is Outcome.FAIL
    assert judge(run, FAILED).controls["quality-passed"] is Outcome.FAIL
    unknown = judge(run)
    assert (unknown.outcome, "quality-passed" in unknown.controls) == (Outcome.INCONCLUSIVE, False)
    assert run["quality"] == QUALITY
    assert {(item.checker, item.outcome) for item in unknown.limits} == {("bench.quality-attached", Outcome.NOT_RUN)}


@pytest.mark.parametrize(("boots", "tasks"), [(1, 6), (2, 6), (3, 5), (3, 1), (1, 1)])
def test_too_few_are_inconclusive_and_never_a_pass(boots: int, tasks: int) -> None:
    run = benchmark_run(boots=boots, tasks=tasks)
    found = judge(run, PASSED)
    assert found.contradictions == ()
    assert found.outcome is Outcome.INCONCLUSIVE
    assert {item.outcome for item in found.limits} == {Outcome.INCONCLUSIVE}


def test_a_percentile_needs_samples_beyond_it() -> None:
    def p99(run: JsonObject) -> None:
        run["summary"] = {"statistic": "percentile", "percentile": "99", "method": "nearest-rank", "sampling_unit": "request"}
        summarised(run, method=None)

    run = benchmark_run(p99)
    assert against(run) == set()
    assert "bench.percentile-support" in lacking(run)


def published_arm(arm: JsonObject) -> JsonObject:
    """An arm of a published campaign as a run, with the value that it states."""
    rows = [
        {
            "id": row["label"],
            "boot": f"{arm['variant']}#1",
            "prompt_tokens": row["usage"]["prompt_tokens"],
            "completion_tokens": row["usage"]["completion_tokens"],
            "wall_s": repr(row["wall_s"]),
            "ttft_s": repr(row["ttft_s"]),
            "finish": "stop",
        }
        for row in arm["rows"]
    ]
    run = benchmark_run()
    run["scope"]["cells"] = [{"concurrency": 1, "draft_tokens": arm["speculative_tokens"]}]
    summary = {"statistic": "median", "n": len(rows), "sampling_unit": "prompt", "value": repr(arm["median_decode_est_tps"])}
    return {**run, "observations": rows, "summary": summary, "repeats_of_identical_task": 1, "boots": 1, "quality": None, "observed": None}


@pytest.mark.parametrize("number", range(3))
def test_the_published_medians_recompute_and_bear_no_serving_claim(number: int) -> None:
    run = published_arm(CAMPAIGN[number])
    assert against(run) == set()
    assert against({**run, "metric": {**run["metric"], "definition": "decode.all"}}) == {"bench.denominator-declared"}
    assert lacking(run) >= {
        "bench.repetitions",
        "bench.attainable-significance",
        "bench.uncertainty",
        "bench.output-length-band",
        "bench.quality-attached",
    }
    assert judge(run).outcome is Outcome.INCONCLUSIVE


def test_a_task_is_one_sample_and_a_boot_is_one_sample() -> None:
    def by(unit: str) -> BenchmarkRun:
        return BenchmarkRun.of(benchmark_run(lambda run: run["summary"].update(sampling_unit=unit)))

    assert [len(by(unit).samples() or []) for unit in ("prompt", "boot", "request", "run", "rank")] == [6, 3, 18, 18, 18]


def test_windows_are_the_samples_of_what_is_counted_over_time() -> None:
    def windowed(run: JsonObject) -> None:
        run["metric"] = {"name": "throughput", "definition": "output.aggregate", "unit": "tokens/s"}
        run["windows"] = [{"id": f"w{boot}", "boot": f"b{boot}", "duration_s": "100"} for boot in range(3)]
        for item in run["observations"]:
            item["window"] = item["boot"].replace("b", "w")
        run["summary"] = {"statistic": "mean", "sampling_unit": "run"}
        summarised(run, method=None)

    run = benchmark_run(windowed)
    assert problems("benchmark-run", run) == []
    assert against(run) == set()
    assert run["summary"]["value"] == decimal(BenchmarkRun.of(run).value) == "24.06"
    assert judge(run, PASSED).capability is None
    counted = benchmark_run(windowed)
    counted["metric"] |= {"definition": "server.counter", "unit": "tokens/s"}
    for window in counted["windows"]:
        window |= {"counter_before": 1000, "counter_after": 3500}
    assert decimal(BenchmarkRun.of(summarised(counted, method=None)).value) == "25"


def test_what_no_schema_has_seen_is_no_run_and_never_a_crash() -> None:
    whole = benchmark_run()
    several: list[Any] = [None, 1, 1.5, "x", [], {}, [1], [{}], {"a": 1}, float("nan"), -1, True]
    for name in whole:
        for junk in several:
            broken = judged({**whole, name: junk})
            assert broken is None or broken.outcome in set(Outcome)
    assert judged({}) is None


@pytest.mark.parametrize("text", ["NaN", "1e3", "Infinity", "", " 1", "01", "1.", "9" * 400, "-", "１"])
def test_a_duration_is_a_decimal_text_of_reasonable_length(text: str) -> None:
    with pytest.raises(InputError):
        judge(benchmark_run(lambda run: run["observations"][0].update(wall_s=text)))
