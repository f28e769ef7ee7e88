"""A restore on one rank: right on every device, recompute on every fault, and always one end."""

import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from geometries import geometries
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from snapshots import Bench, Snapshot, bench, publish, small_snapshot

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.errors import UsageError
from countermark.cuda_restore.arena import POISON, BlockTable
from countermark.cuda_restore.cpu_device import CpuDevice, Deferral
from countermark.cuda_restore.device import (
    STATUS_BYTES,
    Buffer,
    Bytes,
    Device,
    DriverError,
    Event,
    ScatterStatus,
    StagingMemory,
    Stream,
)
from countermark.cuda_restore.engine import restore
from countermark.cuda_restore.events import Aborted, Completed, Failed, HeaderParsed, Ordered
from countermark.cuda_restore.geometry import Geometry
from countermark.cuda_restore.occupancy import high_water
from countermark.cuda_restore.page_digest import page_digests, page_table
from countermark.cuda_restore.pool import open_ring
from countermark.cuda_restore.request import Authenticate
from countermark.cuda_restore.result import RestoreOutcome, RestoreResult, not_begun, requested
from countermark.cuda_restore.slabs import Bounds
from countermark.cuda_restore.spans import SpanTable
from countermark.cuda_restore.staging import FillingSlot, StagingRing, StateError
from countermark.cuda_restore.timing import Phase, check_timing
from countermark.cuda_restore.trace import Recorder
from countermark.cuda_restore.trace_rules import check_trace

ORDERS = [(Deferral.LAZY, 0), (Deferral.EAGER, 0), *((Deferral.RANDOM, seed) for seed in range(6))]
BOTH = pytest.mark.parametrize("authenticate", list(Authenticate))


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    return small_snapshot(tmp_path / "store")


@pytest.fixture
def device() -> Iterator[CpuDevice]:
    with CpuDevice(Deferral.LAZY) as lazy:
        yield lazy


def expected(ready: Bench, snapshot: Snapshot) -> Bytes:
    return snapshot.expected(ready.request.arena, ready.request.blocks)


def assert_recompute(result: RestoreResult, code: Code, phase: Phase, index: int | None) -> None:
    """The one other end, with the reason, where it happened, and a trace that keeps every invariant."""
    assert result.outcome is RestoreOutcome.RECOMPUTE
    assert result.error is not None
    assert result.error.code is code
    assert result.failure == Failed(phase, index, str(code))
    assert not result.verified
    assert result.structural is Outcome.FAIL
    assert check_trace(result.trace) == []


def assert_untouched_from(ready: Bench, snapshot: Snapshot, first: int) -> None:
    """Nothing of object `first` or a later one was placed, and nothing else but what the earlier ones hold."""
    memory, whole = ready.memory(), expected(ready, snapshot)
    touched = memory != POISON
    assert np.array_equal(memory[touched], whole[touched])
    header = snapshot.loaded.manifest.encoded_bytes - snapshot.geometry.payload_bytes
    assert int(touched.sum()) <= max(snapshot.loaded.manifest.objects[first].start - header, 0)


@BOTH
@pytest.mark.parametrize(("deferral", "seed"), ORDERS)
def test_every_page_arrives_on_every_device(snapshot: Snapshot, authenticate: Authenticate, deferral: Deferral, seed: int) -> None:
    with CpuDevice(deferral, seed=seed) as device, bench(snapshot, device, authenticate=authenticate) as ready:
        result = ready.restore()
        assert result.error is None
        assert result.verified
        assert np.array_equal(ready.memory(), expected(ready, snapshot))
        assert check_trace(result.trace) == []
        assert result.placed_bytes == snapshot.geometry.payload_bytes


def test_the_counters_count_the_header_too(snapshot: Snapshot, device: CpuDevice) -> None:
    with bench(snapshot, device) as ready:
        counters = ready.restore().counters
    manifest = snapshot.loaded.manifest
    assert counters.to_json() == {"source_bytes": manifest.encoded_bytes, "slabs": 7, "launches": 7, "device_error": 0}


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    geometries(),
    st.integers(300, 2000),
    st.builds(Bounds, st.integers(1, 5), st.integers(2000, 20_000)),
    st.sampled_from(Authenticate),
    st.sampled_from(ORDERS),
    st.sampled_from([1, 16, 24]),
)
def test_any_geometry_is_restored_within_any_bounds(
    tmp_path_factory: pytest.TempPathFactory,
    geometry: Geometry,
    object_bytes: int,
    bounds: Bounds,
    authenticate: Authenticate,
    order: tuple[Deferral, int],
    alignment: int,
) -> None:
    snapshot = publish(tmp_path_factory.mktemp("any") / "store", geometry, object_bytes=object_bytes)
    with (
        CpuDevice(order[0], seed=order[1]) as device,
        bench(snapshot, device, bounds=bounds, authenticate=authenticate, page_alignment_bytes=alignment) as ready,
    ):
        result = ready.restore()
        assert result.error is None
        assert np.array_equal(ready.memory(), expected(ready, snapshot))
    assert check_trace(result.trace) == []
    marks = high_water(result.trace)
    assert marks.readers <= bounds.readers
    assert marks.retained_bytes <= bounds.retained_bytes


def test_one_ring_serves_many_restores(snapshot: Snapshot, device: CpuDevice) -> None:
    with bench(snapshot, device, bounds=Bounds(2, 2048)) as ready:
        for _ in range(3):
            ready.poison()
            assert ready.restore().verified
            assert np.array_equal(ready.memory(), expected(ready, snapshot))


def test_the_timing_adds_up_and_the_json_has_it(snapshot: Snapshot, device: CpuDevice) -> None:
    with bench(snapshot, device) as ready:
        result = ready.restore()
    assert [one.checker for one in check_timing(result.timing.to_json()) if one.checker == "timing.arithmetic"] == []
    rank = result.to_json()
    assert rank["timing"] == result.timing.to_json()
    assert rank["structural"] == "pass"
    assert rank["stream_digest"] == "implied"
    assert rank["manifest"] == str(snapshot.loaded.digest)


def test_read_back_digests_are_those_of_the_pages(snapshot: Snapshot, device: CpuDevice) -> None:
    with bench(snapshot, device) as ready:
        pages = page_table(*ready.request.arena.pages(ready.request.blocks))
        with_pages = Bench(ready.device, ready.stream, ready.ring, ready.destination, replace(ready.request, read_back=pages))
        first, second = with_pages.restore(), with_pages.restore()
        assert first.read_back is not None
        assert second.read_back is not None
        assert np.array_equal(first.read_back.digests, page_digests(expected(ready, snapshot), pages, first.read_back.key))
        assert first.read_back.key != second.read_back.key


# ---- any byte changed


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def truncate(path: Path, at: int) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def extend(path: Path, at: int) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def remove(path: Path, at: int) -> None:
    path.unlink()


def link(path: Path, at: int) -> None:
    copy = path.with_suffix(".elsewhere")
    path.rename(copy)
    path.symlink_to(copy)


def folder(path: Path, at: int) -> None:
    path.unlink()
    path.mkdir()


DAMAGES = [(flip, Code.BAD_DIGEST), *((other, Code.UNREADABLE) for other in (truncate, extend, remove, link, folder))]


@BOTH
@pytest.mark.parametrize("index", [0, 1, 3, 6])
@pytest.mark.parametrize(("damage", "code"), DAMAGES)
def test_a_damaged_object_is_never_placed(
    snapshot: Snapshot, device: CpuDevice, authenticate: Authenticate, index: int, damage: Callable[[Path, int], None], code: Code
) -> None:
    damage(snapshot.object_path(index), -1)
    bounds = Bounds(3, 6 * 1024)
    with bench(snapshot, device, bounds=bounds, authenticate=authenticate) as ready:
        result = ready.restore()
        assert_recompute(result, code, Phase.READER_WAIT, index)
        assert_untouched_from(ready, snapshot, index - index % 3 if authenticate is Authenticate.BATCH else index)
        assert result.placed_bytes == 0


def test_every_byte_of_every_object_counts(snapshot: Snapshot, device: CpuDevice) -> None:
    """Each byte class of the stream: magic, length, header, pages of each layer, either end of each object."""
    with bench(snapshot, device) as ready:
        for one in snapshot.loaded.manifest.objects:
            path = snapshot.object_path(one.index)
            sound = path.read_bytes()
            for at in {0, 5, 6, 9, 10, 80, 154, 155, one.size_bytes // 2, one.size_bytes - 1} & set(range(one.size_bytes)):
                flip(path, at)
                ready.poison()
                assert_recompute(ready.restore(), Code.BAD_DIGEST, Phase.READER_WAIT, one.index)
                assert_untouched_from(ready, snapshot, one.index)
                path.write_bytes(sound)
        assert ready.restore().verified


def test_every_byte_of_the_manifest_counts(snapshot: Snapshot, device: CpuDevice) -> None:
    path = snapshot.loaded.path
    sound = path.read_bytes()
    with bench(snapshot, device) as ready:
        for at in range(0, len(sound), 7):
            flip(path, at)
            result = ready.restore()
            assert result.outcome is RestoreOutcome.RECOMPUTE
            assert result.failure is not None
            assert result.failure.phase is Phase.LOOKUP
            assert check_trace(result.trace) == []
            path.write_bytes(sound)
        assert (ready.memory() == POISON).all()


def test_a_manifest_replaced_by_another_sound_one_is_not_the_one_looked_up(snapshot: Snapshot, device: CpuDevice, tmp_path: Path) -> None:
    other = small_snapshot(tmp_path / "other", seed="other")
    with bench(snapshot, device) as ready:
        snapshot.loaded.path.write_bytes(other.loaded.path.read_bytes())
        assert_recompute(ready.restore(), Code.BAD_DIGEST, Phase.LOOKUP, None)


def test_a_value_that_is_not_what_its_file_says_is_refused(snapshot: Snapshot, device: CpuDevice) -> None:
    manifest = replace(snapshot.loaded.manifest, context_digest="0" * 64)
    with bench(snapshot, device) as ready:
        request = replace(ready.request, loaded=replace(snapshot.loaded, manifest=manifest))
        result = Bench(ready.device, ready.stream, ready.ring, ready.destination, request).restore()
    assert_recompute(result, Code.BAD_DIGEST, Phase.LOOKUP, None)


def test_an_authentic_header_for_another_layout_is_refused_after_authentication(snapshot: Snapshot, device: CpuDevice) -> None:
    """Every hash right, another cache: the header must be parsed, and nothing placed."""
    with bench(snapshot, device) as ready:
        groups = ready.request.arena.layout.groups
        arena = replace(
            ready.request.arena, layout=replace(ready.request.arena.layout, groups=(replace(groups[0], block_size=128), *groups[1:]))
        )
        request = replace(ready.request, arena=arena)
        result = Bench(ready.device, ready.stream, ready.ring, ready.destination, request).restore()
        assert_recompute(result, Code.SCHEMA_INVALID, Phase.PLAN, 0)
        assert not any(isinstance(event, HeaderParsed) for event in result.trace.events)
        assert (ready.memory() == POISON).all()


def test_blocks_for_another_context_are_refused(snapshot: Snapshot, device: CpuDevice) -> None:
    with bench(snapshot, device) as ready:
        request = replace(ready.request, blocks=BlockTable.shuffled((7, 2, 1), ready.request.arena.capacities, 1))
        result = Bench(ready.device, ready.stream, ready.ring, ready.destination, request).restore()
        assert_recompute(result, Code.SCHEMA_INVALID, Phase.PLAN, 0)


def test_a_destination_too_small_for_the_arena_is_refused(snapshot: Snapshot, device: CpuDevice) -> None:
    with bench(snapshot, device) as ready:
        small = device.allocate(ready.destination.size - 1)
        result = Bench(ready.device, ready.stream, ready.ring, small, replace(ready.request, destination=small)).restore()
        assert_recompute(result, Code.TOO_LARGE, Phase.PLAN, 0)


def test_a_missing_folder_of_objects_is_recompute(snapshot: Snapshot, device: CpuDevice, tmp_path: Path) -> None:
    with bench(snapshot, device) as ready:
        request = replace(ready.request, chunks=tmp_path / "nowhere")
        result = Bench(ready.device, ready.stream, ready.ring, ready.destination, request).restore()
    assert_recompute(result, Code.UNREADABLE, Phase.LOOKUP, None)


def test_of_two_damaged_objects_the_first_is_reported(snapshot: Snapshot, device: CpuDevice) -> None:
    for index in (5, 2):
        flip(snapshot.object_path(index), 0)
    with bench(snapshot, device) as ready:
        for _ in range(10):
            assert_recompute(ready.restore(), Code.BAD_DIGEST, Phase.READER_WAIT, 2)


# ---- waits that cannot be forgotten


class RacyRing(StagingRing):
    """What the real ring's type does not allow: a slot is handed out while its slab is still to be copied."""

    def acquire(self) -> FillingSlot:
        with self._changed:
            self._changed.wait_for(lambda: self._free)
            lane = self._free.popleft()
        lane.ticket, lane.in_flight = None, False
        return FillingSlot(self, lane)


def answers(snapshot: Snapshot, ring_type: type[StagingRing], orders: list[tuple[Deferral, int]]) -> set[bool]:
    """Whether the pages are right after a restore in which every object authenticates and every byte is placed."""
    found = set()
    for deferral, seed in orders:
        with (
            CpuDevice(deferral, seed=seed) as device,
            bench(snapshot, device, bounds=Bounds(1, 2 * 1024), ring_type=ring_type) as ready,
        ):
            result = ready.restore()
            assert result.outcome is RestoreOutcome.VERIFIED
            assert result.placed_bytes == snapshot.geometry.payload_bytes
            found.add(np.array_equal(ready.memory(), expected(ready, snapshot)))
    return found


def test_a_slot_reused_too_early_shows_on_deferred_devices_only(snapshot: Snapshot) -> None:
    assert answers(snapshot, RacyRing, [(Deferral.EAGER, 0)]) == {True}
    assert answers(snapshot, RacyRing, [(Deferral.LAZY, 0)]) == {False}
    assert False in answers(snapshot, RacyRing, [(Deferral.RANDOM, seed) for seed in range(8)])
    assert answers(snapshot, StagingRing, ORDERS) == {True}


def test_there_is_no_restore_without_a_prerequisite(snapshot: Snapshot, device: CpuDevice) -> None:
    with bench(snapshot, device) as ready, pytest.raises(TypeError, match="prerequisite"):
        restore(ready.request, ready.ring)  # type: ignore[call-arg] # the missing argument is what is tested


def test_an_event_that_is_none_is_recompute(snapshot: Snapshot, device: CpuDevice) -> None:
    with bench(snapshot, device) as ready:
        result = restore(ready.request, ready.ring, prerequisite=Event(10**6))
        assert_recompute(result, Code.UNKNOWN_NAME, Phase.PREREQUISITE_WAIT, None)


# ---- a driver that fails


class FailingDevice(CpuDevice):
    """Raises at the n-th call of one method."""

    method = ""
    after = 0

    def _count(self, method: str) -> None:
        if method == self.method:
            self.after -= 1
            if self.after == 0:
                raise DriverError(f"cu{method.title()}", 999, "injected")

    def new_stream(self) -> Stream:
        self._count("new_stream")
        return super().new_stream()

    def record(self, stream: Stream) -> Event:
        self._count("record")
        return super().record(stream)

    def order(self, stream: Stream, after: Event) -> None:
        self._count("order")
        super().order(stream, after)

    def wait(self, event: Event) -> None:
        self._count("wait")
        super().wait(event)

    def synchronize(self, stream: Stream) -> None:
        self._count("synchronize")
        super().synchronize(stream)

    def allocate(self, size: int) -> Buffer:
        self._count("allocate")
        return super().allocate(size)

    def fill(self, buffer: Buffer, value: int, stream: Stream) -> None:
        self._count("fill")
        super().fill(buffer, value, stream)

    def scatter(self, staging: StagingMemory, spans: SpanTable, destination: Buffer, status: Buffer, stream: Stream) -> None:
        self._count("scatter")
        super().scatter(staging, spans, destination, status, stream)

    def read(self, buffer: Buffer, start: int, size: int, stream: Stream) -> Bytes:
        self._count("read")
        return super().read(buffer, start, size, stream)


FAILURES = [
    *(("new_stream", 1), ("record", 1), ("record", 2), ("record", 5), ("order", 1), ("order", 2), ("allocate", 1), ("fill", 1)),
    *(
        ("wait", 1),
        ("wait", 3),
        ("wait", 5),
        ("wait", 7),
        ("synchronize", 1),
        ("synchronize", 2),
        ("scatter", 1),
        ("scatter", 4),
        ("read", 1),
    ),
]


@pytest.mark.parametrize(("method", "after"), FAILURES)
def test_a_driver_call_that_fails_is_recompute_and_releases_everything(snapshot: Snapshot, method: str, after: int) -> None:
    with FailingDevice() as device, bench(snapshot, device, bounds=Bounds(2, 3 * 1024)) as ready:
        device.synchronize(ready.stream)
        prerequisite = device.record(ready.stream)
        owned = len(device._releases)
        device.method, device.after = method, after
        result = restore(ready.request, ready.ring, prerequisite=prerequisite)
        assert result.outcome is RestoreOutcome.RECOMPUTE
        assert isinstance(result.error, DriverError)
        assert result.error.call == f"cu{method.title()}"
        assert check_trace(result.trace) == []
        if any(isinstance(event, Ordered) for event in result.trace.events):  # what a placement had before it was open, the device keeps
            assert len(device._releases) == owned + sum(lane.ticket is not None for lane in ready.ring.lanes)
        ready.poison()
        assert ready.restore().verified
        assert np.array_equal(ready.memory(), expected(ready, snapshot))


class RejectingDevice(CpuDevice):
    """A kernel that refused a row."""

    word = 2 << 32 | 7

    def read(self, buffer: Buffer, start: int, size: int, stream: Stream) -> Bytes:
        data = super().read(buffer, start, size, stream)
        data.view("<u8")[3] = self.word
        return data


def test_a_device_error_word_is_recompute(snapshot: Snapshot) -> None:
    with RejectingDevice() as device, bench(snapshot, device) as ready:
        result = ready.restore()
        assert_recompute(result, Code.DRIVER_ERROR, Phase.DEVICE_WAIT, None)
        assert result.counters.device_error == RejectingDevice.word
        assert "outside-destination" in str(result.error)


class LosingDevice(CpuDevice):
    """A kernel that says it placed a byte less."""

    def read(self, buffer: Buffer, start: int, size: int, stream: Stream) -> Bytes:
        data = super().read(buffer, start, size, stream)
        data.view("<u8")[0] -= np.uint64(1)
        return data


def test_counters_that_do_not_add_up_are_recompute(snapshot: Snapshot) -> None:
    with LosingDevice() as device, bench(snapshot, device) as ready:
        assert_recompute(ready.restore(), Code.RECOMPUTE, Phase.DEVICE_WAIT, None)


# ---- interference and interruption


class BitFlip:
    fault = "bit-flip-after-authentication"

    def disturb(self, index: int, payload: Bytes, spans: SpanTable) -> SpanTable:
        if index == 2:
            payload[100] ^= 1
        return spans


class Skip:
    fault = "skipped-slab"

    def disturb(self, index: int, payload: Bytes, spans: SpanTable) -> SpanTable:
        return SpanTable.of([], [], []) if index == 2 else spans


class Interrupt:
    fault = "interrupt"

    def disturb(self, index: int, payload: Bytes, spans: SpanTable) -> SpanTable:
        if index == 2:
            signal.raise_signal(signal.SIGINT)
        return spans


def test_interference_names_itself_and_is_never_verified(snapshot: Snapshot, device: CpuDevice) -> None:
    with bench(snapshot, device) as ready:
        result = ready.restore(interference=BitFlip())
        assert result.outcome is RestoreOutcome.VERIFIED
        assert result.fault == BitFlip.fault
        assert not result.verified
        assert [finding.checker for finding in check_trace(result.trace)] == ["restore.undisturbed"]
        assert int((ready.memory() != expected(ready, snapshot)).sum()) == 1


def test_a_slab_left_out_is_seen_by_the_counters(snapshot: Snapshot, device: CpuDevice) -> None:
    with bench(snapshot, device) as ready:
        result = ready.restore(interference=Skip())
        assert result.outcome is RestoreOutcome.RECOMPUTE
        assert result.error is not None
        assert result.error.code is Code.RECOMPUTE


@BOTH
def test_an_interruption_ends_the_request_and_frees_what_it_held(snapshot: Snapshot, device: CpuDevice, authenticate: Authenticate) -> None:
    with bench(snapshot, device, bounds=Bounds(2, 3 * 1024), authenticate=authenticate) as ready:
        recorder, threads = Recorder(), threading.active_count()
        with pytest.raises(KeyboardInterrupt):
            ready.restore(interference=Interrupt(), recorder=recorder)
        events = recorder.trace.events
        assert [finding.checker for finding in check_trace(recorder.trace)] == ["restore.undisturbed"]
        assert Failed(Phase.COPY_SUBMIT, 2, "KeyboardInterrupt") in events
        assert any(isinstance(event, Aborted) for event in events)
        assert threading.active_count() == threads
        ready.poison()
        assert ready.restore().verified
        assert np.array_equal(ready.memory(), expected(ready, snapshot))


class InterruptedDevice(CpuDevice):
    """Ctrl-C while the host waits for the end."""

    armed = False

    def synchronize(self, stream: Stream) -> None:
        if self.armed:
            self.armed = False
            raise KeyboardInterrupt
        super().synchronize(stream)


def test_an_interruption_while_waiting_still_waits_for_submitted_work(snapshot: Snapshot) -> None:
    with InterruptedDevice() as device, bench(snapshot, device) as ready:
        recorder = Recorder()
        prerequisite = device.record(ready.stream)
        device.armed = True
        with pytest.raises(KeyboardInterrupt):
            restore(ready.request, ready.ring, prerequisite=prerequisite, recorder=recorder)
        assert check_trace(recorder.trace) == []
        assert isinstance(recorder.trace.events[-3], Aborted)
        assert not any(queue.pending for queue in device._queues.values())


# ---- edges


def test_a_ring_that_does_not_fit_is_a_defect_of_the_program(snapshot: Snapshot, device: CpuDevice) -> None:
    with bench(snapshot, device) as ready:
        request = replace(ready.request, bounds=Bounds(1, 1024))
        with pytest.raises(StateError, match="do not fit"):
            restore(request, ready.ring, prerequisite=device.record(ready.stream))


def test_an_object_of_nothing_but_header_is_discarded(tmp_path: Path, device: CpuDevice) -> None:
    snapshot = small_snapshot(tmp_path / "store", object_bytes=155)
    with bench(snapshot, device) as ready:
        result = ready.restore()
        assert result.verified
        assert result.counters.launches == result.objects - 1
        assert check_trace(result.trace) == []
        assert np.array_equal(ready.memory(), expected(ready, snapshot))


def test_a_header_larger_than_the_first_object_is_recompute(tmp_path: Path, device: CpuDevice) -> None:
    snapshot = small_snapshot(tmp_path / "store", object_bytes=154)
    with bench(snapshot, device) as ready:
        assert_recompute(ready.restore(), Code.TOO_LARGE, Phase.PLAN, 0)


def test_a_request_that_cannot_begin_has_a_whole_trace(snapshot: Snapshot) -> None:
    result = not_begun(requested(snapshot.loaded, Bounds(), 1), DriverError("cuMemHostAlloc", 2, "out of memory"))
    assert_recompute(result, Code.DRIVER_ERROR, Phase.LOOKUP, None)
    assert result.to_json()["stream_digest"] == "waived"


def test_the_finding_says_where_and_what_to_do(snapshot: Snapshot, device: CpuDevice) -> None:
    flip(snapshot.object_path(3), 0)
    with bench(snapshot, device) as ready:
        finding = ready.restore().finding()
    assert finding is not None
    assert finding.code is Code.RECOMPUTE
    assert finding.subject == "rank 0 object 3"
    assert finding.location is not None
    assert finding.location.file.endswith(".spcc")
    assert finding.fix


def test_a_status_of_zero_rows_is_no_placement() -> None:
    assert ScatterStatus.of(np.zeros(32, np.uint8)).error == 0


def test_bounds_refuse_what_cannot_hold_an_object(snapshot: Snapshot, device: CpuDevice) -> None:
    with bench(snapshot, device) as ready, pytest.raises(UsageError, match="held whole"):
        open_ring(device, snapshot.loaded.manifest, ready.request.arena, ready.request.blocks, Bounds(1, 1023))


def test_the_completed_event_has_the_counters(snapshot: Snapshot, device: CpuDevice) -> None:
    with bench(snapshot, device) as ready:
        result = ready.restore()
    completed = next(event for event in result.trace.events if isinstance(event, Completed))
    assert completed.placed_bytes == snapshot.geometry.payload_bytes


def test_the_device_is_the_rings(snapshot: Snapshot, device: Device) -> None:
    with bench(snapshot, device) as ready:
        assert ready.ring.device is device


def test_an_abort_that_cannot_wait_is_said_and_found(snapshot: Snapshot) -> None:
    flip(snapshot.object_path(4), 0)
    with FailingDevice() as device, bench(snapshot, device, bounds=Bounds(1, 2 * 1024)) as ready:
        prerequisite = device.record(ready.stream)
        device.method, device.after = "synchronize", 1
        result = restore(ready.request, ready.ring, prerequisite=prerequisite)
        assert result.error is not None
        assert result.error.code is Code.BAD_DIGEST
        assert "while aborting: cuSynchronize" in result.error.__notes__[0]
        assert [finding.checker for finding in check_trace(result.trace)] == ["restore.abort-safe"]


class StubbornDevice(CpuDevice):
    """A device that takes no status buffer back."""

    armed = False

    def release(self, resource: object) -> None:
        if self.armed and isinstance(resource, Buffer) and resource.size == STATUS_BYTES:
            self.armed = False
            raise DriverError("cuMemFree", 719, "injected")
        super().release(resource)


def test_a_release_that_fails_behind_the_last_slab_is_recompute(snapshot: Snapshot) -> None:
    with StubbornDevice() as device, bench(snapshot, device) as ready:
        prerequisite = device.record(ready.stream)
        device.armed = True
        result = restore(ready.request, ready.ring, prerequisite=prerequisite)
        assert_recompute(result, Code.DRIVER_ERROR, Phase.DEVICE_WAIT, None)
        assert isinstance(result.trace.events[-3], Aborted)
