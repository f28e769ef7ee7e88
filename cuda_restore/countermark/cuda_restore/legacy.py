"""Manifests of older and of differential snapshots, read as strictly as the current one but only to be described.

The engine restores whole page snapshots. These two stand in stores beside them: the flat first version, one file per 256 tokens; and
the page delta, which embeds the root of its base. (Format page 2.6, 2.9.)
"""

import hashlib
from dataclasses import dataclass
from typing import Self

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError
from countermark.cuda_restore.geometry import check_tokens
from countermark.cuda_restore.identity import Identity, PublicationSchema
from countermark.cuda_restore.manifest import FORMAT_ABI, SCHEMA, Manifest, ObjectDescriptor, check_ranges, check_self_digest
from countermark.cuda_restore.wire import Fields, canonical, placed, refusal

FLAT = "flat-v1"
DELTA_SCHEMA = "sparkcache-page-delta-manifest/v2"
DELTA_DEPTH_MAX = 2

_FLAT_KEYS = ("format_abi", "identity", "context_digest", "committed_tokens", "chunks")
_DELTA_KEYS = (
    "schema",
    "format_abi",
    "identity",
    "context_digest",
    "committed_tokens",
    "base_context_digest",
    "base_committed_tokens",
    "base_root",
    "base_root_sha256",
    "layout_sha256",
    "base_block_counts",
    "result_block_counts",
    "metadata_sha256",
    "delta_encoded_bytes",
    "delta_object_bytes",
    "delta_objects",
    "delta_sha256",
    "logical_chunk_tokens",
)


@dataclass(frozen=True, slots=True)
class FlatChunk:
    """One file of the flat layout: the rows of the tokens from `logical_start` to `logical_end`."""

    digest: Digest
    size_bytes: int
    logical_start: int
    logical_end: int

    @classmethod
    def parse(cls, fields: Fields) -> Self:
        """Read one element of `chunks`."""
        fields.exact(("sha256", "bytes", "logical_start", "logical_end"))
        size = fields.integer("bytes")
        if size < 1:
            raise fields.refuse("bytes", f"a chunk of {size} bytes", "publish the chunk again")
        return cls(fields.digest("sha256", DigestKind.OBJECT), size, fields.integer("logical_start"), fields.integer("logical_end"))


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatManifest:
    """The first manifest: chunks of 256 tokens from 0, in order; the last may be shorter."""

    identity: Identity
    context_digest: str
    committed_tokens: int
    chunks: tuple[FlatChunk, ...]

    def __post_init__(self) -> None:
        if not self.chunks:
            raise _refuse("/chunks", "there are no chunks", "list every chunk of the context")
        start = 0
        for number, chunk in enumerate(self.chunks):
            if chunk.logical_start != start:
                message = f"logical_start is {chunk.logical_start}; the chunks before end at {start}"
                raise _refuse(f"/chunks/{number}/logical_start", message, "let every chunk begin where the one before ends")
            tokens, whole = chunk.logical_end - start, self.identity.chunk_tokens
            last = number == len(self.chunks) - 1
            if not (1 <= tokens <= whole if last else tokens == whole):
                raise _refuse(f"/chunks/{number}/logical_end", f"the chunk holds {tokens} tokens", f"let every chunk hold {whole} tokens")
            start = chunk.logical_end
        if start != self.committed_tokens:
            raise _refuse("/committed_tokens", f"the chunks end at {start}, not at {self.committed_tokens}", "list every chunk")

    @classmethod
    def parse(cls, fields: Fields) -> Self:
        """Read a flat manifest, which names no schema."""
        fields.exact(_FLAT_KEYS).constant("format_abi", FORMAT_ABI)
        identity = Identity.parse(fields.child("identity"))
        chunks = tuple(map(FlatChunk.parse, fields.children("chunks")))
        with placed(fields.source, fields.pointer):
            return cls(
                identity=identity,
                context_digest=fields.sha256("context_digest"),
                committed_tokens=fields.integer("committed_tokens"),
                chunks=chunks,
            )

    @property
    def encoded_bytes(self) -> int:
        """The bytes of all chunk files."""
        return sum(chunk.size_bytes for chunk in self.chunks)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaManifest:
    """Pages that changed since a base context, whose whole root is embedded; at most two deltas lie on one snapshot."""

    identity: Identity
    context_digest: str
    committed_tokens: int
    base: "Manifest | DeltaManifest"
    layout_sha256: str
    base_block_counts: tuple[int, ...]
    result_block_counts: tuple[int, ...]
    encoded_bytes: int
    object_bytes: int
    objects: tuple[ObjectDescriptor, ...]
    stream: Digest

    def __post_init__(self) -> None:
        if self.identity.publication_schema is not PublicationSchema.PAGE_TAIL_COW_V1:
            message = f"publication_schema is {str(self.identity.publication_schema)!r}"
            raise _refuse("/identity/publication_schema", message, "deltas are published under page-tail-cow-v1")
        if self.base.identity != self.identity:
            raise _refuse("/base_root/identity", "the base has another identity", "discard the delta and recompute the prefix")
        check_tokens(self.committed_tokens, self.identity.chunk_tokens, "delta", "/committed_tokens")
        if not self.base.committed_tokens < self.committed_tokens:
            message = f"{self.committed_tokens} tokens do not go beyond the base's {self.base.committed_tokens}"
            raise _refuse("/committed_tokens", message, "publish deltas of longer contexts only")
        if self.depth > DELTA_DEPTH_MAX:
            raise _refuse("/base_root", f"{self.depth} deltas lie on each other", "compact the chain into a whole snapshot")
        self._check_block_counts()
        check_ranges(self.objects, self.object_bytes, self.encoded_bytes, "delta")

    def _check_block_counts(self) -> None:
        if len(self.base_block_counts) != len(self.result_block_counts):
            raise _refuse("/result_block_counts", "base and result have different groups", "count the same groups in both")
        for name, counts in (("base_block_counts", self.base_block_counts), ("result_block_counts", self.result_block_counts)):
            if not counts or min(counts) < 1:
                raise _refuse(f"/{name}", f"{list(counts)} leaves a group without blocks", "count at least one block of every group")
        if isinstance(self.base, DeltaManifest) and self.base.result_block_counts != self.base_block_counts:
            raise _refuse("/base_block_counts", "the base ended with other counts", "discard the delta and recompute the prefix")

    @classmethod
    def parse(cls, fields: Fields) -> Self:
        """Read a page delta manifest of version 2, and the roots below it."""
        fields.exact(_DELTA_KEYS).constant("schema", DELTA_SCHEMA)
        fields.constant("format_abi", FORMAT_ABI)
        identity = Identity.parse(fields.child("identity"))
        fields.constant("logical_chunk_tokens", identity.chunk_tokens)
        base = _base_of(fields)
        check_self_digest(fields)
        with placed(fields.source, fields.pointer):
            return cls(
                identity=identity,
                context_digest=fields.sha256("context_digest"),
                committed_tokens=fields.integer("committed_tokens"),
                base=base,
                layout_sha256=fields.sha256("layout_sha256"),
                base_block_counts=fields.integers("base_block_counts"),
                result_block_counts=fields.integers("result_block_counts"),
                encoded_bytes=fields.integer("delta_encoded_bytes"),
                object_bytes=fields.integer("delta_object_bytes"),
                objects=ObjectDescriptor.parse_all(fields, "delta_objects"),
                stream=fields.digest("delta_sha256", DigestKind.STREAM),
            )

    @property
    def depth(self) -> int:
        """How many deltas lie on the whole snapshot."""
        return 1 + (self.base.depth if isinstance(self.base, DeltaManifest) else 0)


def _base_of(fields: Fields) -> Manifest | DeltaManifest:
    """The embedded root, which must be what the three members beside it say."""
    root = fields.child("base_root")
    found = hashlib.sha256(canonical(dict(root.members))).hexdigest()
    if found != fields.sha256("base_root_sha256"):
        message = f"base_root has SHA-256 {found}"
        raise fields.refuse("base_root_sha256", message, "discard the delta and recompute the prefix", Code.BAD_DIGEST)
    delta = root.members.get("schema") == DELTA_SCHEMA
    base = DeltaManifest.parse(root) if delta else Manifest.parse_fields(root)
    if fields.sha256("base_context_digest") != base.context_digest:
        raise fields.refuse("base_context_digest", f"base_root is of context {base.context_digest}", "name the context of base_root")
    if fields.integer("base_committed_tokens") != base.committed_tokens:
        raise fields.refuse("base_committed_tokens", f"base_root has {base.committed_tokens} tokens", "write the tokens of base_root")
    return base


def parse_any(fields: Fields) -> Manifest | FlatManifest | DeltaManifest:
    """Read a manifest of any form that can be described. `InputError` names the schema of one that cannot."""
    schema = fields.members.get("schema")
    if schema == SCHEMA:
        return Manifest.parse_fields(fields)
    if schema == DELTA_SCHEMA:
        return DeltaManifest.parse(fields)
    if schema is None and "chunks" in fields.members:
        return FlatManifest.parse(fields)
    raise fields.refuse(
        "schema", f"the schema {schema!r} is not read here", f"give {SCHEMA}, {DELTA_SCHEMA} or a flat manifest", Code.UNKNOWN_NAME
    )


def _refuse(pointer: str, message: str, fix: str) -> InputError:
    return refusal("legacy manifest", pointer, message, fix)
