"""The defect that the engine's types forbid, written by hand: a staging slot refilled before its copy has run.

Every object is authenticated and every byte is placed, from memory that holds a later slab by then. An eager device never shows it; a
deferred one does. A GPU would show it at times, so there the wrong copy is made on purpose.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from countermark.cuda_restore.device import STATUS_BYTES, Buffer, Bytes, Event, ScatterStatus, StagingMemory, Stream
from countermark.cuda_restore.events import Authenticated, Completed, FaultInjected, Recompute, Submitted
from countermark.cuda_restore.ownership import Ownership
from countermark.cuda_restore.plan import PlacementPlan, plan_placement, spans_max
from countermark.cuda_restore.reader import read_head
from countermark.cuda_restore.result import requested
from countermark.cuda_restore.session import RankSession
from countermark.cuda_restore.slabs import Slab, read_slab, slab_bytes_max, slabs_of
from countermark.cuda_restore.spans import SpanTable
from countermark.cuda_restore.store import Folder
from countermark.cuda_restore.stream import StreamLayout
from countermark.cuda_restore.trace import Recorder, Trace

SLOTS: Final = 2


def restore_without_waiting(session: RankSession, fault: str) -> Trace:
    """Restore through two slots, each refilled while its last copy may still be to come. The trace names the fault."""
    recorder, request = Recorder(), session.request
    manifest = request.loaded.manifest
    recorder.record(requested(request.loaded, request.bounds, 1))
    recorder.record(FaultInjected(fault))
    with Folder.at(request.chunks) as chunks:
        head = read_head(chunks, manifest)
        stream = StreamLayout.read(head, manifest, request.arena.layout, manifest.objects[0].file_name)
        slabs = slabs_of(manifest.objects, request.bounds)
        plan = plan_placement(stream, slabs, request.arena, request.blocks)
        status = _place(session, slabs, plan, chunks, recorder)
    recorder.record(Completed(manifest.encoded_bytes, plan.launches, plan.launches, status.placed_bytes, status.error))
    recorder.end(Recompute())
    return recorder.trace


def _place(session: RankSession, slabs: Sequence[Slab], plan: PlacementPlan, chunks: Folder, recorder: Recorder) -> ScatterStatus:
    device, request, slab_bytes = session.device, session.request, slab_bytes_max(slabs)
    with Ownership() as owned:
        slots = [device.stage(slab_bytes, spans_max(slab_bytes, request.arena, request.blocks)) for _ in range(SLOTS)]
        status, stream, poisoned = device.allocate(STATUS_BYTES), device.new_stream(), device.record(session.stream)
        resources: tuple[StagingMemory | Buffer | Stream | Event, ...] = (*slots, status, stream, poisoned)
        for resource in resources:
            owned.add(resource, partial(device.release, resource))
        device.order(stream, after=poisoned)
        device.fill(status, 0, stream)
        for slab, spans in zip(slabs, plan.slabs, strict=True):
            slot = slots[slab.index % SLOTS]
            # here the slot's last copy should be waited for
            read_slab(chunks, slab, slot.payload.data)
            for descriptor in slab.objects:
                recorder.record(Authenticated(descriptor.index, descriptor.digest))
            if len(spans):
                recorder.record(Submitted(slab.index, len(spans), spans.total_bytes))
                device.scatter(slot, spans, request.destination, status, stream)
        return ScatterStatus.of(device.read(status, 0, STATUS_BYTES, stream))


@dataclass(frozen=True, slots=True)
class StaleSlot:
    """An `Interference`: each slab is placed as its slot would hold it after the next refill. `slabs` are the bytes of all of them."""

    fault: str
    slabs: Sequence[Bytes]

    def disturb(self, index: int, payload: Bytes, spans: SpanTable) -> SpanTable:
        """Put the bytes of the slab that comes next into this slot in place of the slab's own."""
        if index + SLOTS < len(self.slabs):
            later = self.slabs[index + SLOTS]
            payload[: len(later)] = later
        return spans
