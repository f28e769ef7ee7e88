"""What one core pays for a byte: reading it from the page cache, hashing it, placing it. From these comes the limit of the machine.

    limit = bytes x (c_read + c_hash + c_place) / min(cores, readers)

With every byte in the page cache no disk is the limit, and copies out of the cache burn the very cores that hash. The three costs are
taken one after another on one thread, by the engine's own functions, over the data set itself, into memory whose pages exist already.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue

import numpy as np

from benchmarks.restore.contender import Detail, Run
from benchmarks.restore.dataset import DataSet
from countermark.attestations.codes import Code
from countermark.attestations.errors import CannotTellError
from countermark.cuda_restore.cpu_device import CpuDevice, Deferral
from countermark.cuda_restore.device import STATUS_BYTES
from countermark.cuda_restore.manifest import ObjectDescriptor
from countermark.cuda_restore.plan import PlacementPlan, plan_placement, spans_max
from countermark.cuda_restore.pool import PIECE_BYTES
from countermark.cuda_restore.reader import read_head
from countermark.cuda_restore.request import RestoreRequest
from countermark.cuda_restore.session import RankSession, RankSource, rank_session
from countermark.cuda_restore.slabs import READERS, Slab, slab_bytes_max, slabs_of
from countermark.cuda_restore.store import Folder
from countermark.cuda_restore.stream import StreamLayout


@contextmanager
def open_costs(data: DataSet) -> Iterator[Run]:
    """The three costs of the whole data set, in nanoseconds of one core: `read`, `hash`, `place`."""
    source = RankSource(rank=0, manifest=data.loaded.path, chunks=data.chunks)
    with CpuDevice(Deferral.EAGER) as device, rank_session(source, device) as session, Folder.at(data.chunks) as chunks:
        if not isinstance(session, RankSession):
            raise CannotTellError(Code.UNSUPPORTED, f"the data set cannot be restored: {session.error}", fix="generate it again")
        request, slabs = session.request, slabs_of(data.loaded.manifest.objects, session.request.bounds)
        plan, largest = plan_of(request, slabs), slab_bytes_max(slabs)
        slot = device.stage(largest, spans_max(largest, request.arena, request.blocks))
        status, stream = device.allocate(STATUS_BYTES), device.new_stream()

        def run() -> Callable[[], Detail]:
            read = hashed = placed = 0
            for slab, spans in zip(slabs, plan.slabs, strict=True):
                for one in slab.objects:
                    into = slot.payload.data[one.start - slab.start : one.end - slab.start]
                    begun = time.perf_counter_ns()
                    read_object(chunks, one, into)
                    had_read = time.perf_counter_ns()
                    hash_object(one, into)
                    hashed += time.perf_counter_ns() - had_read
                    read += had_read - begun
                begun = time.perf_counter_ns()
                device.scatter(slot, spans, request.destination, status, stream)
                placed += time.perf_counter_ns() - begun
            return lambda: {"bytes": data.encoded_bytes, "read": read, "hash": hashed, "place": placed}

        yield run


@contextmanager
def open_disk(data: DataSet) -> Iterator[Run]:
    """Nothing but reading, by as many threads as the engine has readers: what a disk can deliver when the page cache is empty."""
    objects = data.loaded.manifest.objects
    slots = [np.full(max(one.size_bytes for one in objects), 1, np.uint8) for _ in range(READERS)]
    with Folder.at(data.chunks) as chunks:

        def run() -> Callable[[], Detail]:
            waiting: SimpleQueue[ObjectDescriptor] = SimpleQueue()
            for one in objects:
                waiting.put(one)
            threads = [threading.Thread(target=_read_all, args=(chunks, waiting, slot.data)) for slot in slots]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return lambda: {"bytes": data.encoded_bytes}

        yield run


def plan_of(request: RestoreRequest, slabs: Sequence[Slab]) -> PlacementPlan:
    """The proven plan that a restore of `request` makes."""
    manifest = request.loaded.manifest
    with Folder.at(request.chunks) as chunks:
        head = read_head(chunks, manifest)
    stream = StreamLayout.read(head, manifest, request.arena.layout, manifest.objects[0].file_name)
    return plan_placement(stream, slabs, request.arena, request.blocks)


def read_object(chunks: Folder, one: ObjectDescriptor, into: memoryview) -> None:
    """Read an object in the engine's pieces."""
    with chunks.open(one.file_name, one.size_bytes) as file:
        for start in range(0, one.size_bytes, PIECE_BYTES):
            file.read_into(into[start : min(start + PIECE_BYTES, one.size_bytes)], start)


def hash_object(one: ObjectDescriptor, data: memoryview) -> None:
    """Hash an object in the engine's pieces, and authenticate it."""
    digest = hashlib.sha256()
    for start in range(0, one.size_bytes, PIECE_BYTES):
        digest.update(data[start : min(start + PIECE_BYTES, one.size_bytes)])
    one.authenticate(digest.hexdigest())


def _read_all(chunks: Folder, waiting: "SimpleQueue[ObjectDescriptor]", into: memoryview) -> None:
    while True:
        try:
            one = waiting.get_nowait()
        except Empty:
            return
        read_object(chunks, one, into)
