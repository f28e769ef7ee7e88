"""What must lie in the cache after a restore, worked out a second time from the format page and the block table alone.

The engine cuts the stream into spans, proves them and places them. If this module used any of that, one mistake would hide in both, so
it imports neither the plan, nor the spans, nor the stream layout (import-linter holds it to that). It walks the stream from front to
back, page by page, and finds each page's home by its block: two independent ways to the same bytes.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError
from countermark.attestations.jsontext import loads
from countermark.cuda_restore.arena import Arena, BlockTable
from countermark.cuda_restore.geometry import Layout
from countermark.cuda_restore.manifest import Manifest, ObjectDescriptor
from countermark.cuda_restore.page_digest import DigestKey, Digests, page_digests, page_table
from countermark.cuda_restore.store import Folder
from countermark.cuda_restore.wire import Fields, refusal

Bytes = NDArray[np.uint8]

_MAGIC: Final = b"SPHP1\0"
_LENGTH_END: Final = 10
_SCHEMA: Final = "sparkcache-hybrid-pages/v1"


@dataclass(frozen=True, slots=True)
class Page:
    """One logical page of one layer, counted in stream order: group, then layer, then page."""

    group: int
    layer: str
    page: int

    def __str__(self) -> str:
        return f"group {self.group}, layer {self.layer}, page {self.page}"


def pages_in_order(layout: Layout, counts: tuple[int, ...]) -> list[Page]:
    """Every page of a context with these block counts, in stream order."""
    return [
        Page(number, layer.name, page)
        for number, (group, count) in enumerate(zip(layout.groups, counts, strict=True))
        for layer in group.layers
        for page in range(count)
    ]


def page_homes(arena: Arena, blocks: BlockTable) -> NDArray[np.void]:
    """Where each page must lie in the arena's buffer, in stream order: its tensor's start plus its block times the stride."""
    starts, sizes = [], []
    for tensors, row in zip(arena.tensors, blocks.groups, strict=True):
        for tensor in tensors:
            for block in row.tolist():
                starts.append(tensor.start + block * tensor.stride)
                sizes.append(tensor.bytes_per_page)
    return page_table(np.array(starts, np.int64), np.array(sizes, np.int64))


def expected_digests(manifest: Manifest, chunks: Folder, layout: Layout, key: DigestKey) -> Digests:
    """The digest under `key` of every stored page, in stream order.

    Reads and authenticates every object once more, and the stream as a whole against the manifest. Holds one object at a time. Raises
    `InputError` for bytes that are not the promised ones, or that are not the pages of this layout.
    """
    return np.concatenate([page_digests(data, pages, key) for data, pages in _stored_pages(manifest, chunks, layout)])


def differing_pages(expected: Digests, found: Digests) -> list[int]:
    """The numbers, in stream order, of the pages that do not hold what was stored. `InputError` when nothing was compared."""
    if not len(expected) or expected.shape != found.shape:
        message = f"{len(found)} pages were read back where {len(expected)} are stored"
        raise InputError(Code.NOTHING_EVALUATED, message, fix="read back every page of the block table")
    return np.flatnonzero((expected != found).any(axis=1)).tolist()


def _stored_pages(manifest: Manifest, chunks: Folder, layout: Layout) -> Iterator[tuple[Bytes, NDArray[np.void]]]:
    """The pages as they come: with each object some bytes, and the table of the whole pages at their front."""
    stream = hashlib.sha256()
    data, sizes = b"", np.empty(0, np.int64)
    for descriptor in manifest.objects:
        more = _authenticated(chunks, descriptor)
        stream.update(more)
        if descriptor.index == 0:
            header_bytes, sizes = _header(more, layout, descriptor.file_name)
            more = more[header_bytes:]
        data += more
        ends = np.cumsum(sizes)
        whole = int(np.searchsorted(ends, len(data), side="right"))
        used = int(ends[whole - 1]) if whole else 0
        yield np.frombuffer(data, np.uint8), page_table(ends[:whole] - sizes[:whole], sizes[:whole])
        data, sizes = data[used:], sizes[whole:]
    if data or len(sizes) or stream.hexdigest() != manifest.stream.hex:
        message = f"{len(data)} bytes are no page, {len(sizes)} pages are missing, the stream has SHA-256 {stream.hexdigest()}"
        raise refusal("stream", "", message, "discard the snapshot and recompute the prefix", Code.BAD_DIGEST)


def _authenticated(chunks: Folder, descriptor: ObjectDescriptor) -> bytes:
    with chunks.open(descriptor.file_name, descriptor.size_bytes) as file:
        data = file.read_all()
    descriptor.authenticate(hashlib.sha256(data).hexdigest())
    return data


def _header(data: bytes, layout: Layout, source: str) -> tuple[int, NDArray[np.int64]]:
    """The bytes of the header at the front of the first object, and the size of every page that must follow it."""
    end = _LENGTH_END + int.from_bytes(data[len(_MAGIC) : _LENGTH_END], "little")
    if not data.startswith(_MAGIC) or end > len(data):
        raise refusal(source, "", "the stream does not begin with a whole header", "discard the snapshot and recompute the prefix")
    fields = Fields.of(loads(data[_LENGTH_END:end], source), source).exact(("schema", "layout_sha256", "block_counts"))
    fields.constant("schema", _SCHEMA)
    fields.constant("layout_sha256", layout.sha256)
    counts = fields.integers("block_counts")
    if len(counts) != len(layout.groups) or min(counts) < 1:
        raise fields.refuse("block_counts", f"{list(counts)} are no blocks of {len(layout.groups)} groups", "recompute the prefix")
    sizes = [
        layer.bytes_per_page for group, count in zip(layout.groups, counts, strict=True) for layer in group.layers for _ in range(count)
    ]
    return end, np.array(sizes, np.int64)
