"""Readers: bounds that hold at every instant, slots in manifest order, and no slot lost however the reading ends."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from snapshots import Snapshot, small_snapshot

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, UsageError
from countermark.cuda_restore.cpu_device import CpuDevice
from countermark.cuda_restore.device import Bytes, DriverError, Event
from countermark.cuda_restore.events import Authenticated, Discarded, ReadBegun
from countermark.cuda_restore.pool import ReaderPool
from countermark.cuda_restore.slabs import Bounds, Slab, slabs_of
from countermark.cuda_restore.staging import FillingSlot, RingClosedError, StagingRing, StateError
from countermark.cuda_restore.store import Folder
from countermark.cuda_restore.trace import Recorder

MIB = 1024 * 1024


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    return small_snapshot(tmp_path / "store")


def slabs(snapshot: Snapshot) -> tuple[Slab, ...]:
    """Every object alone, as a small number of objects is cut."""
    return slabs_of(snapshot.loaded.manifest.objects, Bounds())


@contextmanager
def pool_of(snapshot: Snapshot, device: CpuDevice, *, slots: int, readers: int, recorder: Recorder | None = None) -> Iterator[ReaderPool]:
    with (
        StagingRing(device, slots=slots, payload_bytes=1024, max_spans=8) as ring,
        Folder.at(snapshot.chunks) as chunks,
    ):
        with ReaderPool(chunks, slabs(snapshot), ring, readers, recorder or Recorder()) as pool:
            yield pool
        held = [ring.acquire() for _ in range(slots)]  # blocks for ever if a slot was lost
        for slot in held:
            slot.discard()


@pytest.mark.parametrize("slots", [1, 2, 3, 7])
@pytest.mark.parametrize("readers", [1, 2, 5])
def test_objects_come_in_order_through_any_number_of_slots(snapshot: Snapshot, slots: int, readers: int) -> None:
    recorder = Recorder()
    with CpuDevice() as device, pool_of(snapshot, device, slots=slots, readers=readers, recorder=recorder) as pool:
        for one in snapshot.loaded.manifest.objects:
            pool.await_begun(one.index)
            found = bytes(pool.await_authenticated(one.index))
            assert found == snapshot.object_path(one.index).read_bytes()
            pool.hand_over(one.index).discard()
        assert pool.read_ns > 0
        assert pool.hash_ns > 0
    begun = [event.object for event in recorder.trace.events if isinstance(event, ReadBegun)]
    assert sorted(begun) == [one.index for one in snapshot.loaded.manifest.objects]
    assert begun == sorted(begun) or readers > 1 < slots


@pytest.mark.parametrize("handed", [0, 1, 3])
@pytest.mark.parametrize("slots", [1, 2, 7])
def test_leaving_early_returns_every_slot_and_ends_every_thread(snapshot: Snapshot, handed: int, slots: int) -> None:
    threads = threading.active_count()
    recorder = Recorder()
    with CpuDevice() as device, pool_of(snapshot, device, slots=slots, readers=2, recorder=recorder) as pool:
        for index in range(handed):
            pool.hand_over(index).discard()
    assert threading.active_count() == threads
    begun = sorted(event.slab for event in recorder.trace.events if isinstance(event, ReadBegun))
    discarded = [event.slab for event in recorder.trace.events if isinstance(event, Discarded)]
    assert sorted(discarded) == begun[handed:]


def test_a_bad_object_is_raised_at_its_turn_and_later_ones_are_given_up(snapshot: Snapshot) -> None:
    path = snapshot.object_path(2)
    path.write_bytes(b"\0" * path.stat().st_size)
    recorder = Recorder()
    with CpuDevice() as device, pool_of(snapshot, device, slots=2, readers=2, recorder=recorder) as pool:
        for index in range(2):
            pool.hand_over(index).discard()
        with pytest.raises(InputError) as caught:
            pool.await_authenticated(2)
        assert caught.value.code is Code.BAD_DIGEST
    events = recorder.trace.events
    assert not any(isinstance(event, Authenticated) and event.object == 2 for event in events)
    assert Discarded(2) in events
    assert not any(isinstance(event, ReadBegun) and event.object > 4 for event in events)


def test_objects_are_handed_over_in_order_and_once(snapshot: Snapshot) -> None:
    with CpuDevice() as device, pool_of(snapshot, device, slots=7, readers=2) as pool:
        with pytest.raises(StateError, match="was due"):
            pool.hand_over(1)
        pool.hand_over(0).discard()
        with pytest.raises(StateError, match="was due"):
            pool.hand_over(0)


class BadTicket(CpuDevice):
    """Fails late enough for the other readers to be waiting for their turn by then."""

    def wait(self, event: Event) -> None:
        time.sleep(0.05)
        raise DriverError("cuEventSynchronize", 700, "injected")


def submit(device: CpuDevice, ring: StagingRing, slot: FillingSlot) -> Bytes:
    """Put a slot back with a ticket that cannot be waited for."""
    lane = slot.spend(ring)
    lane.ticket = device.record(lane.stream)
    ring.put_back(lane)
    return lane.memory.payload


@pytest.mark.parametrize("readers", [1, 2, 4])
def test_a_ticket_that_cannot_be_waited_for_is_raised_at_its_object(snapshot: Snapshot, readers: int) -> None:
    device = BadTicket()
    ring = StagingRing(device, slots=1, payload_bytes=1024, max_spans=8)
    submit(device, ring, ring.acquire())
    with Folder.at(snapshot.chunks) as chunks, ReaderPool(chunks, slabs(snapshot), ring, readers, Recorder()) as pool:
        pool.await_begun(0)
        with pytest.raises(DriverError, match="cuEventSynchronize"):
            pool.await_authenticated(0)
        time.sleep(0.05)  # the others look again whether it is their turn, before the pool is closed


class LateTicket(BadTicket):
    """One of the last slabs cannot be waited for: five are waited for by the readers of later objects, two at the end."""

    fails_at = waits = 0

    def wait(self, event: Event) -> None:
        self.waits += 1
        if self.waits == self.fails_at:
            super().wait(event)


@pytest.mark.parametrize("fails_at", [6, 7])
def test_a_last_ticket_that_cannot_be_waited_for_is_raised_when_settling(snapshot: Snapshot, fails_at: int) -> None:
    device = LateTicket()
    device.fails_at = fails_at
    ring = StagingRing(device, slots=2, payload_bytes=1024, max_spans=8)
    with Folder.at(snapshot.chunks) as chunks, ReaderPool(chunks, slabs(snapshot), ring, 2, Recorder()) as pool:
        for one in snapshot.loaded.manifest.objects:
            submit(device, ring, pool.hand_over(one.index))
        with pytest.raises(DriverError, match="cuEventSynchronize"):
            pool.settle()
        time.sleep(0.05)  # the other reader looks again whether it is its turn, before the pool is closed


def test_a_ring_that_is_closed_meanwhile_ends_the_readers(snapshot: Snapshot) -> None:
    with CpuDevice() as device:
        ring = StagingRing(device, slots=1, payload_bytes=1024, max_spans=8)
        held = ring.acquire()
        with Folder.at(snapshot.chunks) as chunks, ReaderPool(chunks, slabs(snapshot), ring, 2, Recorder()) as pool:
            ring.close()
            with pytest.raises(RingClosedError):
                pool.await_authenticated(0)
        held.discard()


@pytest.mark.parametrize(
    ("bounds", "slab", "objects", "slots"),
    [
        (Bounds(), 64 * MIB, 13, 4),
        (Bounds(), 64 * MIB, 1, 1),
        (Bounds(), 1_588_025, 512, 8),
        (Bounds(1, 64 * MIB), 64 * MIB, 13, 1),
        (Bounds(4, 200 * MIB), 64 * MIB, 13, 3),
    ],
)
def test_slots_fill_the_bound_and_never_exceed_it(bounds: Bounds, slab: int, objects: int, slots: int) -> None:
    assert bounds.slots(slab, objects) == slots
    assert slots * slab <= bounds.retained_bytes


@pytest.mark.parametrize("wrong", [(0, 1), (1, 0), (-1, 1)])
def test_bounds_allow_at_least_one_of_each(wrong: tuple[int, int]) -> None:
    with pytest.raises(UsageError):
        Bounds(*wrong)


def test_a_reader_that_cannot_be_started_leaves_nothing_running(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    start, threads = threading.Thread.start, threading.active_count()

    def fail_at_the_second(thread: threading.Thread) -> None:
        if threading.active_count() > threads:
            raise RuntimeError("can't start new thread")
        start(thread)

    with CpuDevice() as device, StagingRing(device, slots=2, payload_bytes=1024, max_spans=8) as ring, Folder.at(snapshot.chunks) as chunks:
        monkeypatch.setattr(threading.Thread, "start", fail_at_the_second)
        pool = ReaderPool(chunks, slabs(snapshot), ring, 2, Recorder())
        with pytest.raises(RuntimeError, match="new thread"), pool:
            pass
        monkeypatch.undo()
        assert threading.active_count() == threads
        for slot in [ring.acquire(), ring.acquire()]:
            slot.discard()
