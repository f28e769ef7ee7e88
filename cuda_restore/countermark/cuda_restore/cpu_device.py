"""A device in host memory whose streams are deferred, so that a missing wait shows as wrong bytes.

Work is queued and runs when something waits on it. An eager device would hide the class of defect that matters most here: with one
forgotten wait every object still authenticates and every byte is still placed, at once, from memory that was not yet reused.
"""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import count
from threading import RLock
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError
from countermark.cuda_restore.device import (
    Buffer,
    Bytes,
    DeviceInfo,
    DeviceKind,
    DriverState,
    Event,
    StagingMemory,
    Stream,
    check_range,
    check_scatter,
)
from countermark.cuda_restore.host_placement import place
from countermark.cuda_restore.ownership import Ownership
from countermark.cuda_restore.page_digest import DigestKey, Digests, page_digests
from countermark.cuda_restore.spans import SpanTable

_STIR: Final = 0.5
"""How likely one more operation runs ahead: on average one for every submission, so queues neither empty at once nor only grow."""

_Thing = TypeVar("_Thing")


class Deferral(StrEnum):
    """When queued work runs: as late as legal, in a seeded random legal interleaving, or at once."""

    LAZY = "lazy"
    RANDOM = "random"
    EAGER = "eager"


@dataclass(slots=True, eq=False)
class _Queue:
    """The work of one stream. `done` and `issued` count operations from the first."""

    pending: "deque[Callable[[], None] | _Point]" = field(default_factory=deque)
    done: int = 0
    issued: int = 0

    def push(self, work: "Callable[[], None] | _Point") -> None:
        self.pending.append(work)
        self.issued += 1

    @property
    def ready(self) -> bool:
        """Whether the next operation may run: there is one, and it does not wait for an event that is still to come."""
        head = self.pending[0] if self.pending else None
        return head is not None and not (isinstance(head, _Point) and not head.reached)

    def step(self) -> None:
        """Run the next operation; it must be ready."""
        head = self.pending[0]
        if not isinstance(head, _Point):
            head()
        self.pending.popleft()
        self.done += 1


@dataclass(frozen=True, slots=True)
class _Point:
    """An event: the moment when a queue has done its first `count` operations."""

    queue: _Queue
    count: int

    @property
    def reached(self) -> bool:
        return self.queue.done >= self.count


class CpuDevice(Ownership):
    """Placement by numpy over host memory. Safe to use from several threads; work runs in the thread that waits for it."""

    def __init__(self, deferral: Deferral = Deferral.LAZY, *, seed: int = 0, driver: DriverState = DriverState.ABSENT) -> None:
        super().__init__()
        self._deferral = deferral
        self._random = random.Random(seed)  # noqa: S311 - an interleaving to be repeated, not a secret
        self._lock = RLock()
        self._handles = count(1)
        self._memory: dict[int, Bytes] = {}
        self._queues: dict[int, _Queue] = {}
        self._points: dict[int, _Point] = {}
        seeded = f"-{seed}" if deferral is Deferral.RANDOM else ""
        self.info = DeviceInfo(DeviceKind.CPU, f"deferred-{deferral}{seeded}", driver)

    def new_stream(self) -> Stream:
        stream = Stream(next(self._handles))
        self._queues[stream.handle] = _Queue()
        self.add(stream, partial(self._queues.__delitem__, stream.handle))
        return stream

    def record(self, stream: Stream) -> Event:
        queue = self._queue(stream)
        event = Event(next(self._handles))
        self._points[event.handle] = _Point(queue, queue.issued)
        self.add(event, partial(self._points.__delitem__, event.handle))
        return event

    def order(self, stream: Stream, after: Event) -> None:
        self._submit(stream, self._point(after))

    def wait(self, event: Event) -> None:
        self._reach(self._point(event))

    def synchronize(self, stream: Stream) -> None:
        queue = self._queue(stream)
        self._reach(_Point(queue, queue.issued))

    def allocate(self, size: int) -> Buffer:
        buffer = Buffer(next(self._handles), size)
        self._memory[buffer.handle] = _prefaulted(size)
        self.add(buffer, partial(self._memory.__delitem__, buffer.handle))
        return buffer

    def stage(self, payload_bytes: int, max_spans: int) -> StagingMemory:
        staging = StagingMemory(next(self._handles), _prefaulted(payload_bytes), max_spans)
        self.add(staging, lambda: None)
        return staging

    def fill(self, buffer: Buffer, value: int, stream: Stream) -> None:
        self._submit(stream, partial(self._bytes(buffer).fill, value))

    def scatter(self, staging: StagingMemory, spans: SpanTable, destination: Buffer, status: Buffer, stream: Stream) -> None:
        check_scatter(staging, spans, destination, status)
        self._submit(stream, partial(place, staging.payload, spans, self._bytes(destination), self._bytes(status)))

    def page_digests(self, buffer: Buffer, pages: NDArray[np.void], key: DigestKey, stream: Stream) -> Digests:
        self.synchronize(stream)
        return page_digests(self._bytes(buffer), pages, key)

    def read(self, buffer: Buffer, start: int, size: int, stream: Stream) -> Bytes:
        check_range(buffer, start, size)
        self.synchronize(stream)
        return self._bytes(buffer)[start : start + size].copy()

    def write(self, buffer: Buffer, start: int, data: Bytes, stream: Stream) -> None:
        check_range(buffer, start, data.size)
        self.synchronize(stream)
        self._bytes(buffer)[start : start + data.size] = data

    def _queue(self, stream: Stream) -> _Queue:
        return _known(self._queues, stream.handle, "stream")

    def _point(self, event: Event) -> _Point:
        return _known(self._points, event.handle, "event")

    def _bytes(self, buffer: Buffer) -> Bytes:
        return _known(self._memory, buffer.handle, "buffer")

    def _submit(self, stream: Stream, work: Callable[[], None] | _Point) -> None:
        queue = self._queue(stream)
        with self._lock:
            queue.push(work)
            if self._deferral is Deferral.EAGER:
                self._run_until(_Point(queue, queue.issued))
            self._stir()

    def _reach(self, point: _Point) -> None:
        if point.reached:  # without the lock: a slot that is long free must not wait for another slot's placement
            return
        with self._lock:
            self._stir()
            self._run_until(point)

    def _run_until(self, point: _Point) -> None:
        """Run no more than the event needs: its own queue up to it, and what that waits for."""
        while not point.reached:
            head = point.queue.pending[0]
            if isinstance(head, _Point):
                self._run_until(head)
            point.queue.step()

    def _stir(self) -> None:
        """In the random mode, run some operations that may run, of any stream."""
        while self._deferral is Deferral.RANDOM and self._random.random() < _STIR:
            ready = [queue for queue in self._queues.values() if queue.ready]
            if not ready:
                return
            self._random.choice(ready).step()


def _known(table: dict[int, _Thing], handle: int, kind: str) -> _Thing:
    try:
        return table[handle]
    except KeyError:
        raise InputError(
            Code.UNKNOWN_NAME, f"this device has no {kind} {handle}", fix="use it before releasing it, on its own device"
        ) from None


def _prefaulted(size: int) -> Bytes:
    """Host memory whose pages exist already, with bytes that nobody should take for data."""
    memory = np.empty(size, np.uint8)
    memory.fill(0xCD)
    return memory
