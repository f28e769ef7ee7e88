"""What a manifest alone says: identity, geometry, objects and the arithmetic between them. No object is opened."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.jsontext import loads
from countermark.attestations.located import JsonValue
from countermark.cuda_restore.geometry import Geometry, Layout, default_block_counts
from countermark.cuda_restore.legacy import DELTA_SCHEMA, FLAT, DeltaManifest, FlatManifest, parse_any
from countermark.cuda_restore.manifest import MANIFEST_BYTES_MAX, SCHEMA, Manifest
from countermark.cuda_restore.stream import StreamLayout
from countermark.cuda_restore.wire import Fields


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """One number recomputed from others: what it is, how, the result, and what the manifest states."""

    name: str
    rule: str
    computed: int
    stated: int

    @property
    def holds(self) -> bool:
        """Whether the manifest states what the rule gives."""
        return self.computed == self.stated

    def to_json(self) -> dict[str, JsonValue]:
        """For `-o json`."""
        return {"name": self.name, "rule": self.rule, "computed": self.computed, "stated": self.stated, "holds": self.holds}


@dataclass(frozen=True, slots=True)
class Inspection:
    """The description of one manifest file. Sizes are bytes; `geometry` is empty when no layout was given."""

    schema: str
    file: Digest
    manifest: Manifest | FlatManifest | DeltaManifest
    object_sizes: tuple[int, ...]
    arithmetic: tuple[Arithmetic, ...]
    geometry: dict[str, JsonValue]

    @classmethod
    def of(cls, data: bytes, source: str, layout: Layout | None = None) -> Self:
        """Describe the manifest in `data`. Raises `InputError` as strictly as a restore would."""
        found = parse_any(Fields.of(loads(data, source, limit=MANIFEST_BYTES_MAX), source))
        file = Digest.of(DigestKind.FILE, data)
        if isinstance(found, FlatManifest):
            return cls(FLAT, file, found, tuple(chunk.size_bytes for chunk in found.chunks), _flat_arithmetic(found), {})
        sizes = tuple(descriptor.size_bytes for descriptor in found.objects)
        if isinstance(found, DeltaManifest):
            return cls(DELTA_SCHEMA, file, found, sizes, _object_arithmetic(found.encoded_bytes, found.object_bytes, sizes), {})
        numbers = (*_chunk_arithmetic(found), *_object_arithmetic(found.encoded_bytes, found.object_bytes, sizes))
        geometry, more = _geometry(found, layout) if layout else ({}, ())
        return cls(SCHEMA, file, found, sizes, numbers + more, geometry)

    def to_json(self) -> dict[str, JsonValue]:
        """For `-o json`; the text output prints the same members in this order."""
        found = self.manifest
        identity = found.identity
        return {
            "schema": self.schema,
            "file": str(self.file),
            "restorable": isinstance(found, Manifest),
            "context_digest": found.context_digest,
            "storage_key": identity.storage_key,
            "identity": identity.wire(),
            "publication_mode": identity.publication_schema.publication_mode,
            "committed_tokens": found.committed_tokens,
            "topology": {"tp": identity.tp_degree, "dcp": identity.dcp_degree, "pp": 1},
            "tp_shard_rank": identity.tp_shard_rank,
            "dcp_shard_rank": identity.dcp_shard_rank,
            "encoded_bytes": found.encoded_bytes,
            "objects": len(self.object_sizes),
            "object_bytes": None if isinstance(found, FlatManifest) else found.object_bytes,
            "last_object_bytes": self.object_sizes[-1],
            "self": str(found.self_digest) if isinstance(found, Manifest) else None,
            "stream": None if isinstance(found, FlatManifest) else str(found.stream),
            "deltas": found.depth if isinstance(found, DeltaManifest) else 0,
            "geometry": self.geometry or None,
            "arithmetic": [number.to_json() for number in self.arithmetic],
        }


def _chunk_arithmetic(found: Manifest) -> tuple[Arithmetic, ...]:
    tokens, chunk = found.committed_tokens, found.identity.chunk_tokens
    return (Arithmetic("chunks", f"{tokens} / {chunk}", tokens // chunk, found.chunk_count),)


def _object_arithmetic(encoded_bytes: int, object_bytes: int, sizes: Sequence[int]) -> tuple[Arithmetic, ...]:
    whole = -(-encoded_bytes // object_bytes)
    return (
        Arithmetic("objects", f"ceil({encoded_bytes} / {object_bytes})", whole, len(sizes)),
        Arithmetic("last object", f"{encoded_bytes} - {whole - 1} x {object_bytes}", encoded_bytes - (whole - 1) * object_bytes, sizes[-1]),
    )


def _flat_arithmetic(found: FlatManifest) -> tuple[Arithmetic, ...]:
    tokens, chunk = found.committed_tokens, found.identity.chunk_tokens
    return (Arithmetic("chunks", f"ceil({tokens} / {chunk})", -(-tokens // chunk), len(found.chunks)),)


def _geometry(found: Manifest, layout: Layout) -> tuple[dict[str, JsonValue], tuple[Arithmetic, ...]]:
    """What a layout predicts: pages per group by its reuse policy, and the bytes of header and pages together."""
    counts = default_block_counts(layout, found.committed_tokens)
    predicted = StreamLayout.of(Geometry(found.identity, found.committed_tokens, layout, counts))
    groups: list[JsonValue] = [
        {
            "layers": len(group.layers),
            "block_size_tokens": group.block_size,
            "reuse_policy": str(group.reuse_policy),
            "pages_per_layer": count,
            "bytes": count * group.bytes_per_block,
        }
        for group, count in zip(layout.groups, counts, strict=True)
    ]
    rule = f"{predicted.header_bytes} + {predicted.geometry.payload_bytes}"
    number = Arithmetic("stream", rule, predicted.encoded_bytes, found.encoded_bytes)
    return {"layout_sha256": layout.sha256, "groups": groups}, (number,)
