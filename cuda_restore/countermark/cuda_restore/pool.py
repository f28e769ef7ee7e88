"""Readers: at most so many objects at once are read into staging slots and authenticated there, while they are still in the cache.

A reader fills a slot with the objects of one slab, one after another. Slots are taken in manifest order: a slab may be authenticated
before an earlier one, but it never takes the slot that the earlier one waits for, so the coordinating thread can submit in manifest
order and always goes on.
"""

import hashlib
import os
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from threading import Condition, Event
from types import TracebackType
from typing import Final, Self

from countermark.cuda_restore.arena import Arena, BlockTable
from countermark.cuda_restore.device import Bytes, Device
from countermark.cuda_restore.events import Authenticated, Discarded, ReadBegun
from countermark.cuda_restore.manifest import Manifest, ObjectDescriptor
from countermark.cuda_restore.plan import spans_max
from countermark.cuda_restore.slabs import Bounds, Slab, slab_bytes_max, slabs_of
from countermark.cuda_restore.staging import FillingSlot, StagingRing, StateError
from countermark.cuda_restore.store import Folder
from countermark.cuda_restore.trace import Recorder

PIECE_BYTES: Final = 2 * 1024 * 1024
"""Read, then hashed while it is in the cache. Smaller pieces cost more hand-overs of the interpreter lock than they save."""


def open_ring(
    device: Device, manifest: Manifest, arena: Arena, table: BlockTable, bounds: Bounds, kind: type[StagingRing] = StagingRing
) -> StagingRing:
    """Staging slots that fit the objects of `manifest` and stay within `bounds`. Allocate once, restore as often as wanted.

    Another `kind` of ring is for a qualification that must see the reuse of a busy slot fail.
    """
    slabs = slabs_of(manifest.objects, bounds)
    slab_bytes = slab_bytes_max(slabs)
    slots = bounds.slots(slab_bytes, len(slabs))
    return kind(device, slots=slots, payload_bytes=slab_bytes, max_spans=spans_max(slab_bytes, arena, table))


class _StoppedError(StateError):
    """An earlier slab failed, or the restore ended, while this one was still to be read."""

    def __init__(self) -> None:
        super().__init__("the readers were stopped")


@dataclass(frozen=True, slots=True)
class _ReadSlab:
    """The authenticated objects of a slab in their slot, and the nanoseconds that their reader spent."""

    slot: FillingSlot
    read_ns: int
    hash_ns: int


class ReaderPool(AbstractContextManager["ReaderPool"]):
    """Reads while its context is open. Leaving it stops the readers, waits for them, and returns every slot not handed over."""

    def __init__(self, chunks: Folder, slabs: Sequence[Slab], ring: StagingRing, readers: int, recorder: Recorder) -> None:
        self._chunks, self._slabs, self._ring, self._record = chunks, slabs, ring, recorder.record
        self._numbers = {id(lane.memory.payload): number for number, lane in enumerate(ring.lanes)}
        self._turn = Condition()
        self._next = self._handed = 0
        self._closed = False
        self._end = len(slabs) + len(ring.lanes)  # turns from here on are not taken any more
        self._begun = [Event() for _ in slabs]
        self._reached = [slab.objects[0].index for slab in slabs]
        self.read_ns = self.hash_ns = 0
        self._executor = ThreadPoolExecutor(readers, thread_name_prefix="countermark-reader")
        self._reads: list[Future[_ReadSlab]] = []
        self._settled: list[Future[FillingSlot]] = []

    def __enter__(self) -> Self:
        try:
            for slab in self._slabs:
                self._reads.append(self._executor.submit(self._read, slab))
            for number in range(len(self._numbers)):
                self._settled.append(self._executor.submit(self._take_turn, len(self._slabs) + number))
        except BaseException as error:  # no thread, or an interruption: the readers that run already must not outlive their slots
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def await_begun(self, index: int) -> None:
        """Wait until a reader has a slot for a slab, or cannot get one."""
        self._begun[index].wait()

    def await_authenticated(self, index: int) -> Bytes:
        """The bytes of a slab, read-only in spirit, once all its objects are authenticated; raises what its reader met instead."""
        return self._reads[index].result().slot.payload[: self._slabs[index].size_bytes]

    def reached(self, index: int) -> int:
        """The object of a slab that its reader has got to, or failed at."""
        return self._reached[index]

    def hand_over(self, index: int) -> FillingSlot:
        """The slot of an authenticated slab, for the caller to submit or discard. Slabs are handed over in order, each once."""
        if index != self._handed:
            raise StateError(f"slab {index} was asked for when slab {self._handed} was due")
        found = self._reads[index].result()
        self._handed += 1
        self.read_ns += found.read_ns
        self.hash_ns += found.hash_ns
        return found.slot

    def settle(self) -> None:
        """Wait for the completion of everything submitted. Readers with nothing left to read have begun to, each at another slot."""
        for slot in self._settled:
            slot.result()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._closed = True
        self._executor.shutdown(wait=False, cancel_futures=True)
        for index, read in enumerate(self._reads[self._handed :], self._handed):  # in order, as later ones wait for the slots of earlier
            if not read.cancelled() and read.exception() is None:
                self._discard(index, read.result().slot)
        for settled in self._settled:
            if not settled.cancelled() and settled.exception() is None:
                settled.result().discard()
        self._executor.shutdown()

    def _read(self, slab: Slab) -> _ReadSlab:
        try:
            slot = self._take_turn(slab.index)
            self._begun[slab.index].set()
            return self._fill(slot, slab)
        except BaseException:
            self._end = min(self._end, slab.index + 1)  # earlier ones go on, so that the first failure is the one reported
            raise
        finally:
            self._begun[slab.index].set()

    def _take_turn(self, turn: int) -> FillingSlot:
        """The slot that is free next, for the slab of that number, or behind them all for nothing but to wait for its last slab."""
        with self._turn:
            try:
                self._turn.wait_for(lambda: self._next == turn or not self._is_wanted(turn))
                self._check_wanted(turn)
                slot = self._ring.acquire()
                self._next += 1
            except BaseException:
                self._end = min(self._end, turn)
                raise
            finally:
                self._turn.notify_all()  # also when stopped, or a later turn would wait for ever
        return slot

    def _fill(self, slot: FillingSlot, slab: Slab) -> _ReadSlab:
        number, payload = self._numbers[id(slot.payload)], slot.payload.data
        read_ns = hash_ns = 0
        try:
            for descriptor in slab.objects:
                self._reached[slab.index] = descriptor.index
                self._record(ReadBegun(descriptor.index, slab.index, number, descriptor.size_bytes))
                into = payload[descriptor.start - slab.start : descriptor.end - slab.start]
                read, hashed = self._read_and_hash(into, descriptor, slab.index)
                self._record(Authenticated(descriptor.index, descriptor.digest))
                read_ns, hash_ns = read_ns + read, hash_ns + hashed
        except BaseException:
            self._discard(slab.index, slot)
            raise
        return _ReadSlab(slot, read_ns, hash_ns)

    def _read_and_hash(self, into: memoryview, descriptor: ObjectDescriptor, turn: int) -> tuple[int, int]:
        digest = hashlib.sha256()
        read_ns = hash_ns = 0
        with self._chunks.open(descriptor.file_name, descriptor.size_bytes) as file:
            if descriptor.size_bytes > PIECE_BYTES:  # there is something to read ahead
                os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_SEQUENTIAL)
            for start in range(0, descriptor.size_bytes, PIECE_BYTES):
                self._check_wanted(turn)
                piece = into[start : start + PIECE_BYTES]
                begun = time.perf_counter_ns()
                file.read_into(piece, start)
                read = time.perf_counter_ns()
                digest.update(piece)
                read_ns += read - begun
                hash_ns += time.perf_counter_ns() - read
        descriptor.authenticate(digest.hexdigest())
        return read_ns, hash_ns

    def _is_wanted(self, turn: int) -> bool:
        return turn < self._end and not self._closed

    def _check_wanted(self, turn: int) -> None:
        if not self._is_wanted(turn):
            raise _StoppedError

    def _discard(self, index: int, slot: FillingSlot) -> None:
        self._record(Discarded(index))
        slot.discard()
