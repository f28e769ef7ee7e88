"""Small objects share a slab: how they are cut, and a restore through slabs of several objects that still answers for each of them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

import numpy as np
import pytest
from geometries import cut, geometries
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from snapshots import Bench, Snapshot, bench, identity_of, publish, small_layout

from countermark.attestations.codes import Code
from countermark.cuda_restore.arena import POISON
from countermark.cuda_restore.cpu_device import CpuDevice, Deferral
from countermark.cuda_restore.device import StagingMemory
from countermark.cuda_restore.events import Authenticated, Failed, Submitted
from countermark.cuda_restore.geometry import Geometry, default_block_counts
from countermark.cuda_restore.occupancy import high_water
from countermark.cuda_restore.request import Authenticate
from countermark.cuda_restore.result import RestoreOutcome
from countermark.cuda_restore.slabs import RETAINED_BYTES, SLAB_BYTES_MAX, SLABS_MIN, Bounds, Slab, slab_bytes_max, slabs_of
from countermark.cuda_restore.store import Folder, OpenFile
from countermark.cuda_restore.timing import Phase
from countermark.cuda_restore.trace_rules import check_trace

MIB = 1024 * 1024
ORDERS = st.sampled_from([(Deferral.LAZY, 0), (Deferral.EAGER, 0), *((Deferral.RANDOM, seed) for seed in range(6))])


@given(st.integers(1, 10**9), st.integers(1, 700), st.builds(Bounds, st.integers(1, 16), st.integers(1, RETAINED_BYTES)))
def test_every_object_is_in_one_slab_and_small_ones_leave_enough_of_them(encoded_bytes: int, objects: int, bounds: Bounds) -> None:
    found = slabs_of(cut(encoded_bytes, -(-encoded_bytes // objects)), bounds)
    assert [one.index for slab in found for one in slab.objects] == list(range(sum(len(slab.objects) for slab in found)))
    assert [slab.index for slab in found] == list(range(len(found)))
    assert [slab.start for slab in found] == [0, *(slab.end for slab in found[:-1])]
    assert found[-1].end == encoded_bytes
    shared = [slab for slab in found if len(slab.objects) > 1]
    if shared:
        assert len(found) >= SLABS_MIN
        assert slab_bytes_max(found) <= SLAB_BYTES_MAX
        assert bounds.slots(slab_bytes_max(found), len(found)) == min(2 * bounds.readers, len(found))


@pytest.mark.parametrize(
    ("whole", "one", "slabs", "objects"),
    [(813_068_464, 64 * MIB, 13, 1), (813_068_464, 1_588_032, 52, 10), (813_068_464, 17 * MIB, 46, 1), (7 * 1024, 1024, 7, 1)],
)
def test_macro_objects_stay_alone_and_chunks_are_put_together(whole: int, one: int, slabs: int, objects: int) -> None:
    found = slabs_of(cut(whole, one), Bounds())
    assert (len(found), len(found[0].objects)) == (slabs, objects)


# ---- the engine over slabs of several objects


def many_objects(root: Path, seed: str = "") -> Snapshot:
    """4,096 tokens in 326 objects of 160 bytes; the header just fits into the first."""
    layout = small_layout()
    return publish(root, Geometry(identity_of(layout), 4096, layout, default_block_counts(layout, 4096)), object_bytes=160, seed=seed)


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    return many_objects(tmp_path / "store")


@pytest.fixture
def ready(snapshot: Snapshot) -> Iterator[Bench]:
    with CpuDevice(Deferral.LAZY) as device, bench(snapshot, device) as opened:
        yield opened


def slabs_in(ready: Bench) -> tuple[Slab, ...]:
    return slabs_of(ready.request.loaded.manifest.objects, ready.request.bounds)


def test_objects_share_copies_and_launches(ready: Bench, snapshot: Snapshot) -> None:
    slabs = slabs_in(ready)
    assert len(slabs) * 5 < len(snapshot.loaded.manifest.objects)
    result = ready.restore()
    assert result.verified
    assert check_trace(result.trace) == []
    assert np.array_equal(ready.memory(), snapshot.expected(ready.request.arena, ready.request.blocks))
    assert result.counters.slabs == result.counters.launches == len(slabs)
    assert [event.slab for event in result.trace.events if isinstance(event, Submitted)] == list(range(len(slabs)))
    assert sorted(event.object for event in result.trace.events if isinstance(event, Authenticated)) == list(range(result.objects))
    assert high_water(result.trace).readers <= ready.request.bounds.readers


@pytest.mark.parametrize("authenticate", list(Authenticate))
def test_one_bad_object_keeps_its_whole_slab_from_being_placed(snapshot: Snapshot, authenticate: Authenticate) -> None:
    with CpuDevice(Deferral.EAGER) as device, bench(snapshot, device, authenticate=authenticate) as ready:
        slabs = slabs_in(ready)
        bad = slabs[9].objects[3]
        assert bad.index not in (slabs[9].objects[0].index, slabs[9].objects[-1].index)
        flip(snapshot.object_path(bad.index), 7, 1)
        result = ready.restore()
        assert result.failure == Failed(Phase.READER_WAIT, bad.index, str(Code.BAD_DIGEST))
        finding = result.finding()
        assert finding is not None
        assert finding.subject == f"rank 0 object {bad.index}"
        first = 9 if authenticate is Authenticate.OBJECT else 8
        assert [event.slab for event in result.trace.events if isinstance(event, Submitted)] == list(range(first))
        assert_nothing_placed_from(ready, snapshot, slabs[first].start)
        assert check_trace(result.trace) == []


def flip(path: Path, at: int, mask: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= mask
    path.write_bytes(data)


def assert_nothing_placed_from(ready: Bench, snapshot: Snapshot, start: int) -> None:
    """What was touched is right, and is no more than the page bytes of the stream before `start`."""
    memory, whole = ready.memory(), snapshot.expected(ready.request.arena, ready.request.blocks)
    touched = memory != POISON
    assert np.array_equal(memory[touched], whole[touched])
    header = snapshot.loaded.manifest.encoded_bytes - snapshot.geometry.payload_bytes
    assert int(touched.sum()) <= max(start - header, 0)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    geometries(),
    st.integers(170, 900),
    st.builds(Bounds, st.integers(1, 5), st.integers(2_000, 40_000)),
    st.sampled_from(Authenticate),
    ORDERS,
    st.data(),
)
def test_any_changed_byte_of_any_file_is_recompute_and_nothing_of_its_unit_is_placed(
    tmp_path_factory: pytest.TempPathFactory,
    geometry: Geometry,
    object_bytes: int,
    bounds: Bounds,
    authenticate: Authenticate,
    order: tuple[Deferral, int],
    data: st.DataObject,
) -> None:
    """One byte of any object (the header is in the first) or of the manifest, to any other value."""
    snapshot = publish(tmp_path_factory.mktemp("any") / "store", geometry, object_bytes=object_bytes)
    objects = snapshot.loaded.manifest.objects
    with (
        CpuDevice(order[0], seed=order[1]) as device,
        bench(snapshot, device, bounds=bounds, authenticate=authenticate) as ready,
    ):
        index = data.draw(st.one_of(st.none(), st.just(0), st.integers(0, len(objects) - 1)), label="object, or the manifest")
        path = snapshot.loaded.path if index is None else snapshot.object_path(index)
        flip(path, data.draw(st.integers(0, path.stat().st_size - 1), label="byte"), data.draw(st.integers(1, 255), label="mask"))
        result = ready.restore()
        assert result.outcome is RestoreOutcome.RECOMPUTE
        assert result.placed_bytes == 0
        assert check_trace(result.trace) == []
        failed = result.failure
        assert failed is not None
        if index is None:
            assert failed.phase is Phase.LOOKUP
            assert (ready.memory() == POISON).all()
            return
        assert failed == Failed(Phase.READER_WAIT, index, str(Code.BAD_DIGEST))
        slabs = slabs_in(ready)
        batch = min(bounds.readers, len(ready.ring.lanes), len(slabs)) if authenticate is Authenticate.BATCH else 1
        mine = next(slab.index for slab in slabs if index <= slab.objects[-1].index)
        assert_nothing_placed_from(ready, snapshot, slabs[mine - mine % batch].start)
        assert all(event.slab < mine - mine % batch for event in result.trace.events if isinstance(event, Submitted))


class CountingFolder(Folder):
    """Counts the objects that are open at once; a reader holds one from the first byte to the digest."""

    lock, now, most = Lock(), 0, 0

    @contextmanager
    def open(self, name: str, size_bytes: int | None = None) -> Iterator[OpenFile]:  # type: ignore[override] # used in a `with` only
        kind = type(self)
        with kind.lock:
            kind.now += 1
            kind.most = max(kind.most, kind.now)
        try:
            time.sleep(0.001)  # long enough for all other readers to come
            with super().open(name, size_bytes) as file:
                yield file
        finally:
            with kind.lock:
                kind.now -= 1


class CountingDevice(CpuDevice):
    """Counts the bytes of all staging memory that it ever gave out and did not get back."""

    staged = most = 0

    def stage(self, payload_bytes: int, max_spans: int) -> StagingMemory:
        self.staged += payload_bytes
        self.most = max(self.most, self.staged)
        return super().stage(payload_bytes, max_spans)

    def release(self, key: object) -> None:
        if isinstance(key, StagingMemory):
            self.staged -= key.payload.size
        super().release(key)


@pytest.mark.parametrize("authenticate", list(Authenticate))
@pytest.mark.parametrize("bounds", [Bounds(1, 4_000), Bounds(3, 9_000), Bounds(4, 200_000), Bounds(9, 20_000)])
def test_files_and_memory_never_exceed_the_bounds(
    snapshot: Snapshot, bounds: Bounds, authenticate: Authenticate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted where files are opened and memory is allocated, not where the engine writes its trace."""
    monkeypatch.setattr(CountingFolder, "most", 0)
    monkeypatch.setattr("countermark.cuda_restore.engine.Folder", CountingFolder)
    with CountingDevice() as device, bench(snapshot, device, bounds=bounds, authenticate=authenticate) as ready:
        result = ready.restore()
        marks = high_water(result.trace)
    assert result.verified
    assert marks.readers <= CountingFolder.most <= bounds.readers
    assert marks.retained_bytes <= device.most <= bounds.retained_bytes
    assert (CountingFolder.now, device.staged) == (0, 0)
