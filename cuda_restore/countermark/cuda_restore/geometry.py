"""How a rank's cache is cut into groups, layers and pages, and how many pages a context fills.

A *group* shares one block size; each of its *layers* is one tensor of pages; a *page* holds `block_size` tokens of one layer (or one
recurrent state). The layout digest is the SHA-256 of the canonical JSON of the groups and stands in the stream header; the page
counts stand beside it. (Format page 2.8, 2.10, 3.2.)
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import prod
from typing import Self

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError
from countermark.attestations.jsontext import loads
from countermark.attestations.located import JsonValue
from countermark.cuda_restore.identity import Identity
from countermark.cuda_restore.wire import Fields, canonical, placed, refusal

MAX_DESTINATIONS = 1024
MAX_SLOTS = 2**24

DTYPE_BYTES = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "float16": 2,
    "bfloat16": 2,
    "int16": 2,
    "float32": 4,
    "int32": 4,
    "float64": 8,
    "int64": 8,
}


class ReusePolicy(StrEnum):
    """Which pages of a group a later request reuses."""

    FULL = "full"
    SLIDING = "sliding"
    RECURRENT_ALIGN = "recurrent_align"


@dataclass(frozen=True, slots=True)
class Layer:
    """One tensor of pages. `dtype` may carry the prefix `torch.`; the shape is that of one page."""

    name: str
    dtype: str
    page_shape: tuple[int, ...]
    bytes_per_page: int

    def __post_init__(self) -> None:
        width = DTYPE_BYTES.get(self.dtype.removeprefix("torch."))
        if not self.name:
            raise _refuse("/name", "a layer has no name", "name it as the server does")
        if width is None:
            raise _refuse("/dtype", f"{self.dtype!r} is no known element type", f"use {', '.join(DTYPE_BYTES)}", Code.UNKNOWN_NAME)
        if not self.page_shape or min(self.page_shape) < 1:
            raise _refuse("/page_shape", f"a page of shape {list(self.page_shape)} holds nothing", "write every extent from 1")
        if self.bytes_per_page != width * prod(self.page_shape):
            message = f"bytes_per_page is {self.bytes_per_page}; {self.dtype} {list(self.page_shape)} is {width * prod(self.page_shape)}"
            raise _refuse("/bytes_per_page", message, "make the shape and the size of a page agree")

    @classmethod
    def parse(cls, fields: Fields) -> Self:
        """Read one layer of a layout document."""
        fields.exact(("name", "dtype", "page_shape", "bytes_per_page"))
        with placed(fields.source, fields.pointer):
            return cls(fields.text("name"), fields.text("dtype"), fields.integers("page_shape"), fields.integer("bytes_per_page"))

    def wire(self) -> dict[str, JsonValue]:
        """The layer as the layout digest sees it."""
        return {"name": self.name, "dtype": self.dtype, "page_shape": list(self.page_shape), "bytes_per_page": self.bytes_per_page}


@dataclass(frozen=True, slots=True)
class Group:
    """Layers that share one block size, sorted by name. Only a sliding group has a window, in tokens."""

    block_size: int
    layers: tuple[Layer, ...]
    reuse_policy: ReusePolicy = ReusePolicy.FULL
    reuse_window_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.block_size < 1:
            raise _refuse("/block_size", f"block_size is {self.block_size}; it counts tokens from 1", "write the tokens of one block")
        if not self.layers:
            raise _refuse("/layers", "a group has no layers", "leave the group out")
        for number, (one, two) in enumerate(pairwise(self.layers), start=1):
            if not one.name < two.name:
                message = f"layer {two.name!r} follows {one.name!r}; layers stand sorted by name, each once"
                raise _refuse(f"/layers/{number}/name", message, "sort the layers by name")
        sliding = self.reuse_policy is ReusePolicy.SLIDING
        if sliding != (self.reuse_window_tokens is not None) or (self.reuse_window_tokens is not None and self.reuse_window_tokens < 1):
            message = f"a {self.reuse_policy} group has the window {self.reuse_window_tokens}"
            raise _refuse("/reuse_window_tokens", message, "write a positive window for a sliding group, null for the others")

    @classmethod
    def parse(cls, fields: Fields) -> Self:
        """Read one group of a layout document."""
        fields.exact(("block_size", "layers", "reuse_policy", "reuse_window_tokens"))
        window = None if fields.members["reuse_window_tokens"] is None else fields.integer("reuse_window_tokens")
        layers = tuple(Layer.parse(layer) for layer in fields.children("layers"))
        policy = fields.choice("reuse_policy", ReusePolicy)
        with placed(fields.source, fields.pointer):
            return cls(fields.integer("block_size"), layers, policy, window)

    def wire(self) -> dict[str, JsonValue]:
        """The group as the layout digest sees it."""
        return {
            "block_size": self.block_size,
            "layers": [layer.wire() for layer in self.layers],
            "reuse_policy": str(self.reuse_policy),
            "reuse_window_tokens": self.reuse_window_tokens,
        }

    @property
    def bytes_per_block(self) -> int:
        """The bytes of one page of every layer."""
        return sum(layer.bytes_per_page for layer in self.layers)


@dataclass(frozen=True, slots=True)
class Layout:
    """The groups of a cache in stream order."""

    groups: tuple[Group, ...]

    def __post_init__(self) -> None:
        layers = sum(len(group.layers) for group in self.groups)
        if not 1 <= layers <= MAX_DESTINATIONS:
            raise _refuse("", f"a layout has {layers} layers; 1 to {MAX_DESTINATIONS} can be placed", "describe the groups of one rank")

    @classmethod
    def parse(cls, data: bytes, source: str) -> Self:
        """Read a layout document: the JSON list of groups."""
        value = loads(data, source)
        if not isinstance(value, list):
            raise refusal(source, "", "a layout is a list of groups", "write the groups in a JSON list")
        groups = tuple(Group.parse(Fields.of(group, source, f"/{number}")) for number, group in enumerate(value))
        with placed(source):
            return cls(groups)

    def encode(self) -> bytes:
        """The canonical JSON of the groups; its SHA-256 is the layout digest."""
        return canonical([group.wire() for group in self.groups])

    @property
    def sha256(self) -> str:
        """The layout digest, 64 hex digits."""
        return hashlib.sha256(self.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Geometry:
    """One context in one rank's cache: the layout, and how many pages each group holds for `committed_tokens`.

    The identity gives the rank grid. A layout does not say whether a group is replicated under DCP, so a full group may count its
    blocks over all tokens or over this rank's share.
    """

    identity: Identity
    committed_tokens: int
    layout: Layout
    block_counts: tuple[int, ...]

    def __post_init__(self) -> None:
        check_tokens(self.committed_tokens, self.identity.chunk_tokens, "geometry", "/committed_tokens")
        if len(self.block_counts) != len(self.layout.groups):
            message = f"{len(self.block_counts)} block counts for {len(self.layout.groups)} groups"
            raise _refuse("/block_counts", message, "count the blocks of each group once", subject="geometry")
        for number, (group, count) in enumerate(zip(self.layout.groups, self.block_counts, strict=True)):
            _check_block_size(number, group, self.identity)
            _check_block_count(number, count, self.expected_blocks(number))
        if sum(self.block_counts) > MAX_SLOTS:
            message = f"{sum(self.block_counts)} blocks; at most {MAX_SLOTS} can be placed"
            raise _refuse("/block_counts", message, "restore a shorter context", subject="geometry")

    def expected_blocks(self, group: int) -> range | tuple[int, ...]:
        """The block counts that `group` may have for this many tokens."""
        described = self.layout.groups[group]
        whole = _blocks(self.committed_tokens, described.block_size)
        if described.reuse_policy is ReusePolicy.RECURRENT_ALIGN:
            return range(1, MAX_SLOTS + 1)
        if described.reuse_policy is ReusePolicy.SLIDING:
            return range(1, whole + 1)
        return (whole, _blocks(self.committed_tokens, described.block_size * self.identity.dcp_degree))

    @property
    def payload_bytes(self) -> int:
        """The bytes of all pages, without the stream header."""
        counts = zip(self.layout.groups, self.block_counts, strict=True)
        return sum(group.bytes_per_block * count for group, count in counts)

    @property
    def pages(self) -> int:
        """The pages of all layers."""
        counts = zip(self.layout.groups, self.block_counts, strict=True)
        return sum(len(group.layers) * count for group, count in counts)


def default_block_counts(layout: Layout, committed_tokens: int, shard_counts: Sequence[int] | None = None) -> tuple[int, ...]:
    """The pages that each group keeps of `committed_tokens`: all, those of the window, or the one last state.

    `shard_counts` is the number of DCP ranks that share each group's tokens: 1, also for a replicated group, when left out.
    """
    shards = shard_counts or (1,) * len(layout.groups)
    return tuple(_kept_blocks(group, committed_tokens, count) for group, count in zip(layout.groups, shards, strict=True))


def check_tokens(tokens: int, chunk_tokens: int, source: str, pointer: str) -> None:
    """Check that `tokens` is a boundary at which a context may be published: a positive multiple of the chunk."""
    if tokens < 1 or tokens % chunk_tokens:
        raise refusal(source, pointer, f"{tokens} tokens are not a positive multiple of {chunk_tokens}", "publish at a chunk boundary")


def _kept_blocks(group: Group, tokens: int, shards: int) -> int:
    whole = _blocks(tokens, group.block_size * shards)
    if group.reuse_policy is ReusePolicy.RECURRENT_ALIGN:
        return 1
    if group.reuse_window_tokens is not None:
        return min(whole, _blocks(group.reuse_window_tokens, group.block_size * shards) + 1)
    return whole


def _blocks(tokens: int, tokens_per_block: int) -> int:
    return -(-tokens // tokens_per_block)


def _check_block_size(number: int, group: Group, identity: Identity) -> None:
    pointer, chunk = f"/{number}/block_size", identity.chunk_tokens
    if group.block_size % chunk and chunk % group.block_size:
        raise _refuse(pointer, f"a block of {group.block_size} and a chunk of {chunk} tokens do not divide", "choose a size that does")
    if group.block_size % identity.interleave:
        message = f"a block of {group.block_size} tokens is not a multiple of the interleave {identity.interleave}"
        raise _refuse(pointer, message, "choose an interleave that divides the block")


def _check_block_count(number: int, count: int, expected: range | tuple[int, ...]) -> None:
    if count not in expected:
        wanted = f"{expected.start} to {expected.stop - 1}" if isinstance(expected, range) else " or ".join(map(str, sorted(set(expected))))
        message = f"group {number} has {count} blocks where {wanted} hold these tokens"
        raise _refuse(f"/block_counts/{number}", message, "check the layout, the tokens and the DCP degree", subject="geometry")


def _refuse(pointer: str, message: str, fix: str, code: Code = Code.SCHEMA_INVALID, subject: str = "layout") -> InputError:
    return refusal(subject, pointer, message, fix, code)
