"""The root of one rank's snapshot: `sparkcache-page-snapshot-manifest/v2`, read strictly.

The encoded stream (`stream.py`) is cut into content-addressed objects of one size, the last one shorter. The manifest lists them, and
carries the digest of the whole stream and of itself. The self-digest shows damage, not authorship: anybody who can write the store can
compute it, so a qualified restore asks for a signed `snapshot/v1` as well. (Format page 2.7.)
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError
from countermark.attestations.jsontext import loads
from countermark.attestations.located import JsonValue
from countermark.cuda_restore.geometry import check_tokens
from countermark.cuda_restore.identity import Identity, PublicationSchema
from countermark.cuda_restore.wire import Fields, canonical, placed, refusal

SCHEMA = "sparkcache-page-snapshot-manifest/v2"
STORAGE_MODE = "block_pages_v1"
FORMAT_ABI = 1
OBJECT_BYTES_MAX = 64 * 1024 * 1024
MANIFEST_BYTES_MAX = 4 * 1024 * 1024
RECORDS = frozenset({"target_ckv", "logical_positions"})
PUBLICATIONS = (PublicationSchema.SNAPSHOT, PublicationSchema.PAGE_TAIL_COW_V1)

_KEYS = (
    "schema",
    "format_abi",
    "storage_mode",
    "identity",
    "context_digest",
    "committed_tokens",
    "logical_chunk_tokens",
    "logical_chunk_count",
    "snapshot_encoded_bytes",
    "snapshot_object_bytes",
    "snapshot_objects",
    "snapshot_sha256",
    "metadata_sha256",
)


@dataclass(frozen=True, slots=True)
class ObjectDescriptor:
    """One object of the stream: the bytes from `start`, an offset into the encoded stream, to `end`, and their SHA-256."""

    index: int
    digest: Digest
    start: int
    size_bytes: int

    @property
    def end(self) -> int:
        """The offset behind the object's last byte."""
        return self.start + self.size_bytes

    @property
    def file_name(self) -> str:
        """The object's name in the folder of objects."""
        return f"{self.digest.hex}.spcc"

    def authenticate(self, sha256: str) -> None:
        """Check the SHA-256, in hex, of the bytes that were read; `InputError` when it is not the one promised."""
        if sha256 != self.digest.hex:
            message = f"object {self.index} has SHA-256 {sha256}, the manifest promises {self.digest.hex}"
            raise refusal(self.file_name, "", message, "discard the snapshot and recompute the prefix", Code.BAD_DIGEST)

    @classmethod
    def parse(cls, fields: Fields, index: int) -> Self:
        """Read one descriptor; its end must be its start plus its size."""
        fields.exact(("sha256", "bytes", "encoded_start", "encoded_end"))
        found = cls(index, fields.digest("sha256", DigestKind.OBJECT), fields.integer("encoded_start"), fields.integer("bytes"))
        end = fields.integer("encoded_end")
        if end != found.end:
            raise fields.refuse("encoded_end", f"encoded_end is {end}; start and size give {found.end}", "write start + bytes")
        return found

    @classmethod
    def parse_all(cls, fields: Fields, name: str) -> tuple[Self, ...]:
        """Read the list of descriptors `name`, numbered in its order."""
        return tuple(cls.parse(child, number) for number, child in enumerate(fields.children(name)))

    def wire(self) -> dict[str, JsonValue]:
        """The descriptor as the manifest holds it."""
        return {"sha256": self.digest.hex, "bytes": self.size_bytes, "encoded_start": self.start, "encoded_end": self.end}


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A snapshot of one context on one rank. Its objects cover `encoded_bytes` from 0 without gap or overlap, in order."""

    identity: Identity
    context_digest: str
    committed_tokens: int
    encoded_bytes: int
    object_bytes: int
    objects: tuple[ObjectDescriptor, ...]
    stream: Digest

    def __post_init__(self) -> None:
        check_pages_identity(self.identity)
        check_context_digest(self.context_digest)
        check_tokens(self.committed_tokens, self.identity.chunk_tokens, "manifest", "/committed_tokens")
        check_ranges(self.objects, self.object_bytes, self.encoded_bytes)

    @classmethod
    def parse(cls, data: bytes, source: str) -> Self:
        """Read a manifest file. `InputError` names the first place that is wrong."""
        return cls.parse_fields(Fields.of(loads(data, source, limit=MANIFEST_BYTES_MAX), source))

    @classmethod
    def parse_fields(cls, fields: Fields) -> Self:
        """Read a manifest object: shape first, then the self-digest, then the rules."""
        fields.exact(_KEYS)
        fields.constant("schema", SCHEMA)
        fields.constant("format_abi", FORMAT_ABI)
        fields.constant("storage_mode", STORAGE_MODE)
        identity = Identity.parse(fields.child("identity"))
        objects = ObjectDescriptor.parse_all(fields, "snapshot_objects")
        committed_tokens = fields.integer("committed_tokens")
        fields.constant("logical_chunk_tokens", identity.chunk_tokens)
        fields.constant("logical_chunk_count", committed_tokens // identity.chunk_tokens)
        check_self_digest(fields)
        with placed(fields.source, fields.pointer):
            return cls(
                identity=identity,
                context_digest=fields.sha256("context_digest"),
                committed_tokens=committed_tokens,
                encoded_bytes=fields.integer("snapshot_encoded_bytes"),
                object_bytes=fields.integer("snapshot_object_bytes"),
                objects=objects,
                stream=fields.digest("snapshot_sha256", DigestKind.STREAM),
            )

    def encode(self) -> bytes:
        """The manifest file."""
        return canonical({**self._body(), "metadata_sha256": self.self_digest.hex})

    @property
    def self_digest(self) -> Digest:
        """The SHA-256 of the canonical JSON of the manifest without the key that holds it."""
        return Digest.of(DigestKind.MANIFEST_SELF, canonical(self._body()))

    @property
    def chunk_count(self) -> int:
        """The logical chunks of 256 tokens."""
        return self.committed_tokens // self.identity.chunk_tokens

    def _body(self) -> dict[str, JsonValue]:
        return {
            "schema": SCHEMA,
            "format_abi": FORMAT_ABI,
            "storage_mode": STORAGE_MODE,
            "identity": self.identity.wire(),
            "context_digest": self.context_digest,
            "committed_tokens": self.committed_tokens,
            "logical_chunk_tokens": self.identity.chunk_tokens,
            "logical_chunk_count": self.chunk_count,
            "snapshot_encoded_bytes": self.encoded_bytes,
            "snapshot_object_bytes": self.object_bytes,
            "snapshot_objects": [descriptor.wire() for descriptor in self.objects],
            "snapshot_sha256": self.stream.hex,
        }


def check_self_digest(fields: Fields) -> None:
    """Check `metadata_sha256` against the canonical JSON of all other members."""
    promised = fields.sha256("metadata_sha256")
    rest = {name: value for name, value in fields.members.items() if name != "metadata_sha256"}
    found = hashlib.sha256(canonical(rest)).hexdigest()
    if found != promised:
        message = f"metadata_sha256 is {promised}, the other members give {found}"
        raise fields.refuse("metadata_sha256", message, "discard the manifest; it is damaged or was edited", Code.BAD_DIGEST)


def check_pages_identity(identity: Identity) -> None:
    """The rules that an identity obeys when whole pages are stored under it."""
    if frozenset(identity.record_schema) != RECORDS:
        message = f"record_schema is {list(identity.record_schema)}; pages store {sorted(RECORDS)}"
        raise _refuse("/identity/record_schema", message, "name exactly these two records")
    if identity.publication_schema not in PUBLICATIONS:
        message = f"publication_schema is {str(identity.publication_schema)!r}"
        raise _refuse("/identity/publication_schema", message, "publish as a whole snapshot or under page-tail-cow-v1")
    if identity.topology_sha256 is None:
        message = "the layout of a page cache ends with :manager-pages-v2: and a topology digest"
        raise _refuse("/identity/quantization_layout", message, "append the digest of the page topology")


def check_context_digest(sha256: str) -> None:
    """A context digest is a SHA-256 in hex; it is also a file name."""
    with placed("manifest", "/context_digest"):
        Digest(DigestKind.FILE, sha256)


def check_object_bytes(size: int, name: str = "snapshot") -> None:
    """The size that every object but the last has."""
    if not 1 <= size <= OBJECT_BYTES_MAX:
        message = f"objects of {size} bytes; the format allows 1 to {OBJECT_BYTES_MAX}"
        raise _refuse(f"/{name}_object_bytes", message, "cut the stream into objects of at most 64 MiB")


def check_ranges(objects: Sequence[ObjectDescriptor], object_bytes: int, encoded_bytes: int, name: str = "snapshot") -> None:
    """The stream is cut at multiples of one size: objects begin at 0, leave no gap, and only the last may be shorter.

    `name` begins the names of the members: a whole `snapshot`, or a `delta`.
    """
    check_object_bytes(object_bytes, name)
    if encoded_bytes < 1:
        raise _refuse(f"/{name}_encoded_bytes", f"a stream of {encoded_bytes} bytes is none", "publish the whole stream")
    if not objects:
        raise _refuse(f"/{name}_objects", "there are no objects", "list every object of the stream")
    start = 0
    for number, found in enumerate(objects):
        if found.index != number:
            raise _refuse(f"/{name}_objects/{number}", f"object {number} calls itself {found.index}", "number the objects in stream order")
        _check_range(found, start, object_bytes, last=number == len(objects) - 1, pointer=f"/{name}_objects/{number}")
        start = found.end
    if start != encoded_bytes:
        message = f"the objects end at {start}, the stream at {encoded_bytes}"
        raise _refuse(f"/{name}_objects/{len(objects) - 1}/encoded_end", message, "list every object of the stream")


def _check_range(found: ObjectDescriptor, start: int, object_bytes: int, *, last: bool, pointer: str) -> None:
    if found.start != start:
        message = f"encoded_start is {found.start}; the objects before end at {start}"
        raise _refuse(f"{pointer}/encoded_start", message, "let every object begin where the one before ends")
    if not (1 <= found.size_bytes <= object_bytes if last else found.size_bytes == object_bytes):
        wanted = f"1 to {object_bytes}" if last else f"exactly {object_bytes}"
        raise _refuse(
            f"{pointer}/bytes", f"the object has {found.size_bytes} bytes, not {wanted}", "cut the stream at multiples of one size"
        )


def _refuse(pointer: str, message: str, fix: str) -> InputError:
    return refusal("manifest", pointer, message, fix)
