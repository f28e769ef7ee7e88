"""What is measured, beside its floor: the least that the same machine could do it in, in the same run."""

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of work. `ours` and `beside` are seconds, medians of rounds taken in turn; `ratio` is the median of ours / beside.

    `goal` is what the ratio should not be above; a row without one tells a peer's time.
    """

    work: str
    ours: float
    beside_what: str
    beside: float
    ratio: float
    goal: float | None = None

    @classmethod
    def of(cls, work: str, ours: Sequence[float], beside_what: str, beside: Sequence[float], goal: float | None = None) -> "Row":
        """The row of pairs that were measured in turn."""
        ratios = [mine / other for mine, other in zip(ours, beside, strict=True)]
        return cls(work, statistics.median(ours), beside_what, statistics.median(beside), statistics.median(ratios), goal)

    def __str__(self) -> str:
        goal = f"goal {self.goal:g}" if self.goal is not None else "a peer"
        return f"{self.work:<38} {_time(self.ours):>10}  {self.beside_what:<34} {_time(self.beside):>10}  x {self.ratio:<8.3g} {goal}"

    def to_json(self) -> dict[str, object]:
        """The row as JSON; times in seconds."""
        return {name: round(value, 9) if isinstance(value, float) else value for name, value in asdict(self).items()}


def _time(seconds: float) -> str:
    for size, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def each(items: Sequence[T], act: Callable[[T], object]) -> float:
    """Seconds for one item, when all are done one by one."""
    return whole(lambda: [act(item) for item in items]) / len(items)


def whole(act: Callable[[], object]) -> float:
    """Seconds for all of it."""
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def in_turn(rounds: int, *acts: Callable[[], float]) -> list[list[float]]:
    """The figures of each act, taken in turn; the first round warms up and is dropped."""
    taken = [[act() for act in acts] for _ in range(rounds + 1)][1:]
    return [list(figures) for figures in zip(*taken, strict=True)]


def portions(items: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    """The items, so many at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))
