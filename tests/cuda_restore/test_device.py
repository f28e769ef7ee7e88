"""Slots, tickets, the prerequisite and the ends of a placement, on the device that makes their absence visible."""

import inspect
import threading

import numpy as np
import pytest

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.errors import InputError
from countermark.cuda_restore.cpu_device import CpuDevice, Deferral
from countermark.cuda_restore.device import (
    Buffer,
    Bytes,
    Device,
    DriverError,
    Event,
    ScatterStatus,
    StagingMemory,
    Stream,
    Violation,
)
from countermark.cuda_restore.ownership import Ownership
from countermark.cuda_restore.spans import SpanTable
from countermark.cuda_restore.staging import Placement, RingClosedError, StagingRing, StateError, begin

SLAB = 64
SLABS = 8


class ForgetfulDevice(CpuDevice):
    """The real defect: a host that believes an event is done without waiting for it."""

    def wait(self, event: Event) -> None:
        self._point(event)


def orders() -> list[tuple[Deferral, int]]:
    return [(Deferral.LAZY, 0), (Deferral.EAGER, 0), *((Deferral.RANDOM, seed) for seed in range(20))]


def ring_on(device: Device, slots: int = 2) -> StagingRing:
    return StagingRing(device, slots=slots, payload_bytes=SLAB, max_spans=4)


def restore(device: Device, arena: Buffer, prerequisite: Event) -> ScatterStatus:
    """SLABS slabs through two slots; slab i holds the byte i and goes to place SLABS - 1 - i."""
    with ring_on(device) as ring, begin(ring, arena, prerequisite=prerequisite) as placement:
        for i in range(SLABS):
            slot = ring.acquire()
            slot.payload.fill(i)
            placement.submit(slot, SpanTable.of([0], [(SLABS - 1 - i) * SLAB], [SLAB]))
        return placement.finish().status


def wanted() -> Bytes:
    return np.repeat(np.arange(SLABS, dtype=np.uint8)[::-1], SLAB)


def restored(device: Device, *, forget_prerequisite: bool = False) -> tuple[Bytes, ScatterStatus]:
    """Poison the destination on a compute stream, restore, and look at the destination as the compute stream sees it."""
    with device:
        compute, idle, arena = device.new_stream(), device.new_stream(), device.allocate(SLABS * SLAB)
        device.fill(arena, 0xA5, compute)
        status = restore(device, arena, device.record(idle if forget_prerequisite else compute))
        return device.read(arena, 0, arena.size, compute), status


def test_every_order_places_every_byte() -> None:
    for deferral, seed in orders():
        placed, status = restored(CpuDevice(deferral, seed=seed))
        assert np.array_equal(placed, wanted())
        assert status == ScatterStatus(SLABS * SLAB, SLABS, 0, 0)


def test_a_forgotten_slot_wait_is_invisible_when_eager_and_visible_when_lazy_or_random() -> None:
    seen: dict[Deferral, list[bool]] = {}
    for deferral, seed in orders():
        placed, status = restored(ForgetfulDevice(deferral, seed=seed))
        assert status == ScatterStatus(SLABS * SLAB, SLABS, 0, 0), "the counters never notice"
        seen.setdefault(deferral, []).append(np.array_equal(placed, wanted()))
    assert seen[Deferral.EAGER] == [True]
    assert seen[Deferral.LAZY] == [False]
    assert not all(seen[Deferral.RANDOM])


def test_a_wrong_prerequisite_is_visible_when_lazy_or_random() -> None:
    right: dict[Deferral, list[bool]] = {deferral: [] for deferral in Deferral}
    for deferral, seed in orders():
        placed, _ = restored(CpuDevice(deferral, seed=seed), forget_prerequisite=True)
        right[deferral].append(np.array_equal(placed, wanted()))
    assert right[Deferral.EAGER] == [True]
    assert right[Deferral.LAZY] == [False]
    assert not all(right[Deferral.RANDOM])


def test_there_is_no_begin_without_a_prerequisite() -> None:
    parameter = inspect.signature(begin).parameters["prerequisite"]
    assert parameter.default is inspect.Parameter.empty
    assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
    assert parameter.annotation is Event
    assert inspect.signature(Placement).parameters["prerequisite"].default is inspect.Parameter.empty


def test_a_submitted_or_discarded_slot_cannot_be_written() -> None:
    with CpuDevice() as device, ring_on(device) as ring:
        arena, stream = device.allocate(SLAB), device.new_stream()
        with begin(ring, arena, prerequisite=device.record(stream)) as placement:
            slot = ring.acquire()
            placement.submit(slot, SpanTable.of([0], [0], [SLAB]))
            with pytest.raises(StateError, match="acquire another"):
                _ = slot.payload
            with pytest.raises(StateError, match="acquire another"):
                placement.submit(slot, SpanTable.of([0], [0], [SLAB]))
            slot = ring.acquire()
            slot.discard()
            with pytest.raises(StateError, match="acquire another"):
                slot.discard()
            placement.finish()


def test_a_slot_of_another_ring_is_refused() -> None:
    with CpuDevice() as device, ring_on(device) as ring, ring_on(device) as other:
        arena, stream = device.allocate(SLAB), device.new_stream()
        with begin(ring, arena, prerequisite=device.record(stream)) as placement, pytest.raises(StateError, match="another ring"):
            placement.submit(other.acquire(), SpanTable.of([0], [0], [SLAB]))


def test_no_more_slots_than_the_ring_has() -> None:
    with CpuDevice() as device, ring_on(device) as ring:
        assert ring.capacity_bytes == 2 * SLAB
        held = [ring.acquire(), ring.acquire()]
        got: list[str] = []

        def blocked() -> None:
            ring.acquire()
            got.append("slot")

        waiter = threading.Thread(target=blocked)
        waiter.start()
        waiter.join(0.05)
        assert waiter.is_alive()
        held[0].discard()
        waiter.join()
        assert got == ["slot"]


def test_closing_wakes_who_waits_for_a_slot() -> None:
    with CpuDevice() as device:
        ring = ring_on(device, slots=1)
        ring.acquire()
        caught: list[RingClosedError] = []

        def blocked() -> None:
            try:
                ring.acquire()
            except RingClosedError as error:
                caught.append(error)

        waiter = threading.Thread(target=blocked)
        waiter.start()
        ring.close()
        waiter.join()
        assert len(caught) == 1
        with pytest.raises(RingClosedError):
            ring.acquire()


def test_a_placement_ends_once() -> None:
    with CpuDevice() as device, ring_on(device) as ring:
        arena, stream = device.allocate(SLAB), device.new_stream()
        finished, aborted = (begin(ring, arena, prerequisite=device.record(stream)) for _ in range(2))
        finished.finish()
        aborted.abort()
        for placement, state in ((finished, "finished"), (aborted, "aborted")):
            for act in (placement.finish, placement.abort):
                with pytest.raises(StateError, match=f"already {state}"):
                    act()
            with pytest.raises(StateError, match=f"already {state}"):
                placement.submit(ring.acquire(), SpanTable.of([0], [0], [SLAB]))


def interrupted(ring: StagingRing, arena: Buffer, prerequisite: Event) -> None:
    with begin(ring, arena, prerequisite=prerequisite) as placement:
        slot = ring.acquire()
        slot.payload.fill(7)
        placement.submit(slot, SpanTable.of([0], [0], [SLAB]))
        failing("something else")


def test_leaving_by_an_error_waits_for_submitted_work() -> None:
    with CpuDevice(Deferral.LAZY) as device, ring_on(device) as ring:
        arena, stream = device.allocate(SLAB), device.new_stream()
        with pytest.raises(DriverError, match="something else"):
            interrupted(ring, arena, device.record(stream))
        assert device.read(arena, 0, 1, device.new_stream())[0] == 7, "nothing may still be on its way when the caller frees the arena"


def test_a_refused_table_gives_the_slot_back() -> None:
    with CpuDevice() as device, ring_on(device, slots=1) as ring:
        arena, stream = device.allocate(SLAB), device.new_stream()
        with begin(ring, arena, prerequisite=device.record(stream)) as placement:
            with pytest.raises(InputError, match="leaves its destination"):
                placement.submit(ring.acquire(), SpanTable.of([0], [SLAB], [16]))
            ring.acquire().discard()
            assert placement.finish().slabs == 0


class HalfwayDevice(CpuDevice):
    """Queues the copy, then fails the launch."""

    def scatter(self, staging: StagingMemory, spans: SpanTable, destination: Buffer, status: Buffer, stream: Stream) -> None:
        super().scatter(staging, spans, destination, status, stream)
        failing("cuLaunchKernel")


def test_a_slot_whose_submission_failed_half_way_is_waited_for_all_the_same() -> None:
    with HalfwayDevice(Deferral.LAZY) as device, ring_on(device, slots=1) as ring:
        arena, stream = device.allocate(SLAB), device.new_stream()
        with begin(ring, arena, prerequisite=device.record(stream)) as placement:
            slot = ring.acquire()
            slot.payload.fill(1)
            with pytest.raises(DriverError, match="cuLaunchKernel"):
                placement.submit(slot, SpanTable.of([0], [0], [SLAB]))
            ring.acquire().payload.fill(2)
        assert device.read(arena, 0, 1, stream)[0] == 1


def test_a_driver_error_names_its_call_and_exits_4() -> None:
    error = DriverError("cuMemHostAlloc", 2, "CUDA_ERROR_OUT_OF_MEMORY")
    assert (error.call, error.status, error.code, error.exit) == ("cuMemHostAlloc", 2, Code.DRIVER_ERROR, ExitCode.CANNOT_TELL)
    assert "cuMemHostAlloc failed with status 2" in str(error)


def test_the_error_word_names_the_violation() -> None:
    assert [Violation.of_error(n << 32 | 5) for n in (1, 2, 3, 4)] == list(Violation)


def failing(call: str) -> None:
    raise DriverError(call, 1, "test")


def test_everything_is_released_although_some_releases_fail() -> None:
    released: list[str] = []
    owned = Ownership()
    owned.add("a", lambda: released.append("a"))
    owned.add("b", lambda: failing("first"))
    owned.add("c", lambda: failing("second"))
    owned.add("d", lambda: released.append("d"))
    with pytest.raises(DriverError, match="second"):
        owned.close()
    assert released == ["d", "a"]
    owned.close()


def test_a_failed_release_does_not_hide_the_error_on_its_way() -> None:
    owned = Ownership()
    owned.add("a", lambda: failing("inner"))
    with pytest.raises(DriverError, match="outer") as caught, owned:
        failing("outer")
    assert any("inner" in note for note in caught.value.__notes__)


def test_the_devices_implement_the_protocol() -> None:
    device: Device = CpuDevice()
    with device:
        assert isinstance(device.new_stream(), Stream)
