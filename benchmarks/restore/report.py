"""From rounds to a report: medians, ratios, the timing decomposition, and the goals beside what was found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, Self

from benchmarks.restore.contender import Contender, Detail
from benchmarks.restore.contenders import COSTS, DISK, NAIVE, OURS, ROWS
from benchmarks.restore.machine import cores
from benchmarks.restore.rounds import Rounds
from benchmarks.restore.worker import Sample
from countermark.cuda_restore.slabs import READERS
from countermark.cuda_restore.timing import Phase

LIMIT_GOAL: Final = 0.85
NAIVE_GOAL: Final = 2.0
UNATTRIBUTED_GOAL: Final = 0.05

_TIMED: Final = (*(str(phase) for phase in Phase), "total", "readers_read", "readers_hash")


@dataclass(frozen=True, slots=True)
class State:
    """The data set, and whether the page cache holds it: the share of it that does, 0 to 1."""

    encoded_bytes: int
    objects: int
    name: str
    resident_share: float


@dataclass(frozen=True, slots=True)
class Limit:
    """What the machine allows, in milliseconds: three costs of one core, the cores that can share them, and the disk if it counts."""

    read_ms: float
    hash_ms: float
    place_ms: float
    shared_by_cores: int
    disk_ms: float | None
    limit_ms: float

    @classmethod
    def of(cls, read_ms: float, hash_ms: float, place_ms: float, disk_ms: float | None = None) -> Self:
        """The limit of these costs: all cores busy, or the disk."""
        shared = min(cores(), READERS)
        return cls(read_ms, hash_ms, place_ms, shared, disk_ms, max((read_ms + hash_ms + place_ms) / shared, disk_ms or 0.0))

    @classmethod
    def warm(cls, rounds: Rounds) -> Self:
        """From the medians of the three costs."""
        return cls.of(_cost_ms(rounds, "read"), _cost_ms(rounds, "hash"), _cost_ms(rounds, "place"))

    def cold(self, rounds: Rounds) -> Self:
        """The same costs, and what the disk delivered."""
        return self.of(self.read_ms, self.hash_ms, self.place_ms, rounds.milliseconds(DISK.name))


@dataclass(frozen=True, slots=True)
class Row:
    """One contender: medians over the rounds, or why it took no part. `times_ours` is its time by ours."""

    name: str
    authenticates: bool
    places: bool
    skipped: str | None = None
    ms: float = 0.0
    least_ms: float = 0.0
    most_ms: float = 0.0
    processor_ms: float = 0.0
    gb_per_s: float = 0.0
    times_ours: float = 0.0

    @classmethod
    def of(cls, one: Contender, rounds: Rounds, encoded_bytes: int) -> Self:
        """A row of one that took part."""
        walls = rounds.values(one.name, lambda sample: sample.wall_ns / 1e6)
        return cls(
            one.name,
            one.authenticates,
            one.places,
            ms=median(walls),
            least_ms=min(walls),
            most_ms=max(walls),
            processor_ms=rounds.median(one.name, lambda sample: sample.cpu_ns / 1e6),
            gb_per_s=encoded_bytes / median(walls) / 1e6,
            times_ours=rounds.ratio(one.name, OURS.name),
        )


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Where our time went in the round with the median total, in microseconds, and the bounds that were reached in any round."""

    timing_us: Mapping[str, int]
    readers_max: int
    retained_bytes_max: int

    @classmethod
    def of(cls, rounds: Rounds) -> Self:
        """From the kept rounds."""
        details = sorted(_ours(rounds), key=lambda detail: detail["total"])
        middle = details[len(details) // 2]
        marks = (max(detail[name] for detail in details) for name in ("readers_max", "retained_bytes_max"))
        return cls({name: middle[name] for name in _TIMED}, *marks)


@dataclass(frozen=True, slots=True)
class Goal:
    """What the design asks for, and what was found."""

    text: str
    found: float
    met: bool


@dataclass(frozen=True, slots=True)
class SetReport:
    """One data set in one state. `work_ratio` is the processor time of the three costs by that of our restore."""

    state: State
    kept: int
    measured: int
    others_share: float
    limit: Limit
    rows: tuple[Row, ...]
    limit_ratio: float
    work_ratio: float | None
    decomposition: Decomposition
    goals: tuple[Goal, ...]

    @classmethod
    def warm(cls, state: State, rounds: Rounds, skipped: Mapping[str, str]) -> Self:
        """Each round's restore is held against that round's limit."""
        limit = Limit.warm(rounds)
        ratio = median(_work_ns(one.samples[COSTS.name]) / limit.shared_by_cores / one.samples[OURS.name].wall_ns for one in rounds.kept)
        work = median(_work_ns(one.samples[COSTS.name]) / one.samples[OURS.name].cpu_ns for one in rounds.kept)
        return cls._of(state, rounds, skipped, limit, ratio, work, _goals(rounds, ratio))

    @classmethod
    def cold(cls, state: State, rounds: Rounds, skipped: Mapping[str, str], warm: Limit) -> Self:
        """The medians are held against each other, because the costs were measured in warm rounds."""
        limit = warm.cold(rounds)
        return cls._of(state, rounds, skipped, limit, limit.limit_ms / rounds.milliseconds(OURS.name), None, ())

    @classmethod
    def _of(
        cls,
        state: State,
        rounds: Rounds,
        skipped: Mapping[str, str],
        limit: Limit,
        ratio: float,
        work: float | None,
        goals: tuple[Goal, ...],
    ) -> Self:
        rows = tuple(_rows(ROWS, rounds, skipped, state.encoded_bytes))
        return cls(state, len(rounds.kept), rounds.measured, rounds.others, limit, rows, ratio, work, Decomposition.of(rounds), goals)


def _rows(contenders: Sequence[Contender], rounds: Rounds, skipped: Mapping[str, str], encoded_bytes: int) -> list[Row]:
    return [
        Row(one.name, one.authenticates, one.places, skipped[one.name]) if one.name in skipped else Row.of(one, rounds, encoded_bytes)
        for one in contenders
    ]


def _goals(rounds: Rounds, limit_ratio: float) -> tuple[Goal, ...]:
    naive = rounds.ratio(NAIVE.name, OURS.name)
    share = max(detail[Phase.UNATTRIBUTED] / detail["total"] for detail in _ours(rounds))
    return (
        Goal(f"at least {LIMIT_GOAL} of the limit", limit_ratio, limit_ratio >= LIMIT_GOAL),
        Goal(f"at least {NAIVE_GOAL:g} times as fast as {NAIVE.name}", naive, naive >= NAIVE_GOAL),
        Goal(f"at most {UNATTRIBUTED_GOAL:.0%} of the time unattributed, in any round", share, share <= UNATTRIBUTED_GOAL),
    )


def _ours(rounds: Rounds) -> list[Detail]:
    return [one.samples[OURS.name].detail for one in rounds.kept]


def _work_ns(sample: Sample) -> int:
    return sample.detail["read"] + sample.detail["hash"] + sample.detail["place"]


def _cost_ms(rounds: Rounds, cost: str) -> float:
    return rounds.median(COSTS.name, lambda sample: sample.detail[cost] / 1e6)
