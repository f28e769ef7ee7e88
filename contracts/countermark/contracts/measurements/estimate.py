"""Statistics of samples, by the standard library, NumPy and SciPy: summaries, intervals, and what a number of samples can show at all.

Nothing here draws a random number on its own account. A bootstrap interval is a function of the samples, of the number of resamples and
of the seed that its document states, so everybody who computes it again gets the same one; that is why the contracts room, which is
pure, may hold it. NumPy and SciPy are imported by the functions that need them: together they take a second to load.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import mean, median
from typing import Any, Final

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError

ALPHA: Final = Fraction(5, 100)
"""The two-sided significance that a difference must be able to reach."""
RESAMPLES: Final = 9_999
SAMPLES_MAX: Final = 20_000
"""More samples than this are not resampled: their bootstrap would need gigabytes."""

_BOOTSTRAP: Final = re.compile(r"bootstrap-percentile resamples=([1-9][0-9]{2,5}) seed=(0|[1-9][0-9]{0,9})")
ORDER_STATISTIC: Final = "order-statistic"


@dataclass(frozen=True, slots=True)
class Summary:
    """Which statistic: `median`, `mean` or `percentile` with its rank (0 to 100) and how it lies between two samples."""

    statistic: str
    percentile: Fraction | None = None
    method: str | None = None

    @property
    def quantile(self) -> Fraction | None:
        """The share of the population below it; none for a mean."""
        if self.statistic == "median":
            return Fraction(1, 2)
        return self.percentile / 100 if self.statistic == "percentile" and self.percentile is not None else None

    def of(self, samples: Sequence[Fraction]) -> Fraction:
        """The value over at least one sample; `InputError` for a statistic that is not fully named."""
        if self.statistic == "median":
            return median(samples)
        if self.statistic == "mean":
            return mean(samples)
        if self.percentile is None or self.method not in _PERCENTILE:
            raise InputError(Code.SCHEMA_INVALID, "a percentile needs its rank and its method", fix="name nearest-rank or linear")
        import numpy as np

        return Fraction(float(np.percentile(_floats(samples), float(self.percentile), method=_PERCENTILE[self.method])))

    @property
    def samples_needed(self) -> int:
        """How many samples a percentile needs: ten beyond it on the shorter side (catalogue BM-10); one for other statistics."""
        if self.statistic != "percentile" or self.percentile is None:
            return 1
        beyond = min(self.percentile, 100 - self.percentile) / 100
        return math.ceil(10 / beyond) if beyond > 0 else SAMPLES_MAX + 1


_PERCENTILE: Final[dict[str | None, Any]] = {"nearest-rank": "inverted_cdf", "linear": "linear"}
"""The names that NumPy has for the methods (Hyndman and Fan 1996, definitions 1 and 7)."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval, its level between 0 and 1, and how it was computed."""

    low: Fraction
    high: Fraction
    level: Fraction
    method: str

    def holds(self, value: Fraction) -> bool:
        """Whether a value lies inside."""
        return self.low <= value <= self.high

    def agrees_with(self, other: "Interval") -> bool:
        """Whether two intervals are one, within a billionth of their ends."""
        return all(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12) for a, b in ((self.low, other.low), (self.high, other.high)))


def bootstrap_method(seed: int, resamples: int = RESAMPLES) -> str:
    """The name of a bootstrap interval, from which anybody can compute it again."""
    return f"bootstrap-percentile resamples={resamples} seed={seed}"


def known_method(method: str) -> bool:
    """Whether an interval of this method can be computed again here."""
    return method == ORDER_STATISTIC or _BOOTSTRAP.fullmatch(method) is not None


def interval(samples: Sequence[Fraction], summary: Summary, level: Fraction, method: str) -> Interval | None:
    """The interval of a statistic; none where the samples are too few to reach the level, or the method has none for this statistic.

    `order-statistic` is the exact distribution-free interval of a quantile (the inverted sign test). `bootstrap-percentile` resamples as
    often and with the seed that its name says; it too is refused below the number of samples that could ever reach the level, since
    with fewer even the whole range of the samples does not.
    """
    if not can_reach(len(samples), 1 - level) or not samples or len(samples) > SAMPLES_MAX:
        return None
    ends = _ends(tuple(samples), summary, level, method)
    return Interval(*ends, level, method) if ends and not any(map(math.isnan, map(float, ends))) else None


def can_reach(pairs: int, alpha: Fraction) -> bool:
    """Whether `pairs` samples can reach a two-sided significance: the sign test gives 2 / 2^n at best (catalogue BM-12)."""
    return attainable(pairs) <= alpha


def attainable(pairs: int) -> Fraction:
    """The smallest two-sided p that an exact sign or sign-flip test of so many pairs can give."""
    return min(Fraction(1), Fraction(2, 2 ** min(pairs, 4096)))


def pairs_needed(alpha: Fraction = ALPHA) -> int:
    """The fewest pairs that can reach a significance."""
    return next(pairs for pairs in range(1, 4097) if can_reach(pairs, alpha))


@lru_cache(maxsize=1024)
def _ends(samples: tuple[Fraction, ...], summary: Summary, level: Fraction, method: str) -> tuple[Fraction, Fraction] | None:
    if method == ORDER_STATISTIC:
        return _order_statistic(samples, summary, level)
    named = _BOOTSTRAP.fullmatch(method)
    return _bootstrap(samples, summary, level, int(named[1]), int(named[2])) if named else None


def _order_statistic(samples: tuple[Fraction, ...], summary: Summary, level: Fraction) -> tuple[Fraction, Fraction] | None:
    if summary.quantile is None or not 0 < summary.quantile < 1:
        return None
    from scipy import stats

    found: Any = stats.quantile_test(_floats(samples), p=float(summary.quantile)).confidence_interval(float(level))
    if math.isnan(found.low) or math.isnan(found.high):
        return None
    return Fraction(float(found.low)), Fraction(float(found.high))


def _bootstrap(
    samples: tuple[Fraction, ...], summary: Summary, level: Fraction, resamples: int, seed: int
) -> tuple[Fraction, Fraction] | None:
    import numpy as np
    from scipy import stats

    if summary.statistic == "percentile" and (summary.percentile is None or summary.method not in _PERCENTILE):
        return None

    def statistic(values: "np.ndarray[Any, np.dtype[np.float64]]", axis: int) -> "np.ndarray[Any, np.dtype[np.float64]]":
        if summary.statistic == "percentile":
            made = np.percentile(values, float(summary.percentile or 0), axis=axis, method=_PERCENTILE[summary.method])
        else:
            made = (np.median if summary.statistic == "median" else np.mean)(values, axis=axis)
        return np.asarray(made)

    found = stats.bootstrap(
        (_floats(samples),),
        statistic,
        n_resamples=resamples,
        batch=max(1, 2_000_000 // len(samples)),
        confidence_level=float(level),
        method="percentile",
        rng=np.random.Generator(np.random.PCG64(seed)),
    ).confidence_interval
    return Fraction(float(found.low)), Fraction(float(found.high))


def _floats(samples: Sequence[Fraction]) -> list[float]:
    return [float(sample) for sample in samples]
