"""From the stream of a snapshot to span tables: which bytes of which object go where in the arena, proven before any of them moves.

The stream behind its header is cut twice, at every page and at every object. A piece between two cuts lies in one page and in one
object, so it is one span. All pieces of one object are one slab, which is one copy and one launch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countermark.attestations.errors import InputError
from countermark.cuda_restore.arena import Arena, BlockTable
from countermark.cuda_restore.manifest import ObjectDescriptor
from countermark.cuda_restore.spans import VECTOR_BYTES, SpanTable, prove_coverage
from countermark.cuda_restore.stream import StreamLayout
from countermark.cuda_restore.wire import refusal

Offsets = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PlacementPlan:
    """One span table an object, offsets from the object's first byte; empty where an object holds nothing but header.

    `proven_bytes` are those of the arena that the tables were proven to write exactly once, which are all that the block table owes.
    """

    slabs: tuple[SpanTable, ...]
    proven_bytes: int

    @property
    def launches(self) -> int:
        """The slabs that place anything."""
        return sum(1 for table in self.slabs if len(table))

    @property
    def spans(self) -> int:
        """The spans of all slabs."""
        return sum(map(len, self.slabs))


def plan_placement(stream: StreamLayout, objects: Sequence[ObjectDescriptor], arena: Arena, table: BlockTable) -> PlacementPlan:
    """The proven plan for an authenticated stream.

    `InputError` when the block table does not have the stream's block counts, or when the proof over the tables fails.
    """
    if table.counts != stream.geometry.block_counts:
        message = f"the stream has {stream.geometry.block_counts} blocks, {table.counts} were allocated"
        raise refusal("blocks", "", message, "allocate what the manifest's context needs, or recompute the prefix")
    owed = arena.pages(table)
    slabs = _slabs(stream, objects, owed[0])
    for descriptor, slab in zip(objects, slabs, strict=True):
        _check_slab(descriptor, slab, stream.header_bytes)
    return PlacementPlan(slabs, prove_coverage(slabs, *owed))


def spans_max(slab_bytes: int, arena: Arena, table: BlockTable) -> int:
    """No slab of `slab_bytes` has more spans than this: whole pages, and one cut at either end."""
    pages = sum(len(blocks) * len(tensors) for blocks, tensors in zip(table.groups, arena.tensors, strict=True))
    return min(slab_bytes // arena.smallest_page(), pages) + 2


def _slabs(stream: StreamLayout, objects: Sequence[ObjectDescriptor], targets: Offsets) -> tuple[SpanTable, ...]:
    pages = np.concatenate([run.start + run.bytes_per_page * np.arange(run.pages) for run in stream.runs])
    starts = np.array([descriptor.start for descriptor in objects])
    cuts = np.sort(np.concatenate((pages, starts[starts > stream.header_bytes])), kind="stable")  # two sorted runs: merged, not sorted
    cuts = cuts[np.diff(cuts, prepend=-1) > 0]
    sizes = np.diff(cuts, append=stream.encoded_bytes)
    page = np.searchsorted(pages, cuts, side="right") - 1
    destinations = targets[page] + cuts - pages[page]
    edges = np.append(np.searchsorted(cuts, starts), len(cuts))
    return tuple(
        _table(cuts[first:last] - start, destinations[first:last], sizes[first:last])
        for first, last, start in zip(edges, edges[1:], starts, strict=False)
    )


def _table(sources: Offsets, destinations: Offsets, sizes: Offsets) -> SpanTable:
    """The table with the best alignment that its rows can keep."""
    skews = (destinations - sources) % VECTOR_BYTES
    alignment = VECTOR_BYTES if not len(skews) or (skews == skews[0]).all() else 1
    return SpanTable.of(sources, destinations, sizes, alignment=alignment)


def _check_slab(descriptor: ObjectDescriptor, slab: SpanTable, header_bytes: int) -> None:
    """Every byte of the object behind the header is read by its slab, and none by another."""
    wanted = descriptor.end - max(descriptor.start, min(header_bytes, descriptor.end))
    if slab.total_bytes != wanted or slab.source_end not in (0, descriptor.size_bytes):
        raise _uncovered(descriptor, slab.total_bytes, wanted)


def _uncovered(descriptor: ObjectDescriptor, planned: int, wanted: int) -> InputError:
    message = f"the plan reads {planned} of the {wanted} page bytes of object {descriptor.index}"
    return refusal("plan", f"/{descriptor.index}", message, "recompute the prefix, and report this as a defect of countermark")
