"""The plan: every page byte of the stream to its one place in the arena, for any geometry, block table and cut into objects."""

from collections.abc import Sequence

import numpy as np
import pytest
from geometries import cut, geometries
from hypothesis import given, settings
from hypothesis import strategies as st
from snapshots import identity_of, small_layout

from countermark.attestations.errors import InputError
from countermark.cuda_restore.arena import NULL_BLOCK, POISON, Arena, BlockTable
from countermark.cuda_restore.device import Bytes
from countermark.cuda_restore.geometry import MAX_SLOTS, Geometry
from countermark.cuda_restore.plan import PlacementPlan, plan_placement, spans_max
from countermark.cuda_restore.slabs import Slab, slab_bytes_max
from countermark.cuda_restore.spans import SpanTable
from countermark.cuda_restore.stream import StreamLayout


def small_geometry() -> Geometry:
    layout = small_layout()
    return Geometry(identity_of(layout), 512, layout, (8, 2, 1))


def small_arena(spare: int = 3, alignment: int = 1) -> tuple[Arena, BlockTable]:
    geometry = small_geometry()
    capacities = [count + 1 + spare for count in geometry.block_counts]
    arena = Arena.of(geometry.layout, capacities, page_alignment_bytes=alignment)
    return arena, BlockTable.shuffled(geometry.block_counts, capacities, 5)


def slabs(encoded_bytes: int, object_bytes: int, together: int = 1) -> tuple[Slab, ...]:
    """So many objects to a slab."""
    objects = cut(encoded_bytes, object_bytes)
    return tuple(Slab(number, objects[first : first + together]) for number, first in enumerate(range(0, len(objects), together)))


def placed(plan: PlacementPlan, data: Bytes, cuts: Sequence[Slab], size: int) -> tuple[Bytes, Bytes]:
    """What a device makes of the plan, span by span, and how often it wrote each byte."""
    memory, written = np.full(size, POISON, np.uint8), np.zeros(size, np.uint8)
    for cut_out, table in zip(cuts, plan.slabs, strict=True):
        slab = data[cut_out.start : cut_out.end]
        for source, destination, count in zip(table.source, table.destination, table.sizes, strict=True):
            memory[destination : destination + count] = slab[source : source + count]
            written[destination : destination + count] += 1
    return memory, written


def wanted(stream: StreamLayout, data: Bytes, arena: Arena, blocks: BlockTable) -> Bytes:
    """The same by the format page: page by page, through the block table."""
    memory = np.full(arena.size_bytes, POISON, np.uint8)
    for run in stream.runs:
        tensor = arena.tensors[run.group][run.layer]
        for page, block in enumerate(blocks.groups[run.group]):
            start = tensor.start + int(block) * tensor.stride
            memory[start : start + run.bytes_per_page] = data[run.page_start(page) : run.page_start(page) + run.bytes_per_page]
    return memory


@settings(deadline=None)
@given(geometries(), st.integers(30, 3000), st.integers(1, 4), st.sampled_from([1, 16, 24]), st.integers(0, 5), st.integers(0, 2**32))
def test_any_plan_places_every_page_byte_once(
    geometry: Geometry, object_bytes: int, together: int, alignment: int, spare: int, seed: int
) -> None:
    stream = StreamLayout.of(geometry)
    object_bytes = min(object_bytes, stream.encoded_bytes)
    capacities = [count + 1 + spare for count in geometry.block_counts]
    arena = Arena.of(geometry.layout, capacities, page_alignment_bytes=alignment)
    blocks = BlockTable.shuffled(geometry.block_counts, capacities, seed)
    cuts = slabs(stream.encoded_bytes, object_bytes, together)
    plan = plan_placement(stream, cuts, arena, blocks)
    data = np.random.default_rng(seed).integers(0, 256, stream.encoded_bytes, np.uint8)
    memory, written = placed(plan, data, cuts, arena.size_bytes)
    assert np.array_equal(memory, wanted(stream, data, arena, blocks))
    owed = np.zeros(arena.size_bytes, np.uint8)
    for start, size in zip(*arena.pages(blocks), strict=True):
        owed[start : start + size] = 1
    assert np.array_equal(written, owed)
    assert plan.proven_bytes == geometry.payload_bytes
    assert plan.spans == sum(map(len, plan.slabs)) <= geometry.pages + len(plan.slabs)
    assert max(map(len, plan.slabs)) <= spans_max(slab_bytes_max(cuts), arena, blocks)


def test_an_object_of_nothing_but_header_has_no_slab() -> None:
    stream = StreamLayout.of(small_geometry())
    arena, blocks = small_arena()
    plan = plan_placement(stream, slabs(stream.encoded_bytes, stream.header_bytes), arena, blocks)
    assert not len(plan.slabs[0])
    assert plan.launches == len(plan.slabs) - 1


def test_aligned_pages_promise_vectors_whatever_the_header_takes() -> None:
    stream = StreamLayout.of(small_geometry())
    assert stream.header_bytes % 16
    plan = plan_placement(stream, slabs(stream.encoded_bytes, 1024), *small_arena())
    assert {table.alignment for table in plan.slabs} == {16}


def test_odd_strides_promise_single_bytes() -> None:
    stream = StreamLayout.of(small_geometry())
    plan = plan_placement(stream, slabs(stream.encoded_bytes, 1024), *small_arena(alignment=24))
    assert {table.alignment for table in plan.slabs} == {1, 16}  # pages of 512 bytes at multiples of 528 still fit
    assert all(table.alignment == 1 for table in plan.slabs[5:])


def test_other_block_counts_than_the_stream_are_refused() -> None:
    stream = StreamLayout.of(small_geometry())
    arena, _ = small_arena()
    with pytest.raises(InputError, match="were allocated"):
        plan_placement(stream, slabs(stream.encoded_bytes, 1024), arena, BlockTable.shuffled((7, 2, 1), arena.capacities, 1))


def test_a_stream_whose_objects_leave_a_gap_is_refused() -> None:
    stream = StreamLayout.of(small_geometry())
    cuts = slabs(stream.encoded_bytes, 1024)
    with pytest.raises(InputError):
        plan_placement(stream, (*cuts[:2], *cuts[3:]), *small_arena())


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1, 1]], "twice"),
        ([[NULL_BLOCK, 1]], "outside"),
        ([[-1, 1]], "outside"),
        ([[1, MAX_SLOTS]], "outside"),
        ([[]], "no list"),
        ([[1.5]], "no list"),
        ([[True]], "no list"),
        ([[[1, 2]]], "no list"),
    ],
)
def test_a_bad_block_table_is_refused(rows: list[list[int]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        BlockTable.of(rows)


def test_blocks_that_the_arena_does_not_have_are_refused() -> None:
    arena, blocks = small_arena(spare=0)
    with pytest.raises(InputError, match="blocks for 1 groups"):
        arena.check(BlockTable.of([[1]]))
    with pytest.raises(InputError, match="of a group with"):
        arena.check(BlockTable.of([[arena.capacities[0]], *blocks.groups[1:]]))


@pytest.mark.parametrize("capacities", [(2, 2), (2, 2, 1), (2, 2, MAX_SLOTS + 1)])
def test_an_arena_without_room_is_refused(capacities: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="capacities"):
        Arena.of(small_layout(), capacities)


def test_tensors_do_not_overlap_and_fill_their_buffer() -> None:
    arena, _ = small_arena(alignment=64)
    ends = [
        tensor.start + capacity * tensor.stride for row, capacity in zip(arena.tensors, arena.capacities, strict=True) for tensor in row
    ]
    starts = [tensor.start for row in arena.tensors for tensor in row]
    assert starts[0] == 0
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))
    assert ends[-1] <= arena.size_bytes < ends[-1] + 256


def test_the_smallest_arena_has_one_spare_block_a_group() -> None:
    geometry = small_geometry()
    assert Arena.around(geometry.layout, geometry.block_counts).capacities == (9, 3, 2)


def test_a_table_that_places_nothing_is_empty() -> None:
    stream = StreamLayout.of(small_geometry())
    plan = plan_placement(stream, slabs(stream.encoded_bytes, stream.header_bytes), *small_arena())
    assert isinstance(plan.slabs[0], SpanTable)
    assert plan.slabs[0].total_bytes == 0
