"""Rounds in which everybody has a turn: a noisy machine is noisy to all, and figures of one round are compared with each other only.

A machine that others use cannot be made quiet, but it can be known how quiet a round was. More rounds are measured than are kept, and
the quietest are kept: the choice looks at what others did, never at the figures.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.restore.machine import Usage, cores
from benchmarks.restore.worker import Sample, Worker


@dataclass(frozen=True, slots=True)
class Round:
    """A sample of everybody by name, and the share of the processors, 0 to 1, that others took meanwhile."""

    samples: Mapping[str, Sample]
    others: float


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds that were kept of `measured`; the quietest."""

    kept: tuple[Round, ...]
    measured: int

    def values(self, name: str, value: Callable[[Sample], float]) -> list[float]:
        """One value a round."""
        return [value(one.samples[name]) for one in self.kept]

    def median(self, name: str, value: Callable[[Sample], float]) -> float:
        """The median over the rounds."""
        return median(self.values(name, value))

    def milliseconds(self, name: str) -> float:
        """The median time on the clock."""
        return self.median(name, lambda sample: sample.wall_ns / 1e6)

    def ratio(self, over: str, under: str) -> float:
        """The median of the rounds' ratios of two times."""
        pairs = zip(self.values(over, _wall), self.values(under, _wall), strict=True)
        return median(a / b for a, b in pairs)

    @property
    def others(self) -> float:
        """The median share of the processors that others took."""
        return median(one.others for one in self.kept)


def measure(workers: Sequence[Worker], *, keep: int, patience: int, quiet: float, prepare: Callable[[], None]) -> Rounds:
    """Measure until `keep` rounds were quiet, others taking at most the share `quiet`, but at most `patience` rounds.

    `prepare` brings the files into the state wanted, before every single run.
    """
    rounds: list[Round] = []
    while len(rounds) < patience and sum(one.others <= quiet for one in rounds) < keep:
        turn = len(rounds) % len(workers)
        rounds.append(_round([*workers[turn:], *workers[:turn]], prepare))
    return Rounds(tuple(sorted(rounds, key=lambda one: one.others)[:keep]), len(rounds))


def _round(workers: Sequence[Worker], prepare: Callable[[], None]) -> Round:
    samples: dict[str, Sample] = {}
    others = available = 0
    for worker in workers:
        prepare()
        begun = Usage.now()
        sample = samples[worker.name] = worker.run()
        others += begun.others_ns(sample.cpu_ns)
        available += sample.wall_ns * cores()
    return Round(samples, others / available)


def _wall(sample: Sample) -> float:
    return float(sample.wall_ns)
