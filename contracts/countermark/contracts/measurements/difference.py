"""By how much two comparable runs differ: relative differences of the pairs, their median, its interval, and an exact sign test.

A pair is a task of both runs, or a server start where the metric is counted over windows. The interval is the inverted sign test, so that
interval and p always agree. Where so few pairs cannot reach the significance at all, nothing is said about the difference.
"""

from dataclasses import dataclass
from fractions import Fraction
from statistics import median

from countermark.contracts.measurements.definitions import DEFINITIONS
from countermark.contracts.measurements.estimate import ALPHA, ORDER_STATISTIC, Interval, Summary, attainable, can_reach, interval
from countermark.contracts.measurements.run import BenchmarkRun
from countermark.contracts.measurements.serving_claim import BAND

LEVEL = 1 - ALPHA


@dataclass(frozen=True, slots=True)
class Difference:
    """Candidate against base, relative: 0.1 is ten percent more. `unequal` are the tasks whose outputs differ in length too much."""

    pairs: int
    value: Fraction
    interval: Interval | None
    p: Fraction
    attainable: Fraction
    unequal: tuple[str, ...]
    less_is_better: bool

    @property
    def conclusive(self) -> bool:
        """Whether so many pairs with outputs of one length can show a difference at all."""
        return self.interval is not None and not self.unequal

    @property
    def shown(self) -> bool:
        """Whether the difference is significant."""
        return self.conclusive and self.p <= ALPHA

    def regressed(self, limit: Fraction) -> bool | None:
        """Whether the candidate is worse by more than a share of the base; none where the interval lies on both sides of it."""
        if self.interval is None or self.unequal:
            return None
        low, high = (-self.interval.high, -self.interval.low) if self.less_is_better else (self.interval.low, self.interval.high)
        return True if high < -limit else False if low >= -limit else None


def difference(base: BenchmarkRun, candidate: BenchmarkRun) -> Difference | None:
    """The difference of two runs of one definition that are whole; none where they have no pair."""
    left, right = _means(base), _means(candidate)
    names = [name for name in left if name in right and left[name]]
    if not names:
        return None
    found = [right[name] / left[name] - 1 for name in names]
    return Difference(
        len(found),
        median(found),
        interval(found, Summary("median"), LEVEL, ORDER_STATISTIC) if can_reach(len(found), ALPHA) else None,
        _sign_test(found),
        attainable(len(found)),
        tuple(_unequal(base, candidate)),
        DEFINITIONS[base.definition].unit == "s",
    )


def _means(run: BenchmarkRun) -> dict[str, Fraction]:
    """The mean value of each task, or of each server start for what is counted over windows."""
    over_window = DEFINITIONS[run.definition].over_window
    groups: dict[str, list[Fraction]] = {}
    for task, boot, value in run.values(run.definition):
        if value is not None:
            groups.setdefault(boot if over_window else task, []).append(value)
    return {name: sum(values, Fraction(0)) / len(values) for name, values in groups.items()}


def _sign_test(found: list[Fraction]) -> Fraction:
    """The two-sided p of an exact sign test; pairs without a difference take no part."""
    signs = [value > 0 for value in found if value]
    if not signs:
        return Fraction(1)
    from scipy import stats

    return Fraction(float(stats.binomtest(sum(signs), len(signs), 0.5).pvalue))


def _unequal(base: BenchmarkRun, candidate: BenchmarkRun) -> list[str]:
    """The tasks whose median output is not within 90 to 110 % of the base's (catalogue BM-14), or `in total` where the sums are not.

    Outputs of other lengths make a ratio of rates no speed-up; a latency is compared whatever was said.
    """
    if DEFINITIONS[base.definition].unit != "tokens/s" or base.definition == "prefill.ttft":
        return []
    lengths = [
        {task: Fraction(median([item.completion_tokens for item in items])) for task, items in run.tasks.items()}
        for run in (base, candidate)
    ]
    both = [task for task in lengths[0] if task in lengths[1]]
    found = [task for task in both if abs(lengths[1][task] - lengths[0][task]) > BAND * lengths[0][task]]
    totals = [sum((values[task] for task in both), Fraction(0)) for values in lengths]
    return [*found, *(["in total"] if abs(totals[1] - totals[0]) > BAND * totals[0] else [])]
