"""Where the coordinating thread's time went: a stopwatch that is always in exactly one phase, so that the parts add up.

Nothing is timed as an island and summed afterwards; entering a phase ends the one before. What belongs to no phase is shown as such.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.findings import Finding


class Phase(StrEnum):
    """What the coordinating thread does, in the names of `restore-run/v1`."""

    LOOKUP = "lookup"
    PREREQUISITE_WAIT = "prerequisite_wait"
    READER_WAIT = "reader_wait"
    PLAN = "plan"
    SLOT_WAIT = "slot_wait"
    COPY_SUBMIT = "copy_submit"
    DEVICE_WAIT = "device_wait"
    READBACK = "readback"
    UNATTRIBUTED = "unattributed"


RESIDUAL_PERCENT_MAX: Final = 5
_READERS: Final = ("readers_read", "readers_hash")


@dataclass(frozen=True, slots=True)
class Timing:
    """Microseconds. The phases add up to `total`; the readers' own thread time stands beside them and may exceed it."""

    phases: Mapping[Phase, int]
    total: int
    readers_read: int
    readers_hash: int

    def to_json(self) -> dict[str, int]:
        """The object `timing` of `restore-run/v1`."""
        phases = {str(phase): self.phases[phase] for phase in Phase}
        return {**phases, "total": self.total, "readers_read": self.readers_read, "readers_hash": self.readers_hash}


class Stopwatch:
    """Runs from its making until `stop`; `clock` counts nanoseconds and never goes back."""

    def __init__(self, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self._clock = clock
        self._spent_ns = dict.fromkeys(Phase, 0)
        self.phase = Phase.UNATTRIBUTED
        self._begun = self._switched = clock()

    def switch(self, phase: Phase) -> None:
        """End the current phase and enter `phase`."""
        now = self._clock()
        self._spent_ns[self.phase] += now - self._switched
        self._switched, self.phase = now, phase

    def stop(self, *, readers_read_ns: int, readers_hash_ns: int) -> Timing:
        """The timing up to now. Each phase is rounded down; what rounding loses is unattributed too."""
        self.switch(Phase.UNATTRIBUTED)
        total = (self._switched - self._begun) // 1000
        phases: dict[Phase, int] = {phase: spent // 1000 for phase, spent in self._spent_ns.items() if phase is not Phase.UNATTRIBUTED}
        phases[Phase.UNATTRIBUTED] = total - sum(phases.values())
        return Timing(phases, total, readers_read_ns // 1000, readers_hash_ns // 1000)


def check_timing(timing: Mapping[str, int]) -> list[Finding]:
    """Hold the object `timing` of a receipt to its own arithmetic (catalogue RE-10 and RE-11)."""
    return list(_timing_findings(timing))


def _timing_findings(timing: Mapping[str, int]) -> Iterator[Finding]:
    for name in (*Phase, "total", *_READERS):
        if timing.get(name, -1) < 0:
            yield _finding("timing.arithmetic", f"{name} in microseconds, not negative", f"{timing.get(name)}")
            return
    parts, total = sum(timing[phase] for phase in Phase), timing["total"]
    if parts != total:
        yield _finding("timing.arithmetic", f"phases that add up to the total of {total} µs", f"{parts} µs")
    if 100 * timing[Phase.UNATTRIBUTED] > RESIDUAL_PERCENT_MAX * total:
        observed = f"{timing[Phase.UNATTRIBUTED]} of {total} µs"
        yield _finding("timing.residual", f"at most {RESIDUAL_PERCENT_MAX} % of the total unattributed", observed)


def _finding(checker: str, required: str, observed: str) -> Finding:
    fix = "measure again with an engine whose phases cover its work"
    return Finding(Code.CONTRACT_VIOLATED, Outcome.FAIL, fix, checker=checker, subject="timing", required=required, observed=observed)
