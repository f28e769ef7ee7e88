"""Summaries and intervals against other implementations: the standard library, SciPy's own quantiles, exact counting."""

import math
import statistics
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from countermark.attestations.errors import InputError
from countermark.contracts.measurements.definitions import DEFINITIONS, close
from countermark.contracts.measurements.estimate import (
    ORDER_STATISTIC,
    Interval,
    Summary,
    attainable,
    bootstrap_method,
    can_reach,
    interval,
    known_method,
    pairs_needed,
)

LEVEL = Fraction(95, 100)
MEDIAN = Summary("median", method="mean-of-middle")
rates = st.lists(st.decimals(min_value="0.001", max_value="100000", places=6).map(Fraction), min_size=1, max_size=60)
enough = st.lists(st.integers(1, 10**6).map(lambda whole: Fraction(whole, 1000)), min_size=6, max_size=40)


@given(rates)
def test_median_and_mean_are_those_of_numpy(samples: list[Fraction]) -> None:
    floats = [float(sample) for sample in samples]
    assert close(MEDIAN.of(samples), float(np.median(floats)))
    assert math.isclose(Summary("mean").of(samples), float(np.mean(floats)), rel_tol=1e-12)


@given(rates, st.integers(0, 1000))
def test_percentiles_are_those_of_scipy_and_of_their_definitions(samples: list[Fraction], tenths: int) -> None:
    rank, ordered = Fraction(tenths, 10), sorted(samples)
    floats = [float(sample) for sample in samples]
    linear = Summary("percentile", rank, "linear").of(samples)
    nearest = Summary("percentile", rank, "nearest-rank").of(samples)
    assert math.isclose(linear, float(stats.quantile(floats, float(rank / 100), method="linear")), rel_tol=1e-12)
    assert math.isclose(nearest, ordered[max(0, math.ceil(rank / 100 * len(ordered)) - 1)], rel_tol=1e-12)


@given(st.lists(st.integers(1, 10**6).map(Fraction), min_size=2, max_size=50))
def test_quartiles_are_those_of_the_standard_library(samples: list[Fraction]) -> None:
    wanted = statistics.quantiles([float(sample) for sample in samples], n=4, method="inclusive")
    found = [Summary("percentile", Fraction(rank), "linear").of(samples) for rank in (25, 50, 75)]
    assert all(math.isclose(a, b, rel_tol=1e-12) for a, b in zip(found, wanted, strict=True))


def coverage(n: int, low: int, high: int, p: Fraction = Fraction(1, 2)) -> Fraction:
    """The exact probability that order statistics `low` and `high` (from 1) have the quantile `p` between them."""
    return sum((math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(low, high)), Fraction(0))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 10**6), min_size=6, max_size=40, unique=True))
def test_an_order_statistic_interval_covers_as_often_as_it_says_and_is_the_narrowest_of_its_kind(values: list[int]) -> None:
    ordered, n = sorted(values), len(values)
    found = interval(list(map(Fraction, values)), MEDIAN, LEVEL, ORDER_STATISTIC)
    assert found is not None
    low, high = ordered.index(int(found.low)) + 1, ordered.index(int(found.high)) + 1
    assert low + high == n + 1
    assert coverage(n, low, high) >= LEVEL
    assert low + 1 > high - 1 or coverage(n, low + 1, high - 1) < LEVEL


@pytest.mark.parametrize("summary", [MEDIAN, Summary("mean")], ids=lambda it: it.statistic)
def test_a_bootstrap_interval_is_that_of_all_resamples_but_for_its_sampling_error(summary: Summary) -> None:
    samples = [Fraction(text) for text in ("19.5", "20.1", "20.4", "21.7", "22.6", "25.0")]
    every = [float(summary.of(chosen)) for chosen in product(samples, repeat=len(samples))]
    exact = np.quantile(every, [0.02, 0.03, 0.97, 0.98])
    found = interval(samples, summary, LEVEL, bootstrap_method(seed=7))
    assert found is not None
    assert exact[0] <= float(found.low) <= exact[1]
    assert exact[2] <= float(found.high) <= exact[3]


@settings(max_examples=10, deadline=None)
@given(enough, st.integers(0, 2**32 - 1))
def test_a_bootstrap_interval_is_the_same_for_everybody_who_knows_its_seed(samples: list[Fraction], seed: int) -> None:
    method = bootstrap_method(seed, resamples=500)
    first, second = (interval(samples, Summary("mean"), LEVEL, method) for _ in range(2))
    assert first is not None
    assert second is not None
    assert known_method(method)
    assert first.agrees_with(second)
    reference = stats.bootstrap(
        ([float(sample) for sample in samples],),
        np.mean,
        n_resamples=500,
        method="percentile",
        rng=np.random.Generator(np.random.PCG64(seed)),
    ).confidence_interval
    assert first.agrees_with(Interval(Fraction(float(reference.low)), Fraction(float(reference.high)), LEVEL, method))


@pytest.mark.parametrize("method", [ORDER_STATISTIC, bootstrap_method(1)])
@pytest.mark.parametrize("n", range(6))
def test_too_few_samples_have_no_interval(n: int, method: str) -> None:
    samples = [Fraction(number + 1) for number in range(n)]
    assert interval(samples, MEDIAN, LEVEL, method) is None


def test_a_mean_has_no_order_statistics_and_an_unknown_method_no_interval() -> None:
    samples = [Fraction(number + 1) for number in range(20)]
    assert interval(samples, Summary("mean"), LEVEL, ORDER_STATISTIC) is None
    assert interval(samples, MEDIAN, LEVEL, "eyeballed") is None
    assert not known_method("bootstrap-percentile resamples=9999")
    assert interval([Fraction(3)] * 8, MEDIAN, LEVEL, bootstrap_method(1)) == Interval(Fraction(3), Fraction(3), LEVEL, bootstrap_method(1))


@pytest.mark.parametrize("n", range(1, 12))
def test_the_attainable_significance_is_that_of_an_exact_sign_test(n: int) -> None:
    assert float(attainable(n)) == pytest.approx(stats.binomtest(n, n, 0.5).pvalue)


def test_six_pairs_are_the_fewest_that_reach_five_percent() -> None:
    assert pairs_needed() == 6
    assert (attainable(4), can_reach(5, Fraction(5, 100)), can_reach(6, Fraction(5, 100))) == (Fraction(1, 8), False, True)


@pytest.mark.parametrize(("rank", "needed"), [("50", 20), ("90", 100), ("99", 1000), ("99.9", 10_000), ("10", 100)])
def test_a_percentile_needs_ten_samples_beyond_it(rank: str, needed: int) -> None:
    assert Summary("percentile", Fraction(rank), "linear").samples_needed == needed


def test_a_percentile_without_rank_or_method_has_no_value() -> None:
    for summary in (Summary("percentile"), Summary("percentile", Fraction(90), "mean-of-middle")):
        with pytest.raises(InputError):
            summary.of([Fraction(1)])


def test_the_definitions_are_the_closed_list_and_differ_where_they_must() -> None:
    assert set(DEFINITIONS) == {
        "decode.excl-first",
        "decode.all",
        "e2e.request",
        "prefill.ttft",
        "output.aggregate",
        "latency.wall",
        "latency.ttft",
        "restore.bytes",
        "server.counter",
    }
    operands = {"completion": 101, "wall": Fraction(11), "ttft": Fraction(1)}
    made = {
        name: DEFINITIONS[name].compute(*(operands[it] for it in DEFINITIONS[name].operands))
        for name in ("decode.excl-first", "decode.all")
    }
    assert made == {"decode.excl-first": 10, "decode.all": Fraction(101, 10)}
