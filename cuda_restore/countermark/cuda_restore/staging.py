"""Slots and placement: the two orderings whose absence makes authentic bytes land wrong, made impossible to leave out.

* A slot's memory is reachable only through `StagingRing.acquire`, which waits for the completion of whatever still reads it.
* A placement exists only through `begin`, which demands the event of the work that came before.

Both hold on every device, and both are invisible on a device that runs everything at once; test against the deferred ones.
"""

from collections import deque
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from threading import Condition
from types import TracebackType
from typing import TypeVar

from countermark.attestations.codes import Code
from countermark.attestations.errors import CountermarkError
from countermark.cuda_restore.device import STATUS_BYTES, Buffer, Bytes, Device, Event, ScatterStatus, StagingMemory, Stream
from countermark.cuda_restore.ownership import Ownership
from countermark.cuda_restore.spans import SpanTable

_Resource = TypeVar("_Resource", Buffer, Event, Stream)


class StateError(CountermarkError):
    """A call that the state does not allow: a mistake in the program, not in its input (exit 70)."""

    def __init__(self, message: str) -> None:
        super().__init__(Code.UNSUPPORTED, message, fix="report this as a defect of countermark")


class RingClosedError(StateError):
    """The ring was closed while, or before, a slot was asked for."""


@dataclass(slots=True, eq=False)
class Lane:
    """One slot's memory and the stream that alone uses it. `ticket` is the completion of its last slab."""

    memory: StagingMemory
    stream: Stream
    in_flight: bool = False
    ticket: Event | None = None

    def await_completion(self, device: Device) -> None:
        """Return when nothing reads the slot any more."""
        if self.ticket is not None:
            device.wait(self.ticket)
        elif self.in_flight:  # the submission failed half-way, so there is no ticket to wait for
            device.synchronize(self.stream)
        ticket, self.ticket, self.in_flight = self.ticket, None, False
        if ticket is not None:
            device.release(ticket)


class FillingSlot:
    """A slot that nothing reads any more: the one state in which its bytes can be written. It ends at `submit` or `discard`."""

    def __init__(self, ring: "StagingRing", lane: Lane) -> None:
        self._ring = ring
        self._lane: Lane | None = lane

    @property
    def payload(self) -> Bytes:
        """The slot's bytes, writable. A `StateError` once the slot was submitted or discarded."""
        return self._held().memory.payload

    def discard(self) -> None:
        """Return the slot unsubmitted, as after a failed authentication."""
        self._ring.put_back(self.spend(self._ring))

    def spend(self, ring: "StagingRing") -> Lane:
        """Give the lane up to whoever submits it; a placement does this itself."""
        if ring is not self._ring:
            raise StateError("the slot belongs to another ring than the placement")
        lane, self._lane = self._held(), None
        return lane

    def _held(self) -> Lane:
        if self._lane is None:
            raise StateError("the slot was submitted or discarded; acquire another")
        return self._lane


class StagingRing(AbstractContextManager["StagingRing"]):
    """A fixed number of pinned slots, allocated once; its size is the bound on retained bytes. `acquire` is safe in any thread.

    `slots` slabs of `payload_bytes` each, placed by at most `max_spans` spans. The memory belongs to `device`, which must outlive
    the ring.
    """

    def __init__(self, device: Device, *, slots: int, payload_bytes: int, max_spans: int) -> None:
        self.device = device
        self.capacity_bytes = slots * payload_bytes
        self.lanes = tuple(Lane(device.stage(payload_bytes, max_spans), device.new_stream()) for _ in range(slots))
        self._free = deque(self.lanes)
        self._changed = Condition()
        self._closed = False
        self._owned = Ownership()
        for lane in self.lanes:
            self._owned.add(lane.stream, partial(self._release, lane))

    def acquire(self) -> FillingSlot:
        """The slot that was submitted longest ago, once its slab has been placed. Blocks; `RingClosedError` after `close`."""
        with self._changed:
            self._changed.wait_for(lambda: self._free or self._closed)
            if self._closed:
                raise RingClosedError("no slot: the ring is closed")
            lane = self._free.popleft()
        try:
            lane.await_completion(self.device)
        except CountermarkError:
            self.put_back(lane)
            raise
        return FillingSlot(self, lane)

    def put_back(self, lane: Lane) -> None:
        """Offer a lane again, with whatever still reads it recorded in it; slots do this themselves."""
        with self._changed:
            self._free.append(lane)
            self._changed.notify()

    def close(self) -> None:
        """Wake whoever waits for a slot, wait for submitted work, and release the memory."""
        self.__exit__(None, None, None)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._owned.__exit__(kind, error, trace)

    def _release(self, lane: Lane) -> None:
        with Ownership() as parts:
            parts.add(lane.memory, partial(self.device.release, lane.memory))
            parts.add(lane.stream, partial(self.device.release, lane.stream))
            parts.add("completion", partial(lane.await_completion, self.device))


@dataclass(frozen=True, slots=True)
class PlacementStats:
    """What a finished placement did. One slab is one launch; `planned_bytes` is what its span tables asked for."""

    slabs: int
    planned_bytes: int
    status: ScatterStatus


class _State(StrEnum):
    ACTIVE = "active"
    FINISHED = "finished"
    ABORTED = "aborted"


def begin(ring: StagingRing, destination: Buffer, *, prerequisite: Event) -> "Placement":
    """Open a placement whose every write runs after `prerequisite`, the last work that touched the destination pages."""
    return Placement(ring, destination, prerequisite)


class Placement(AbstractContextManager["Placement"]):
    """Slabs on their way into one destination; made by `begin`. It ends once, in `finish` or `abort`; leaving the context aborts."""

    def __init__(self, ring: StagingRing, destination: Buffer, prerequisite: Event) -> None:
        self._ring, self._device, self._destination = ring, ring.device, destination
        self._state = _State.ACTIVE
        self._slabs = self._planned_bytes = 0
        self._owned = Ownership()
        self._status = self._own(self._device.allocate(STATUS_BYTES))
        self._control = self._own(self._device.new_stream())
        self._device.order(self._control, after=prerequisite)
        self._device.fill(self._status, 0, self._control)
        gate = self._own(self._device.record(self._control))
        for lane in ring.lanes:
            self._device.order(lane.stream, after=gate)

    def submit(self, slot: FillingSlot, spans: SpanTable) -> None:
        """Queue a filled slot's copy and scatter; the slot goes back to the ring together with its completion ticket."""
        self._demand_active()
        lane = slot.spend(self._ring)
        try:
            lane.in_flight = True
            self._device.scatter(lane.memory, spans, self._destination, self._status, lane.stream)
            lane.ticket = self._device.record(lane.stream)
        finally:
            self._ring.put_back(lane)
        self._slabs += 1
        self._planned_bytes += spans.total_bytes

    def finish(self) -> PlacementStats:
        """Wait for every slab and read the status. The caller judges it; nothing here turns a rejected row into success."""
        self._demand_active()
        for lane in self._ring.lanes:
            self._device.synchronize(lane.stream)
        status = ScatterStatus.of(self._device.read(self._status, 0, STATUS_BYTES, self._control))
        self._state = _State.FINISHED
        self._owned.close()
        return PlacementStats(self._slabs, self._planned_bytes, status)

    def abort(self) -> None:
        """Wait for what was submitted, so that the destination may be freed, and end. A launched kernel cannot be recalled."""
        self._demand_active()
        self._state = _State.ABORTED
        for lane in self._ring.lanes:
            self._owned.add(lane, partial(self._device.synchronize, lane.stream))
        self._owned.close()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._state is _State.ACTIVE:
            try:
                self.abort()
            except CountermarkError as failure:
                if error is None:
                    raise
                error.add_note(f"while aborting: {failure}")

    def _own(self, resource: _Resource) -> _Resource:
        self._owned.add(resource, partial(self._device.release, resource))
        return resource

    def _demand_active(self) -> None:
        if self._state is not _State.ACTIVE:
            raise StateError(f"the placement is already {self._state}")
