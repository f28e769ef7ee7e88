"""The paged KV cache to be filled: which bytes of one device buffer are which page, and which blocks a context was given.

Every layer is a tensor of `capacity` pages; all layers of a group share the numbering of its blocks. Block 0 is padding and is never
restored to. A block table gives each logical page of a group its physical block, private to the request. (Format page 1.1, 4.3.)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from countermark.attestations.errors import InputError
from countermark.cuda_restore.geometry import MAX_SLOTS, Layout
from countermark.cuda_restore.wire import refusal

POISON: Final = 0xA5
"""What a destination is filled with before a restore that is to prove something, and when a restored prefix is thrown away."""

NULL_BLOCK: Final = 0
TENSOR_ALIGNMENT_BYTES: Final = 256

Offsets = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class BlockTable:
    """For each group, the physical block of each of its logical pages, in page order. No block stands twice, none is the null block."""

    groups: tuple[Offsets, ...]

    @classmethod
    def of(cls, groups: Sequence[ArrayLike]) -> Self:
        """A table of these blocks, one row of integers a group."""
        return cls(tuple(_blocks(number, row) for number, row in enumerate(groups)))

    @classmethod
    def shuffled(cls, counts: Sequence[int], capacities: Sequence[int], seed: int) -> Self:
        """`counts` blocks of each group, drawn without order from all but the null block; the same seed draws the same."""
        draw = np.random.default_rng(seed)
        return cls.of([1 + draw.permutation(capacity - 1)[:count] for count, capacity in zip(counts, capacities, strict=True)])

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of pages of each group."""
        return tuple(len(row) for row in self.groups)


@dataclass(frozen=True, slots=True)
class Tensor:
    """One layer's pages: the page in block `b` is the `bytes_per_page` bytes from `start + b * stride`, an offset into the buffer."""

    start: int
    stride: int
    bytes_per_page: int

    def page_starts(self, blocks: Offsets) -> Offsets:
        """The buffer offset of the page in each of `blocks`."""
        return self.start + blocks * self.stride


@dataclass(frozen=True, slots=True)
class Arena:
    """The tensors of all layers in one buffer of `size_bytes`, by group and layer; `capacities` counts blocks, the null block too."""

    layout: Layout
    capacities: tuple[int, ...]
    tensors: tuple[tuple[Tensor, ...], ...]
    size_bytes: int

    @classmethod
    def of(cls, layout: Layout, capacities: Sequence[int], *, page_alignment_bytes: int = 1) -> Self:
        """Lay the tensors out one after another; pages follow each other at multiples of `page_alignment_bytes`."""
        _check_capacities(layout, capacities)
        start, tensors = 0, []
        for group, capacity in zip(layout.groups, capacities, strict=True):
            row = []
            for layer in group.layers:
                tensor = Tensor(start, _round_up(layer.bytes_per_page, page_alignment_bytes), layer.bytes_per_page)
                start = _round_up(start + capacity * tensor.stride, TENSOR_ALIGNMENT_BYTES)
                row.append(tensor)
            tensors.append(tuple(row))
        return cls(layout, tuple(capacities), tuple(tensors), start)

    @classmethod
    def around(cls, layout: Layout, counts: Sequence[int]) -> Self:
        """The smallest arena for one context of these block counts."""
        return cls.of(layout, [count + 1 for count in counts])

    def check(self, table: BlockTable) -> None:
        """Refuse a table with another number of groups, or with a block that a group does not have."""
        if len(table.groups) != len(self.capacities):
            raise _refuse("", f"blocks for {len(table.groups)} groups, the arena has {len(self.capacities)}", "give blocks for each group")
        for number, (row, capacity) in enumerate(zip(table.groups, self.capacities, strict=True)):
            if int(row.max()) >= capacity:
                raise _refuse(f"/{number}", f"block {int(row.max())} of a group with {capacity} blocks", "give blocks that the group has")

    def pages(self, table: BlockTable) -> tuple[Offsets, Offsets]:
        """Where every page that `table` names lies in the buffer, and its bytes: by group, layer and logical page."""
        self.check(table)
        rows = [(tensor, blocks) for tensors, blocks in zip(self.tensors, table.groups, strict=True) for tensor in tensors]
        starts = np.concatenate([tensor.page_starts(blocks) for tensor, blocks in rows])
        return starts, np.concatenate([np.full(len(blocks), tensor.bytes_per_page) for tensor, blocks in rows])

    def smallest_page(self) -> int:
        """The bytes of the smallest page of any layer."""
        return min(tensor.bytes_per_page for tensor in self._all_tensors())

    def _all_tensors(self) -> Iterator[Tensor]:
        return (tensor for row in self.tensors for tensor in row)


def _blocks(number: int, row: ArrayLike) -> Offsets:
    blocks = np.asarray(row)
    if blocks.ndim != 1 or not blocks.size or blocks.dtype.kind not in "iu":
        raise _refuse(f"/{number}", f"group {number} has no list of block numbers", "give the block of each page")
    if int(blocks.min()) <= NULL_BLOCK or int(blocks.max()) >= MAX_SLOTS:
        raise _refuse(f"/{number}", f"a block of group {number} is outside 1 … {MAX_SLOTS - 1}", "allocate private blocks; 0 is padding")
    if len(np.unique(blocks)) != len(blocks):
        raise _refuse(f"/{number}", f"group {number} is given a block twice", "give every page a block of its own")
    table = blocks.astype(np.int64)
    table.flags.writeable = False
    return table


def _check_capacities(layout: Layout, capacities: Sequence[int]) -> None:
    if len(capacities) != len(layout.groups) or not all(1 < capacity <= MAX_SLOTS for capacity in capacities):
        raise _refuse("", f"capacities {list(capacities)} for {len(layout.groups)} groups", "give each group at least two blocks")


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _refuse(pointer: str, message: str, fix: str) -> InputError:
    return refusal("blocks", pointer, message, fix)
