"""The encoded page stream `SPHP1`: a small header, then every page of every layer.

    offset  bytes  content
    0       6      magic "SPHP1" and a zero byte
    6       4      u32 LE, header length H
    10      H      JSON with sorted keys: schema, layout_sha256, block_counts
    10+H    ...    for each group in order, for each layer by name: block_count pages of bytes_per_page

The header does not describe the layout, it names its digest: a reader that does not know the layout cannot place a page. The header is
parsed only after the object that holds it was authenticated. (Format page 2.8.)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError
from countermark.attestations.jsontext import loads
from countermark.cuda_restore.geometry import Geometry, Layout
from countermark.cuda_restore.manifest import Manifest
from countermark.cuda_restore.wire import Fields, canonical, placed, refusal

MAGIC = b"SPHP1\0"
DELTA_MAGIC = b"SPHD1\0"
HEADER_SCHEMA = "sparkcache-hybrid-pages/v1"
PREFIX_BYTES = 10
HEADER_JSON_BYTES_MAX = 1024 * 1024
HEAD_BYTES_MAX = PREFIX_BYTES + HEADER_JSON_BYTES_MAX

_KEYS = ("block_counts", "layout_sha256", "schema")


@dataclass(frozen=True, slots=True)
class StreamHeader:
    """What the head of a stream says: which layout, and how many blocks of each of its groups."""

    layout_sha256: str
    block_counts: tuple[int, ...]

    def encode(self) -> bytes:
        """The head of the stream, magic and length included."""
        text = canonical({"schema": HEADER_SCHEMA, "layout_sha256": self.layout_sha256, "block_counts": list(self.block_counts)})
        return MAGIC + len(text).to_bytes(4, "little") + text

    @classmethod
    def decode(cls, head: bytes, source: str) -> tuple[Self, int]:
        """The header at the front of `head`, and its bytes up to the first page.

        `head` is the first object, or at least its first `HEAD_BYTES_MAX` bytes. Keys must stand sorted; the format says nothing of spaces.
        """
        text = _header_text(head, source)
        fields = Fields.of(loads(text, source), source).exact(_KEYS)
        if list(fields.members) != sorted(fields.members):
            raise refusal(source, "", "the keys of the header are not sorted", "write the header with sorted keys")
        fields.constant("schema", HEADER_SCHEMA)
        counts = fields.integers("block_counts")
        for number, count in enumerate(counts):
            if count < 1:
                raise refusal(source, f"/block_counts/{number}", f"a group of {count} blocks", "store at least one block of every group")
        return cls(fields.sha256("layout_sha256"), counts), PREFIX_BYTES + len(text)


@dataclass(frozen=True, slots=True)
class PageRun:
    """The pages of one layer, which lie one after another from `start`, an offset into the stream. `layer` counts within `group`."""

    group: int
    layer: int
    start: int
    pages: int
    bytes_per_page: int

    @property
    def end(self) -> int:
        """The offset behind the last page."""
        return self.start + self.pages * self.bytes_per_page

    def page_start(self, page: int) -> int:
        """The stream offset of one page."""
        if not 0 <= page < self.pages:
            raise InputError(Code.SCHEMA_INVALID, f"page {page} of a layer of {self.pages} pages", fix="count pages from 0")
        return self.start + page * self.bytes_per_page


@dataclass(frozen=True, slots=True)
class StreamLayout:
    """Where each (group, layer, page) lies in an encoded stream. The runs cover the stream behind the header exactly, in order."""

    geometry: Geometry
    header_bytes: int
    runs: tuple[PageRun, ...]

    @classmethod
    def of(cls, geometry: Geometry, header_bytes: int | None = None) -> Self:
        """The layout of a stream whose header takes `header_bytes`; our own writer's when left out."""
        start = len(header_of(geometry).encode()) if header_bytes is None else header_bytes
        return cls(geometry, start, tuple(_runs(geometry, start)))

    @classmethod
    def read(cls, head: bytes, manifest: Manifest, layout: Layout, source: str) -> Self:
        """What an authenticated first object says, checked against the manifest and the layout of the cache to be filled."""
        header, header_bytes = StreamHeader.decode(head, source)
        if header.layout_sha256 != layout.sha256:
            message = f"the stream was written for layout {header.layout_sha256}, the cache has {layout.sha256}"
            raise refusal(source, "/layout_sha256", message, "recompute the prefix, or give the layout it was written for")
        with placed(source):
            geometry = Geometry(manifest.identity, manifest.committed_tokens, layout, header.block_counts)
        found = cls.of(geometry, header_bytes)
        if found.encoded_bytes != manifest.encoded_bytes:
            message = f"header and pages take {found.encoded_bytes} bytes, the manifest has {manifest.encoded_bytes}"
            raise refusal(source, "/block_counts", message, "discard the snapshot and recompute the prefix")
        return found

    @property
    def encoded_bytes(self) -> int:
        """The bytes of the whole stream, header included."""
        return self.header_bytes + self.geometry.payload_bytes

    def run(self, group: int, layer: int) -> PageRun:
        """The pages of one layer."""
        before = sum(len(earlier.layers) for earlier in self.geometry.layout.groups[:group])
        return self.runs[before + layer]

    def between(self, start: int, end: int) -> Iterator[tuple[PageRun, int, int]]:
        """The runs that the stream's bytes from `start` to `end` touch, each with the part of that range that is its own."""
        for run in self.runs:
            first, last = max(run.start, start), min(run.end, end)
            if first < last:
                yield run, first, last

    def slot_shift(self, alignment_bytes: int) -> int:
        """Where in an aligned slot an object should begin so that pages of aligned size start aligned.

        The header has any length, so pages seldom lie aligned in the stream. It is the same shift for every object, as long as object
        and page sizes are multiples of the alignment.
        """
        return -self.header_bytes % alignment_bytes


def header_of(geometry: Geometry) -> StreamHeader:
    """The header of a context's stream."""
    return StreamHeader(geometry.layout.sha256, geometry.block_counts)


def _runs(geometry: Geometry, start: int) -> Iterator[PageRun]:
    for group, (described, count) in enumerate(zip(geometry.layout.groups, geometry.block_counts, strict=True)):
        for layer, tensor in enumerate(described.layers):
            yield PageRun(group, layer, start, count, tensor.bytes_per_page)
            start += count * tensor.bytes_per_page


def _header_text(head: bytes, source: str) -> bytes:
    """The JSON bytes of the header, after the frame around them was checked."""
    if head.startswith(DELTA_MAGIC):
        raise refusal(source, "", "this is a delta, which holds only pages that changed", "restore a whole snapshot", Code.UNKNOWN_NAME)
    if not head.startswith(MAGIC):
        raise refusal(source, "", f"the stream begins with {head[:6]!r}, not {MAGIC!r}", "give a page stream")
    length = int.from_bytes(head[len(MAGIC) : PREFIX_BYTES], "little")
    if len(head) < PREFIX_BYTES or length > HEADER_JSON_BYTES_MAX or PREFIX_BYTES + length > len(head):
        held = max(len(head) - PREFIX_BYTES, 0)
        message = f"the header takes {length} bytes; the first object holds {held} of it, {HEADER_JSON_BYTES_MAX} are allowed"
        raise refusal(source, "", message, "publish with objects that hold the whole header", Code.TOO_LARGE)
    return head[PREFIX_BYTES : PREFIX_BYTES + length]
