"""The deferred device: legal orders only, as late as they may be, and numpy placement equal to a loop over bytes."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countermark.attestations.errors import InputError
from countermark.cuda_restore.cpu_device import CpuDevice, Deferral
from countermark.cuda_restore.device import STATUS_BYTES, Buffer, Device, DeviceKind, Event, ScatterStatus, Stream
from countermark.cuda_restore.page_digest import DigestKey, page_digests, page_table
from countermark.cuda_restore.spans import SpanTable

SEEDS = range(40)


def devices() -> list[CpuDevice]:
    return [CpuDevice(Deferral.LAZY), CpuDevice(Deferral.EAGER), *(CpuDevice(Deferral.RANDOM, seed=seed) for seed in SEEDS)]


def first_byte(device: Device, buffer: Buffer, stream: Stream) -> int:
    return int(device.read(buffer, 0, 1, stream)[0])


def test_the_info_names_the_order_so_that_a_receipt_can_repeat_it() -> None:
    names = [CpuDevice(Deferral.LAZY).info.name, CpuDevice(Deferral.EAGER).info.name, CpuDevice(Deferral.RANDOM, seed=7).info.name]
    assert names == ["deferred-lazy", "deferred-eager", "deferred-random-7"]
    assert CpuDevice().info.kind is DeviceKind.CPU


def test_one_stream_runs_in_order_on_every_device() -> None:
    for device in devices():
        with device:
            stream, buffer = device.new_stream(), device.allocate(4)
            for value in (1, 2, 3):
                device.fill(buffer, value, stream)
            assert first_byte(device, buffer, stream) == 3


def test_an_ordered_stream_runs_after_the_event_on_every_device() -> None:
    for device in devices():
        with device:
            early, late, buffer = device.new_stream(), device.new_stream(), device.allocate(4)
            device.fill(buffer, 1, early)
            device.order(late, after=device.record(early))
            device.fill(buffer, 2, late)
            device.synchronize(late)
            device.synchronize(early)
            assert first_byte(device, buffer, late) == 2


def unordered(device: CpuDevice) -> int:
    """Two streams write one byte and nobody orders them."""
    with device:
        early, late, buffer = device.new_stream(), device.new_stream(), device.allocate(4)
        device.fill(buffer, 1, early)
        device.fill(buffer, 2, late)
        device.synchronize(late)
        device.synchronize(early)
        return first_byte(device, buffer, late)


def test_a_missing_order_shows_on_the_lazy_and_the_random_device_only() -> None:
    assert unordered(CpuDevice(Deferral.EAGER)) == 2
    assert unordered(CpuDevice(Deferral.LAZY)) == 1
    assert {unordered(CpuDevice(Deferral.RANDOM, seed=seed)) for seed in SEEDS} == {1, 2}


def test_a_seed_repeats_its_interleaving() -> None:
    again = [[unordered(CpuDevice(Deferral.RANDOM, seed=seed)) for seed in SEEDS] for _ in range(2)]
    assert again[0] == again[1]


def test_the_lazy_device_runs_no_more_than_a_wait_demands() -> None:
    with CpuDevice(Deferral.LAZY) as device:
        stream, other, buffer = device.new_stream(), device.new_stream(), device.allocate(4)
        device.fill(buffer, 1, stream)
        event = device.record(stream)
        device.fill(buffer, 2, stream)
        device.fill(buffer, 3, other)
        device.wait(event)
        probe = device.new_stream()
        assert first_byte(device, buffer, probe) == 1


def test_staging_memory_is_read_when_the_device_gets_to_it() -> None:
    with CpuDevice(Deferral.LAZY) as device:
        staging, arena, status, stream = device.stage(16, 1), device.allocate(16), device.allocate(STATUS_BYTES), device.new_stream()
        staging.payload.fill(1)
        device.scatter(staging, SpanTable.of([0], [0], [16]), arena, status, stream)
        staging.payload.fill(2)
        assert first_byte(device, arena, stream) == 2


@st.composite
def placements(draw: st.DrawFn) -> SpanTable:
    """Page-like spans: a few sizes, pages in any order, ragged ends, adjacent or not."""
    page = draw(st.sampled_from([1, 4, 16, 24, 256]))
    pages = draw(st.integers(1, 24))
    slots = np.array(draw(st.permutations(range(2 * pages)))[:pages])
    base, lead = draw(st.integers(0, 40)), draw(st.integers(0, 9))
    source, sizes = lead + np.arange(pages) * page, np.full(pages, page)
    destination = base + slots * page
    if page > 1 and draw(st.booleans()):  # an object ends inside its last page
        sizes[-1] = draw(st.integers(1, page - 1))
    order = np.array(draw(st.permutations(range(pages)))) if draw(st.booleans()) else np.arange(pages)
    return SpanTable.of(source[order], destination[order], sizes[order], alignment=1)


@given(placements())
def test_placement_equals_a_loop_over_spans(table: SpanTable) -> None:
    with CpuDevice(Deferral.EAGER) as device:
        staging, stream = device.stage(table.source_end, len(table)), device.new_stream()
        size = int((table.destination + table.sizes).max())
        arena, status = device.allocate(size), device.allocate(STATUS_BYTES)
        staging.payload[:] = np.random.default_rng(1).integers(0, 256, table.source_end, dtype=np.uint8)
        device.fill(arena, 0xA5, stream)
        device.fill(status, 0, stream)
        device.scatter(staging, table, arena, status, stream)

        expected = np.full(size, 0xA5, np.uint8)
        for source, destination, count in zip(table.source.tolist(), table.destination.tolist(), table.sizes.tolist(), strict=True):
            expected[destination : destination + count] = staging.payload[source : source + count]
        assert np.array_equal(device.read(arena, 0, size, stream), expected)
        placed = ScatterStatus.of(device.read(status, 0, STATUS_BYTES, stream))
        assert placed == ScatterStatus(table.total_bytes, len(table), 0, 0)


def test_read_back_equals_the_reference_after_queued_work() -> None:
    with CpuDevice(Deferral.LAZY) as device:
        stream, arena = device.new_stream(), device.allocate(64)
        data = np.arange(64, dtype=np.uint8)
        device.fill(arena, 0, stream)
        device.write(arena, 0, data, stream)
        pages, key = page_table(np.array([0, 32]), np.array([32, 32])), DigestKey(1, 2)
        assert np.array_equal(device.page_digests(arena, pages, key, stream), page_digests(data, pages, key))


def test_waiting_from_many_threads_runs_each_operation_once() -> None:
    with CpuDevice(Deferral.LAZY) as device:
        stream, arena, status = device.new_stream(), device.allocate(1 << 16), device.allocate(STATUS_BYTES)
        device.fill(status, 0, stream)
        device.synchronize(stream)
        events = []
        for lane in [device.new_stream() for _ in range(4)]:
            for _ in range(25):
                device.scatter(device.stage(1 << 14, 1), SpanTable.of([0], [0], [1 << 14]), arena, status, lane)
            events.append(device.record(lane))
        threads = [threading.Thread(target=device.wait, args=(event,)) for event in events * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ScatterStatus.of(device.read(status, 0, STATUS_BYTES, stream)).placed_rows == 100


def test_a_foreign_or_released_handle_is_refused() -> None:
    with CpuDevice() as device:
        stream, buffer = device.new_stream(), device.allocate(4)
        with pytest.raises(InputError, match="no event 99"):
            device.wait(Event(99))
        with pytest.raises(InputError, match="no stream 99"):
            device.record(Stream(99))
        device.release(buffer)
        with pytest.raises(InputError, match="no buffer"):
            device.fill(buffer, 0, stream)
        with pytest.raises(InputError, match="has released it"):
            device.release(buffer)


def test_transfers_and_tables_must_fit() -> None:
    with CpuDevice() as device:
        stream, arena, status, staging = device.new_stream(), device.allocate(32), device.allocate(STATUS_BYTES), device.stage(32, 1)
        for start, size in ((-1, 2), (31, 2), (0, -1)):
            with pytest.raises(InputError, match="leave a buffer of 32"):
                device.read(arena, start, size, stream)
        with pytest.raises(InputError, match="leave a buffer of 32"):
            device.write(arena, 30, np.zeros(3, np.uint8), stream)
        refused = [
            (SpanTable.of([], [], []), status, "0 spans, not 1 to 1"),
            (SpanTable.of([0, 16], [0, 16], [16, 16]), status, "2 spans, not 1 to 1"),
            (SpanTable.of([32], [0], [16]), status, "leaves its source of 32"),
            (SpanTable.of([0], [32], [16]), status, "leaves its destination of 32"),
            (SpanTable.of([0], [0], [16]), arena, f"status buffer has {STATUS_BYTES}"),
        ]
        wrong_status = device.allocate(8)
        for table, where, message in refused:
            with pytest.raises(InputError, match=message):
                device.scatter(staging, table, arena, wrong_status if where is arena else where, stream)
