"""Whole restores on the device: right first, then timed, beside the limit measured in the same run."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import median

from benchmarks.restore.costs import hash_object, read_object
from benchmarks.restore.dataset import DataSet
from benchmarks.restore.machine import cores
from benchmarks.restore.ours import detail_of, prove_placement
from countermark.attestations.errors import RefusedError
from countermark.cuda_restore.cpu_device import CpuDevice, Deferral
from countermark.cuda_restore.device import Device
from countermark.cuda_restore.session import RankSession, RankSource, rank_session
from countermark.cuda_restore.slabs import READERS
from countermark.cuda_restore.store import Folder


@dataclass(frozen=True, slots=True)
class Correctness:
    """Every page read back under a key drawn behind the restore, and the whole arena beside the CPU device's."""

    encoded_bytes: int
    objects: int
    pages_as_stored: bool
    arena_bytes: int
    bytes_unlike_cpu: int


@dataclass(frozen=True, slots=True)
class Restores:
    """Medians over the repeats, in milliseconds. The limit is the larger of hashing on the host and copying to the device."""

    objects: int
    ms: float
    gb_per_s: float
    host_limit_ms: float
    copy_limit_ms: float
    limit_ratio: float
    timing_us: dict[str, int]
    unattributed_share: float
    slot_wait_share: float


def check(data: DataSet, device: Device) -> Correctness:
    """Restore over poison on the device and on the CPU; both caches have one shape and one block table."""
    with _session(data, device) as session, CpuDevice(Deferral.LAZY) as host, _session(data, host) as reference:
        stored = _pages_as_stored(session)
        reference.poison()
        timed(reference).restore().demand_verified()
        mine, wanted = session.memory(), reference.memory()
        unlike = int((mine != wanted).sum())
        return Correctness(data.encoded_bytes, len(data.objects), stored, mine.size, unlike)


def measure(data: DataSet, device: Device, pinned_gb_per_s: float, repeats: int) -> Restores:
    """The first restore warms up."""
    with _session(data, device) as session:
        limit = _host_limit_ms(data, session)
        plain = timed(session)
        details = [detail_of(plain.restore()) for _ in range(repeats + 1)][1:]
    middle = sorted(details, key=lambda detail: detail["total"])[len(details) // 2]
    spent = median(detail["total"] for detail in details) / 1e3
    copy = data.encoded_bytes / pinned_gb_per_s / 1e6
    return Restores(
        objects=len(data.objects),
        ms=spent,
        gb_per_s=data.encoded_bytes / spent / 1e6,
        host_limit_ms=limit,
        copy_limit_ms=copy,
        limit_ratio=max(limit, copy) / spent,
        timing_us={name: value for name, value in middle.items() if name not in ("bytes", "readers_max", "retained_bytes_max")},
        unattributed_share=middle["unattributed"] / middle["total"],
        slot_wait_share=middle["slot_wait"] / middle["total"],
    )


def timed(session: RankSession) -> RankSession:
    """The session, its restores without read-back."""
    return replace(session, request=replace(session.request, read_back=None))


@contextmanager
def _session(data: DataSet, device: Device) -> Iterator[RankSession]:
    with rank_session(RankSource(rank=0, manifest=data.loaded.path, chunks=data.chunks), device) as session:
        if isinstance(session, RankSession):
            yield session
        else:
            session.demand_verified()


def _pages_as_stored(session: RankSession) -> bool:
    try:
        prove_placement(session)
    except RefusedError:
        return False
    return True


def _host_limit_ms(data: DataSet, session: RankSession) -> float:
    """Reading and hashing on one core, shared by as many cores as can work; the device places."""
    begun = time.perf_counter_ns()
    slot = memoryview(bytearray(session.ring.capacity_bytes // len(session.ring.lanes)))
    with Folder.at(data.chunks) as chunks:
        for one in data.loaded.manifest.objects:  # once untimed, so that the files and the buffer are warm
            read_object(chunks, one, slot)
        begun = time.perf_counter_ns()
        for one in data.loaded.manifest.objects:
            read_object(chunks, one, slot)
            hash_object(one, slot)
    return (time.perf_counter_ns() - begun) / 1e6 / min(cores(), READERS)
