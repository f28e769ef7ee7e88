"""The span table: what it refuses, what it proves, and that reshaping never changes what is placed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countermark.attestations.errors import InputError
from countermark.cuda_restore.spans import SPAN_ROW, SpanTable, prove_coverage

SLAB = 4096


@st.composite
def tables(draw: st.DrawFn, alignment: int = 1) -> SpanTable:
    """Spans in random order, disjoint in a destination twice as large as the slab."""
    cuts = sorted(draw(st.sets(st.integers(1, SLAB // alignment - 1), max_size=24)))
    edges = np.array([0, *cuts, SLAB // alignment]) * alignment
    sizes = np.diff(edges)
    order = np.array(draw(st.permutations(range(len(sizes)))))
    gaps = np.array(draw(st.lists(st.integers(0, 8), min_size=len(sizes), max_size=len(sizes)))) * alignment
    destination = np.empty(len(sizes), np.int64)
    destination[order] = np.cumsum(sizes[order]) - sizes[order] + np.cumsum(gaps)
    return SpanTable.of(edges[:-1], destination, sizes, alignment=alignment)


def place(table: SpanTable) -> list[tuple[int, int]]:
    """Every (destination byte, source byte) pair, in order of the destination."""
    pairs = []
    for source, destination, size in zip(table.source.tolist(), table.destination.tolist(), table.sizes.tolist(), strict=True):
        pairs += [(destination + i, source + i) for i in range(size)]
    return sorted(pairs)


@given(tables())
def test_coalescing_places_the_same_bytes_in_no_more_rows(table: SpanTable) -> None:
    joined = table.coalesced()
    assert place(joined) == place(table)
    assert len(joined) <= len(table)


@given(tables(alignment=16), st.sampled_from([16, 48, 1024]))
def test_tiling_places_the_same_bytes_in_bounded_rows(table: SpanTable, tile: int) -> None:
    tiles = table.tiled(tile)
    assert place(tiles) == place(table)
    assert tiles.sizes.max() <= tile
    assert tiles.alignment == 16


def test_neighbours_are_joined() -> None:
    joined = SpanTable.of([0, 16, 32], [64, 80, 16], [16, 16, 16]).coalesced()
    assert (joined.source.tolist(), joined.destination.tolist(), joined.sizes.tolist()) == ([0, 32], [64, 16], [32, 16])


def test_an_empty_table_has_no_bytes() -> None:
    empty = SpanTable.of([], [], [])
    assert (len(empty), empty.total_bytes, empty.source_end, empty.skew, len(empty.coalesced()), len(empty.tiled(16))) == (0, 0, 0, 0, 0, 0)
    empty.check_bounds(0, 0)


def test_the_kernel_sees_shifted_sources_in_24_byte_rows() -> None:
    table = SpanTable.of([8, 24], [32, 0], [16, 16])
    assert table.skew == 8
    assert SPAN_ROW.itemsize == 24
    assert table.rows(table.skew).tolist() == [(16, 32, 16), (32, 0, 16)]


@pytest.mark.parametrize(
    ("source", "destination", "sizes", "message"),
    [
        ([0], [0], [0], "no bytes"),
        ([-16], [0], [16], "negative"),
        ([0], [-16], [16], "negative"),
        ([0, 16], [0], [16], "length"),
        ([0.0], [0], [16], "integers"),
        ([[0]], [0], [16], "list of integers"),
        ([True], [0], [16], "integers"),
        ([2**63], [0], [16], "63 bits"),
        ([0, 24], [0, 32], [16, 16], "span 1 is not aligned"),
    ],
)
def test_what_is_not_a_table_is_refused(source: list[int], destination: list[int], sizes: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SpanTable.of(source, destination, sizes)


def test_an_alignment_that_no_kernel_knows_is_refused() -> None:
    with pytest.raises(InputError, match="alignment of 4"):
        SpanTable.of([0], [0], [16], alignment=4)


def test_odd_layouts_promise_less() -> None:
    assert len(SpanTable.of([0, 3], [5, 1], [3, 4], alignment=1)) == 2


def test_columns_cannot_be_changed_behind_the_proof() -> None:
    table = SpanTable.of([0], [0], [16])
    with pytest.raises(ValueError, match="read-only"):
        table.destination[0] = 32


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (SpanTable.of([48], [0], [32]), "leaves its source of 64"),
        (SpanTable.of([0], [112], [32]), "leaves its destination of 128"),
        (SpanTable.of([0], [2**62], [16]), "leaves its destination"),
        (SpanTable.of([0, 16], [16, 16], [16, 16]), "spans 0 and 1 both write byte 16"),
        (SpanTable.of([0, 32], [16, 0], [16, 32]), "both write byte 16"),
    ],
)
def test_a_table_that_leaves_its_buffers_or_writes_twice_is_refused(table: SpanTable, message: str) -> None:
    with pytest.raises(InputError, match=message):
        table.check_bounds(64, 128)


@given(tables(), st.data())
def test_coverage_is_proven_for_any_split_and_falls_with_any_one_span(table: SpanTable, data: st.DataObject) -> None:
    order = np.argsort(table.destination)
    starts, sizes = table.destination[order], table.sizes[order]
    cut = data.draw(st.integers(0, len(table)))
    parts = [SpanTable.of(table.source[s], table.destination[s], table.sizes[s], alignment=1) for s in (slice(0, cut), slice(cut, None))]
    assert prove_coverage(parts, starts, sizes) == SLAB

    lost = data.draw(st.integers(0, len(table) - 1))
    kept = np.arange(len(table)) != lost
    missing = SpanTable.of(table.source[kept], table.destination[kept], table.sizes[kept], alignment=1)
    with pytest.raises(InputError, match=f"byte {int(table.destination[lost])} is never written"):
        prove_coverage([missing], starts, sizes)


def test_a_byte_written_twice_over_two_tables_is_found() -> None:
    page = SpanTable.of([0], [32], [16])
    with pytest.raises(InputError, match="both write byte 32"):
        prove_coverage([page, page], [32], [16])


def test_a_byte_that_nobody_asked_for_is_found() -> None:
    with pytest.raises(InputError, match="byte 48 is written although"):
        prove_coverage([SpanTable.of([0], [32], [32])], [32], [16])
    with pytest.raises(InputError, match="byte 0 is written although"):
        prove_coverage([SpanTable.of([0, 16], [0, 32], [16, 16])], [32], [16])


def test_nothing_demanded_proves_nothing() -> None:
    with pytest.raises(InputError, match="nothing can be proven"):
        prove_coverage([], [], [])
    with pytest.raises(InputError, match="byte 0 is never written"):
        prove_coverage([], [0], [16])
