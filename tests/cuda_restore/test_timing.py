"""The stopwatch: whatever is done in between, the phases add up to the total, to the microsecond."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countermark.cuda_restore.timing import Phase, Stopwatch, check_timing


class Clock:
    """Nanoseconds that move only when told to."""

    def __init__(self) -> None:
        self.now = 12_345

    def __call__(self) -> int:
        return self.now


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(Phase), st.integers(0, 10**10))))
def test_phases_add_up_exactly(steps: list[tuple[Phase, int]]) -> None:
    clock = Clock()
    watch = Stopwatch(clock)
    for phase, nanoseconds in steps:
        watch.switch(phase)
        clock.now += nanoseconds
    timing = watch.stop(readers_read_ns=0, readers_hash_ns=0)
    assert sum(timing.phases.values()) == timing.total == sum(step for _, step in steps) // 1000
    assert all(value >= 0 for value in timing.phases.values())
    assert not [finding for finding in check_timing(timing.to_json()) if finding.checker == "timing.arithmetic"]


def test_each_phase_gets_its_own_time() -> None:
    clock = Clock()
    watch = Stopwatch(clock)
    clock.now += 1_000
    for phase, microseconds in ((Phase.LOOKUP, 2), (Phase.PLAN, 3), (Phase.LOOKUP, 4)):
        watch.switch(phase)
        clock.now += microseconds * 1_000
    timing = watch.stop(readers_read_ns=7_999, readers_hash_ns=8_000)
    assert timing.phases[Phase.LOOKUP] == 6
    assert timing.phases[Phase.PLAN] == 3
    assert timing.phases[Phase.UNATTRIBUTED] == 1
    assert timing.total == 10
    assert (timing.readers_read, timing.readers_hash) == (7, 8)


def test_the_names_are_those_of_the_receipt() -> None:
    names = (
        "lookup prerequisite_wait reader_wait plan slot_wait copy_submit device_wait readback unattributed total readers_read readers_hash"
    )
    assert list(Stopwatch(Clock()).stop(readers_read_ns=0, readers_hash_ns=0).to_json()) == names.split()


def sound() -> dict[str, int]:
    """100 microseconds, five of them unattributed: the most that is allowed."""
    named = {str(phase): 12 for phase in Phase} | {"lookup": 11, "unattributed": 5}
    return named | {"total": 100, "readers_read": 500, "readers_hash": 900}


def checkers(change: dict[str, int]) -> list[str | None]:
    return [finding.checker for finding in check_timing(sound() | change)]


def test_a_sound_timing_has_no_findings() -> None:
    assert not checkers({})


@pytest.mark.parametrize(
    ("change", "checker"),
    [
        ({"total": 101}, "timing.arithmetic"),
        ({"lookup": 12}, "timing.arithmetic"),
        ({"lookup": -1, "plan": 24}, "timing.arithmetic"),
        ({"readers_read": -1}, "timing.arithmetic"),
        ({"unattributed": 6, "plan": 11}, "timing.residual"),
    ],
)
def test_a_broken_timing_is_found(change: dict[str, int], checker: str) -> None:
    assert checkers(change) == [checker]


def test_a_missing_phase_is_found() -> None:
    timing = sound()
    del timing["slot_wait"]
    assert [finding.checker for finding in check_timing(timing)] == ["timing.arithmetic"]
