"""Comparisons: an undeclared difference is refused by name, too few pairs are inconclusive, and a difference is told with its interval."""

import copy
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measured import benchmark_run, summarised
from scipy import stats

from countermark.attestations.errors import InputError
from countermark.contracts.measurements.comparability import incomparable, unrecorded
from countermark.contracts.measurements.difference import difference
from countermark.contracts.measurements.run import BenchmarkRun, decimal

JsonObject = dict[str, Any]
OTHER_IMAGE = "oci-manifest:sha256:" + "5e" * 32


def faster(run: JsonObject, factor: str = "1.1") -> None:
    """Another image that decodes faster by a factor."""
    run["image"] = run["tuple"]["image"] = run["scope"]["image"] = OTHER_IMAGE
    run["tuple"]["source"] = "git-commit:" + "bf" * 20
    for item in run["observations"]:
        item["wall_s"] = decimal((Fraction(item["wall_s"]) - Fraction(1, 2)) / Fraction(factor) + Fraction(1, 2))
    summarised(run)


def read(run: JsonObject) -> BenchmarkRun:
    return BenchmarkRun.of(run)


def named(base: JsonObject, candidate: JsonObject, *variables: str) -> list[tuple[str, str]]:
    return [(item.checker, item.pointer) for item in incomparable(read(base), read(candidate), variables)]


def test_another_image_measured_alike_may_be_compared_and_its_gain_is_told() -> None:
    base, candidate = benchmark_run(), benchmark_run(faster)
    assert named(base, candidate) == []
    assert list(unrecorded(read(base))) == []
    found = difference(read(base), read(candidate))
    assert found is not None
    assert found.interval is not None
    assert (found.pairs, found.conclusive, found.shown) == (6, True, True)
    assert float(found.value) == pytest.approx(0.1, abs=1e-3)
    assert found.interval.low <= found.value <= found.interval.high
    assert float(found.p) == pytest.approx(2 / 2**6)


DIFFERING: dict[str, tuple[Callable[[JsonObject], object], str, str]] = {
    "harness": (lambda run: run["harness"].update(version="2.5"), "bench.one-variable", "/harness/version"),
    "model": (lambda run: run["tuple"]["model"].update(revision="1" * 40), "bench.one-variable", "/tuple/model/revision"),
    "draft": (lambda run: run["tuple"]["draft"].update(revision="1" * 40), "bench.one-variable", "/tuple/draft/revision"),
    "topology": (lambda run: run["scope"]["topology"].update(tp=4), "bench.one-variable", "/scope/topology/tp"),
    "a cell": (lambda run: run["scope"]["cells"][0].update(concurrency=8), "bench.one-variable", "/scope/cells/0/concurrency"),
    "a cell more": (lambda run: run["scope"]["cells"].append({"concurrency": 2}), "bench.one-variable", "/scope/cells/1/concurrency"),
    "hardware": (lambda run: run["scope"]["hardware"].update(accelerator="X2"), "bench.hardware-identity", "/scope/hardware/accelerator"),
    "a field that one does not record": (lambda run: run["conditions"].pop("seed"), "bench.sampling-params", "/conditions/seed"),
    "a cache": (lambda run: run["conditions"].update(prefix_cache="on"), "bench.one-variable", "/conditions/prefix_cache"),
    "definition": (lambda run: run["metric"].update(definition="decode.all"), "bench.one-denominator", "/metric/definition"),
    "statistic": (lambda run: run["summary"].update(statistic="mean"), "bench.one-denominator", "/summary/statistic"),
    "the length of a prompt": (
        lambda run: [item.update(prompt_tokens=999) for item in run["observations"] if item["group"] == "t0"],
        "bench.same-inputs",
        "/observations",
    ),
    "the tasks": (lambda run: run["observations"].pop(), "bench.same-inputs", "/observations"),
}


@pytest.mark.parametrize("name", DIFFERING)
def test_a_field_that_differs_and_is_not_declared_is_refused_by_name(name: str) -> None:
    change, checker, pointer = DIFFERING[name]
    base, candidate = benchmark_run(boots=1), benchmark_run(faster, boots=1)
    change(candidate)
    assert (checker, pointer) in named(base, candidate)
    assert named(base, candidate, pointer) == []
    assert ((checker, pointer) in named(candidate, base)) is True


def test_a_variable_declares_an_object_with_all_that_is_below_it_and_must_differ() -> None:
    base, candidate = benchmark_run(), benchmark_run(faster)
    candidate["tuple"]["draft"] |= {"revision": "1" * 40, "repository": "example/Other"}
    assert named(base, candidate, "/tuple/draft") == []
    with pytest.raises(InputError, match="/conditions/seed does not differ"):
        named(base, candidate, "/conditions/seed")
    with pytest.raises(InputError):
        named(base, candidate, "/tuple/draf")


def test_a_run_is_not_compared_with_itself() -> None:
    run = benchmark_run()
    assert named(run, copy.deepcopy(run)) == [("bench.distinct-inputs", "/observations")]


@pytest.mark.parametrize("tasks", range(1, 6))
def test_too_few_pairs_show_nothing_whatever_the_difference(tasks: int) -> None:
    found = difference(read(benchmark_run(tasks=tasks)), read(benchmark_run(lambda run: faster(run, "9"), tasks=tasks)))
    assert found is not None
    assert (found.interval, found.conclusive, found.shown, found.regressed(Fraction(0))) == (None, False, False, None)


def test_outputs_of_other_lengths_make_no_speed_up() -> None:
    def longer(run: JsonObject) -> None:
        for item in run["observations"]:
            item["completion_tokens"] = 460
        faster(run)

    found = difference(read(benchmark_run()), read(benchmark_run(longer)))
    assert found is not None
    assert (found.conclusive, found.unequal[-1]) == (False, "in total")


def test_a_regression_is_told_by_the_interval_and_not_by_the_value() -> None:
    base, slower = read(benchmark_run(tasks=8)), read(benchmark_run(lambda run: faster(run, "0.9"), tasks=8))
    found = difference(base, slower)
    assert found is not None
    assert [found.regressed(Fraction(share, 100)) for share in (5, 20)] == [True, False]
    assert difference(slower, base) is not None
    latency = benchmark_run(lambda run: run["metric"].update(definition="latency.wall", unit="s"), tasks=8)
    worse = benchmark_run(lambda run: faster(run, "0.8"), tasks=8)
    worse["metric"] |= {"definition": "latency.wall", "unit": "s"}
    slow = difference(read(latency), read(worse))
    assert slow is not None
    assert slow.value > 0
    assert slow.regressed(Fraction(5, 100)) is True


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=6, max_size=20))
def test_the_p_is_that_of_a_sign_test(shifts: list[int]) -> None:
    base, candidate = benchmark_run(boots=1, tasks=len(shifts)), benchmark_run(boots=1, tasks=len(shifts))
    for item, shift in zip(candidate["observations"], shifts, strict=True):
        item["completion_tokens"] += shift
    found = difference(read(base), read(candidate))
    above, moved = sum(shift > 0 for shift in shifts), sum(shift != 0 for shift in shifts)
    assert found is not None
    assert float(found.p) == pytest.approx(stats.binomtest(above, moved, 0.5).pvalue if moved else 1)
    assert not found.shown or (found.interval is not None and not found.interval.low < 0 < found.interval.high)
