"""What a trace shows of memory and readers: the objects being read, and the bytes that staging slots hold, at every event."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from countermark.cuda_restore.events import Authenticated, Discarded, ReadBegun, TraceEvent
from countermark.cuda_restore.trace import Trace


@dataclass(frozen=True, slots=True)
class HighWater:
    """The most objects that were being read at once, and the most bytes of objects that host slots held at once."""

    readers: int
    retained_bytes: int


def high_water(trace: Trace) -> HighWater:
    """The high-water marks. A submitted slab counts as retained until its slot is taken for another."""
    marks = [(len(reading), sum(held.values())) for _, reading, held in occupancy(trace.events)]
    return HighWater(max((readers for readers, _ in marks), default=0), max((retained for _, retained in marks), default=0))


def occupancy(events: Sequence[TraceEvent]) -> Iterator[tuple[int, set[int], dict[int, int]]]:
    """After each event: its number, the objects being read, and the bytes that each slot holds."""
    reading: dict[int, int] = {}  # object -> its slab
    held: dict[int, int] = {}
    owners: dict[int, int] = {}  # slot -> the slab in it
    for number, event in enumerate(events):
        match event:
            case ReadBegun():
                reading[event.object] = event.slab
                before = held.get(event.slot, 0) if owners.get(event.slot) == event.slab else 0
                held[event.slot], owners[event.slot] = before + event.bytes, event.slab
            case Authenticated():
                reading.pop(event.object, None)
            case Discarded():
                reading = {member: slab for member, slab in reading.items() if slab != event.slab}
                held = {slot: size for slot, size in held.items() if owners[slot] != event.slab}
            case _:
                pass
        yield number, set(reading), held
