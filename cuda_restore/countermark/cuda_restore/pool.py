"""Readers: at most so many objects at once are read into staging slots and authenticated there, while they are still in the cache.

Slots are taken in manifest order. An object may be authenticated before an earlier one, but it never takes the slot that the earlier
one waits for, so the coordinating thread can submit in manifest order and always goes on.
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

from countermark.attestations.codes import Code
from countermark.attestations.errors import UsageError
from countermark.cuda_restore.arena import Arena, BlockTable
from countermark.cuda_restore.device import Bytes, Device
from countermark.cuda_restore.events import Authenticated, Discarded, ReadBegun
from countermark.cuda_restore.manifest import Manifest, ObjectDescriptor
from countermark.cuda_restore.plan import spans_max
from countermark.cuda_restore.staging import FillingSlot, StagingRing, StateError
from countermark.cuda_restore.store import Folder
from countermark.cuda_restore.trace import Recorder

READERS: Final = 4
RETAINED_BYTES: Final = 256 * 1024 * 1024
PIECE_BYTES: Final = 2 * 1024 * 1024
"""Read, then hashed while it is in the cache. Smaller pieces cost more hand-overs of the interpreter lock than they save."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """At most `readers` objects are read at once, and host slots hold at most `retained_bytes` of objects."""

    readers: int = READERS
    retained_bytes: int = RETAINED_BYTES

    def __post_init__(self) -> None:
        if self.readers < 1 or self.retained_bytes < 1:
            raise UsageError(Code.BAD_NUMBER, f"{self.readers} readers and {self.retained_bytes} bytes", fix="allow at least one of each")

    def slots(self, slab_bytes: int, objects: int) -> int:
        """How many slots of `slab_bytes` to allocate: two a reader, so that one is placed while one is read, where memory allows."""
        if slab_bytes > self.retained_bytes:
            message = f"an object has {slab_bytes} bytes, and it is held whole until it is authenticated; {self.retained_bytes} are allowed"
            raise UsageError(Code.TOO_LARGE, message, fix="allow the bytes of one object, or publish with smaller objects")
        return min(self.retained_bytes // slab_bytes, 2 * self.readers, objects)


DEFAULT_BOUNDS: Final = Bounds()


def open_ring(
    device: Device, manifest: Manifest, arena: Arena, table: BlockTable, bounds: Bounds, kind: type[StagingRing] = StagingRing
) -> StagingRing:
    """Staging slots that fit the objects of `manifest` and stay within `bounds`. Allocate once, restore as often as wanted.

    Another `kind` of ring is for a qualification that must see the reuse of a busy slot fail.
    """
    slab_bytes = max(descriptor.size_bytes for descriptor in manifest.objects)
    slots = bounds.slots(slab_bytes, len(manifest.objects))
    return kind(device, slots=slots, payload_bytes=slab_bytes, max_spans=spans_max(slab_bytes, arena, table))


class _StoppedError(StateError):
    """An earlier object failed, or the restore ended, while this object was still to be read."""

    def __init__(self) -> None:
        super().__init__("the readers were stopped")


@dataclass(frozen=True, slots=True)
class _ReadObject:
    """An authenticated object in its slot, and the nanoseconds that its reader spent."""

    slot: FillingSlot
    read_ns: int
    hash_ns: int


class ReaderPool(AbstractContextManager["ReaderPool"]):
    """Reads while its context is open. Leaving it stops the readers, waits for them, and returns every slot not handed over."""

    def __init__(self, chunks: Folder, objects: Sequence[ObjectDescriptor], ring: StagingRing, readers: int, recorder: Recorder) -> None:
        self._chunks, self._objects, self._ring, self._record = chunks, objects, ring, recorder.record
        self._numbers = {id(lane.memory.payload): number for number, lane in enumerate(ring.lanes)}
        self._turn = Condition()
        self._next = self._handed = 0
        self._closed = False
        self._end = len(objects) + len(ring.lanes)  # turns from here on are not taken any more
        self._begun = [Event() for _ in objects]
        self.read_ns = self.hash_ns = 0
        self._executor = ThreadPoolExecutor(readers, thread_name_prefix="countermark-reader")
        self._reads: list[Future[_ReadObject]] = []
        self._settled: list[Future[FillingSlot]] = []

    def __enter__(self) -> Self:
        try:
            for descriptor in self._objects:
                self._reads.append(self._executor.submit(self._read, descriptor))
            for number in range(len(self._numbers)):
                self._settled.append(self._executor.submit(self._take_turn, len(self._objects) + number))
        except BaseException as error:  # no thread, or an interruption: the readers that run already must not outlive their slots
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def await_begun(self, index: int) -> None:
        """Wait until a reader has a slot for an object, or cannot get one."""
        self._begun[index].wait()

    def await_authenticated(self, index: int) -> Bytes:
        """The bytes of an object, read-only in spirit, once they are authenticated; raises what its reader met instead."""
        return self._reads[index].result().slot.payload[: self._objects[index].size_bytes]

    def hand_over(self, index: int) -> FillingSlot:
        """The slot of an authenticated object, for the caller to submit or discard. Objects are handed over in order, each once."""
        if index != self._handed:
            raise StateError(f"object {index} was asked for when object {self._handed} was due")
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

    def _read(self, descriptor: ObjectDescriptor) -> _ReadObject:
        try:
            slot = self._take_slot(descriptor)
            return self._fill(slot, descriptor)
        except BaseException:
            self._end = min(self._end, descriptor.index + 1)  # earlier ones go on, so that the first failure is the one reported
            raise
        finally:
            self._begun[descriptor.index].set()

    def _take_slot(self, descriptor: ObjectDescriptor) -> FillingSlot:
        slot = self._take_turn(descriptor.index, descriptor.size_bytes)
        self._begun[descriptor.index].set()
        return slot

    def _take_turn(self, turn: int, size_bytes: int = 0) -> FillingSlot:
        """The slot that is free next, for the object of that number, or behind them all for nothing but to wait for its last slab."""
        with self._turn:
            try:
                self._turn.wait_for(lambda: self._next == turn or not self._is_wanted(turn))
                self._check_wanted(turn)
                slot = self._ring.acquire()
                if turn < len(self._objects):
                    self._record(ReadBegun(turn, self._numbers[id(slot.payload)], size_bytes))
                self._next += 1
            except BaseException:
                self._end = min(self._end, turn)
                raise
            finally:
                self._turn.notify_all()  # also when stopped, or a later turn would wait for ever
        return slot

    def _fill(self, slot: FillingSlot, descriptor: ObjectDescriptor) -> _ReadObject:
        try:
            read_ns, hash_ns = self._read_and_hash(slot, descriptor)
        except BaseException:
            self._discard(descriptor.index, slot)
            raise
        self._record(Authenticated(descriptor.index, descriptor.digest))
        return _ReadObject(slot, read_ns, hash_ns)

    def _read_and_hash(self, slot: FillingSlot, descriptor: ObjectDescriptor) -> tuple[int, int]:
        into = slot.payload.data[: descriptor.size_bytes]
        digest = hashlib.sha256()
        read_ns = hash_ns = 0
        with self._chunks.open(descriptor.file_name, descriptor.size_bytes) as file:
            if descriptor.size_bytes > PIECE_BYTES:  # there is something to read ahead
                os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_SEQUENTIAL)
            for start in range(0, descriptor.size_bytes, PIECE_BYTES):
                self._check_wanted(descriptor.index)
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
