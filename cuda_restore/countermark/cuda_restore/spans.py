"""The span table: which bytes of a staged slab go where in the destination.

A table is three equal-length arrays of byte counts. It is the only description of a placement that a device obeys, so what is
proven over it on the host (bounds, alignment, every destination byte written exactly once) holds for the launch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError

VECTOR_BYTES: Final = 16
"""What one GPU thread moves at a time; the default alignment that a table promises."""

SPAN_ROW: Final = np.dtype([("source", "<u8"), ("destination", "<u8"), ("bytes", "<u8")])
"""One row as the kernel reads it: 24 bytes, little-endian."""

Offsets = NDArray[np.int64]


def _refuse(message: str, fix: str) -> NoReturn:
    raise InputError(Code.MALFORMED, message, fix=fix)


def _offsets(name: str, values: ArrayLike) -> Offsets:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        _refuse(f"the {name} column is not a list of integers", "give one integer a span")
    if array.dtype.kind == "u" and array.size and int(array.max()) > np.iinfo(np.int64).max:
        _refuse(f"the {name} column exceeds 63 bits", "give offsets that a buffer can have")
    column = array.astype(np.int64)
    column.flags.writeable = False
    return column


@dataclass(frozen=True, slots=True, eq=False)
class SpanTable:
    """Rows of (source offset, destination offset, bytes), all in bytes.

    `alignment` is a promise to the kernel, 1 or 16: within a table, every row's destination minus source leaves the same remainder,
    so that after one shift of the whole slab each row is copied 16 bytes a thread. Promise 16 wherever all page sizes and page starts
    are multiples of 16; a layout with odd page sizes promises 1 and is copied byte by byte.
    """

    source: Offsets
    destination: Offsets
    sizes: Offsets
    alignment: int = VECTOR_BYTES

    @classmethod
    def of(cls, source: ArrayLike, destination: ArrayLike, sizes: ArrayLike, *, alignment: int = VECTOR_BYTES) -> "SpanTable":
        """A table of these columns; an `InputError` unless they are integers of one length that keep the promised alignment."""
        table = cls(_offsets("source", source), _offsets("destination", destination), _offsets("bytes", sizes), alignment)
        if not len(table.source) == len(table.destination) == len(table.sizes):
            _refuse("the columns of a span table differ in length", "give one source, destination and size a span")
        if alignment not in (1, VECTOR_BYTES):
            _refuse(f"a span table cannot promise an alignment of {alignment}", f"promise {VECTOR_BYTES} or 1")
        if len(table) and (int(table.source.min()) < 0 or int(table.destination.min()) < 0 or int(table.sizes.min()) < 1):
            _refuse("a span has a negative offset or no bytes", "leave empty spans out")
        skews = (table.destination - table.source) % alignment
        if len(table) and (skews != skews[0]).any():
            row = int(np.flatnonzero(skews != skews[0])[0])
            _refuse(f"span {row} is not aligned to {alignment} bytes like span 0", "promise an alignment of 1 for such a layout")
        return table

    def __len__(self) -> int:
        """The number of spans."""
        return len(self.source)

    @property
    def total_bytes(self) -> int:
        """The bytes that the table places."""
        return int(self.sizes.sum())

    @property
    def source_end(self) -> int:
        """The first byte of the slab that no span reads any more."""
        return int((self.source + self.sizes).max()) if len(self) else 0

    @property
    def skew(self) -> int:
        """By how many bytes the slab must be shifted so that every source is aligned like its destination."""
        return int((self.destination[0] - self.source[0]) % self.alignment) if len(self) else 0

    def check_bounds(self, source_bytes: int, destination_bytes: int) -> None:
        """Refuse a row that reads behind the slab, writes behind the destination, or writes where another row does."""
        for name, starts, limit in (("source", self.source, source_bytes), ("destination", self.destination, destination_bytes)):
            outside = (starts > limit) | (self.sizes > limit - starts)
            if outside.any():
                row = int(np.flatnonzero(outside)[0])
                _refuse(f"span {row} leaves its {name} of {limit} bytes", "plan from the geometry of these very buffers")
        _disjoint(self.destination, self.sizes)

    def rows(self, shift: int = 0) -> NDArray[np.void]:
        """The table as the kernel reads it, its sources moved up by `shift` bytes."""
        table = np.empty(len(self), SPAN_ROW)
        table["source"], table["destination"], table["bytes"] = self.source + shift, self.destination, self.sizes
        return table

    def coalesced(self) -> "SpanTable":
        """The same placement with neighbours joined that are adjacent in the slab and in the destination."""
        if not len(self):
            return self
        joined = (self.source[1:] == self.source[:-1] + self.sizes[:-1]) & (self.destination[1:] == self.destination[:-1] + self.sizes[:-1])
        if not joined.any():
            return self
        first = np.flatnonzero(np.concatenate(([True], ~joined)))
        return SpanTable.of(self.source[first], self.destination[first], np.add.reduceat(self.sizes, first), alignment=self.alignment)

    def tiled(self, tile_bytes: int) -> "SpanTable":
        """The same placement with no row longer than `tile_bytes`, so that a few long spans still occupy a whole GPU."""
        tiles = -(-self.sizes // tile_bytes)
        owner = np.repeat(np.arange(len(self)), tiles)
        within = (np.arange(len(owner)) - np.repeat(np.cumsum(tiles) - tiles, tiles)) * tile_bytes
        sizes = np.minimum(self.sizes[owner] - within, tile_bytes)
        return SpanTable.of(self.source[owner] + within, self.destination[owner] + within, sizes, alignment=self.alignment)


def _disjoint(starts: Offsets, sizes: Offsets) -> tuple[Offsets, Offsets]:
    """The intervals in order of their starts; an `InputError` when two of them share a byte."""
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], (starts + sizes)[order]
    clash = np.flatnonzero(starts[1:] < ends[:-1])
    if len(clash):
        first, second = int(order[clash[0]]), int(order[clash[0] + 1])
        _refuse(f"spans {first} and {second} both write byte {int(starts[clash[0] + 1])}", "give every destination block to one page only")
    return starts, ends


def _merged(starts: Offsets, ends: Offsets) -> tuple[Offsets, Offsets]:
    first = np.flatnonzero(np.concatenate(([True], starts[1:] != ends[:-1]))) if len(starts) else np.zeros(0, np.int64)
    last = np.concatenate((first[1:] - 1, [len(starts) - 1])) if len(starts) else first
    return starts[first], ends[last]


def prove_coverage(tables: Sequence[SpanTable], required_starts: ArrayLike, required_sizes: ArrayLike) -> int:
    """The number of bytes proven to be written exactly once, over all tables of a restore and the regions they owe.

    An `InputError` names the first byte that is written twice, left out, or written although nobody asked for it. An empty demand
    proves nothing and is refused.
    """
    starts, sizes = _offsets("required start", required_starts), _offsets("required bytes", required_sizes)
    if not len(starts):
        _refuse("no destination region was demanded, so nothing can be proven", "pass the pages that the restore owes")
    written = _disjoint(
        np.concatenate([t.destination for t in tables] or [starts[:0]]), np.concatenate([t.sizes for t in tables] or [sizes[:0]])
    )
    owed = _merged(*_disjoint(starts, sizes))
    got = _merged(*written)
    if len(got[0]) != len(owed[0]) or (got[0] != owed[0]).any() or (got[1] != owed[1]).any():
        byte, was = _first_difference(got, owed)
        _refuse(f"destination byte {byte} is {was}", "plan every page of the block table once, and nothing else")
    return int((owed[1] - owed[0]).sum())


def _first_difference(got: tuple[Offsets, Offsets], owed: tuple[Offsets, Offsets]) -> tuple[int, str]:
    """The lowest byte that exactly one of two merged, ordered interval lists holds."""
    edges_got, edges_owed = (np.stack(pair, axis=1).ravel() for pair in (got, owed))
    byte = int(np.setxor1d(edges_got, edges_owed)[0])
    inside_got = int(np.searchsorted(edges_got, byte, side="right")) % 2 == 1
    return byte, "written although no page lies there" if inside_got else "never written"
