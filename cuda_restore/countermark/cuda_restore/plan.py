"""From the stream of a snapshot to span tables: which bytes of which object go where in the arena, proven before any of them moves.

The stream behind its header is cut twice, at every page and at every slab. A piece between two cuts lies in one page and in one slab,
so it is one span. All pieces of one slab are one copy and one launch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countermark.cuda_restore.arena import Arena, BlockTable
from countermark.cuda_restore.slabs import Slab
from countermark.cuda_restore.spans import VECTOR_BYTES, SpanTable, prove_coverage
from countermark.cuda_restore.stream import StreamLayout
from countermark.cuda_restore.wire import refusal

Offsets = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PlacementPlan:
    """One span table a slab, offsets from the slab's first byte; empty where a slab holds nothing but header.

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


def plan_placement(stream: StreamLayout, slabs: Sequence[Slab], arena: Arena, table: BlockTable) -> PlacementPlan:
    """The proven plan for an authenticated stream.

    `InputError` when the block table does not have the stream's block counts, or when the proof over the tables fails.
    """
    if table.counts != stream.geometry.block_counts:
        message = f"the stream has {stream.geometry.block_counts} blocks, {table.counts} were allocated"
        raise refusal("blocks", "", message, "allocate what the manifest's context needs, or recompute the prefix")
    owed = arena.pages(table)
    tables = _tables(stream, slabs, owed[0])
    for slab, spans in zip(slabs, tables, strict=True):
        _check_table(slab, spans, stream.header_bytes)
    return PlacementPlan(tables, prove_coverage(tables, *owed))


def spans_max(slab_bytes: int, arena: Arena, table: BlockTable) -> int:
    """No slab of `slab_bytes` has more spans than this: whole pages, and one cut at either end."""
    pages = sum(len(blocks) * len(tensors) for blocks, tensors in zip(table.groups, arena.tensors, strict=True))
    return min(slab_bytes // arena.smallest_page(), pages) + 2


def _tables(stream: StreamLayout, slabs: Sequence[Slab], targets: Offsets) -> tuple[SpanTable, ...]:
    pages = np.concatenate([run.start + run.bytes_per_page * np.arange(run.pages) for run in stream.runs])
    starts = np.array([slab.start for slab in slabs])
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


def _check_table(slab: Slab, table: SpanTable, header_bytes: int) -> None:
    """Every byte of the slab behind the header is read by its table, and none by another."""
    wanted = slab.end - max(slab.start, min(header_bytes, slab.end))
    if table.total_bytes != wanted or table.source_end not in (0, slab.size_bytes):
        message = f"the plan reads {table.total_bytes} of the {wanted} page bytes of slab {slab.index}"
        raise refusal("plan", f"/{slab.index}", message, "recompute the prefix, and report this as a defect of countermark")
