"""Where the time of a restore went: the parts of each rank's coordinating thread, one after the other, up to the total."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from countermark.attestations.located import JsonValue, as_integer, as_list, as_object

WIDTH: Final = 1000
"""The length of a bar that takes all of the total."""

_PARTS: Final = {
    "lookup": "find the manifest",
    "plan": "plan",
    "prerequisite_wait": "wait for earlier work",
    "reader_wait": "wait for readers",
    "slot_wait": "wait for a staging slot",
    "copy_submit": "submit copies",
    "device_wait": "wait for the device",
    "readback": "read back",
    "unattributed": "in none of these",
}
_BESIDE: Final = {"readers_read": "reading", "readers_hash": "hashing"}


@dataclass(frozen=True, slots=True)
class Step:
    """One part in microseconds. `start` and `width` are in thousandths of the total, `share` in words; both none without a total."""

    name: str
    label: str
    us: int
    start: int
    width: int
    share: str


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The decomposition of one rank; `beside` is what reader threads did in the meantime, summed over them, in microseconds."""

    rank: str
    total: int
    bytes: int | None
    steps: tuple[Step, ...]
    beside: tuple[tuple[str, int], ...]
    slowest: bool


def waterfalls(run: Mapping[str, JsonValue]) -> tuple[Waterfall, ...]:
    """One for each rank of a restore-run that records its timing, in the order of the run."""
    ranks = [as_object(rank) for rank in as_list(run.get("ranks"))]
    totals = [_us(as_object(rank.get("timing")).get("total")) for rank in ranks]
    longest = max((total for total in totals if total), default=None)
    return tuple(
        _waterfall(rank, total, slowest=len(ranks) > 1 and total == longest) for rank, total in zip(ranks, totals, strict=True) if total
    )


def _waterfall(rank: Mapping[str, JsonValue], total: int, *, slowest: bool) -> Waterfall:
    timing = as_object(rank.get("timing"))
    beside = tuple((label, us) for name, label in _BESIDE.items() if (us := _us(timing.get(name))) is not None)
    return Waterfall(str(rank.get("rank")), total, as_integer(rank.get("bytes")), tuple(_steps(timing, total)), beside, slowest)


def _steps(timing: Mapping[str, JsonValue], total: int) -> Iterator[Step]:
    """Bars begin where the one before ended; what a record claims beyond the total is drawn no further than that."""
    before = 0
    for name, label in _PARTS.items():
        us = _us(timing.get(name))
        if us is None:
            continue
        start, end = min(before * WIDTH // total, WIDTH), min((before + us) * WIDTH // total, WIDTH)
        yield Step(name, label, us, start, end - start, _percent(us, total))
        before += us


def _percent(us: int, total: int) -> str:
    tenths = (us * 1000 + total // 2) // total
    return f"{tenths // 10}.{tenths % 10} %"


def _us(value: JsonValue) -> int | None:
    number = as_integer(value)
    return number if number is not None and number >= 0 else None
