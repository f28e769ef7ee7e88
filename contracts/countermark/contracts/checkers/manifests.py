"""Rules about snapshot manifests that a repository keeps (catalogue FM-01, FM-02, FM-03, FM-06).

The formats are those of the studied cache: exact keys, true integers, and a self-digest over the canonical JSON of the rest, which shows
damage and not authorship.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.errors import InputError
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.contracts.checkers.parameters import text, whole
from countermark.contracts.checkers.records import Block, RecordChecker, integer, record_fields
from countermark.contracts.locators.base import Found
from countermark.contracts.pins import shown

_SHA256 = re.compile(r"[0-9a-f]{64}")
_MAX_OBJECT_BYTES = 64 * 1024 * 1024
_SELF = "metadata_sha256"

_SNAPSHOT: Mapping[str, str] = {
    "schema": "text",
    "format_abi": "integer",
    "storage_mode": "text",
    "identity": "object",
    "context_digest": "digest",
    "committed_tokens": "integer",
    "logical_chunk_tokens": "integer",
    "logical_chunk_count": "integer",
    "snapshot_encoded_bytes": "integer",
    "snapshot_object_bytes": "integer",
    "snapshot_objects": "list",
    "snapshot_sha256": "digest",
    _SELF: "digest",
}
_DELTA: Mapping[str, str] = {
    "schema": "text",
    "format_abi": "integer",
    "identity": "object",
    "context_digest": "digest",
    "committed_tokens": "integer",
    "base_context_digest": "digest",
    "base_committed_tokens": "integer",
    "base_root": "object",
    "base_root_sha256": "digest",
    "layout_sha256": "digest",
    "base_block_counts": "list",
    "result_block_counts": "list",
    _SELF: "digest",
    "delta_encoded_bytes": "integer",
    "delta_object_bytes": "integer",
    "delta_objects": "list",
    "delta_sha256": "digest",
    "logical_chunk_tokens": "integer",
}


@dataclass(frozen=True, slots=True)
class Format:
    """The keys of a manifest, and what the names of its stream begin with."""

    keys: Mapping[str, str]
    stream: str


_FORMATS = {
    "sparkcache-page-snapshot-manifest/v2": Format(_SNAPSHOT, "snapshot"),
    "sparkcache-page-delta-manifest/v2": Format(_DELTA, "delta"),
}


def _canonical(value: JsonValue) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _format(block: Block) -> Format:
    found = block.find("/schema")
    schema = found[0].value if found else None
    if not isinstance(schema, str) or schema not in _FORMATS:
        fix = f"give manifests of {' or '.join(_FORMATS)}"
        raise InputError(Code.UNSUPPORTED, f"no manifest of a known schema: {shown(schema)}", at=block.at("/schema"), fix=fix)
    return _FORMATS[schema]


class ManifestStrict(RecordChecker):
    """Holds a manifest against the exact keys and types of its schema, and against its own digest."""

    name = "manifest.strict"
    rule = "A manifest has exactly the keys of its schema, each of its type, and its self-digest is that of the rest."
    ids = ("FM-01",)
    parameters = record_fields()

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each key that is missing, unknown or of another type, and one for a self-digest that is wrong."""
        keys = _format(block).keys
        (whole_found,) = block.find("")
        value = whole_found.value if isinstance(whole_found.value, dict) else {}
        for name in value:
            if name not in keys:
                yield self._wrong(block, name, "a key of the schema", name, "remove it")
        for name, kind in keys.items():
            if name not in value:
                yield self._wrong(block, name, f"the key {name}", "nothing", "write the manifest anew")
            elif not _is(kind, value[name]):
                yield self._wrong(block, name, f"{name}: {kind}", shown(value[name]), "write the manifest anew")
        rest = {name: part for name, part in value.items() if name != _SELF}
        own = hashlib.sha256(_canonical(rest)).hexdigest()
        if _is("digest", value.get(_SELF)) and value[_SELF] != own:
            yield self._wrong(
                block, _SELF, f"{own}, the digest of the rest", shown(value[_SELF]), "discard it and publish the snapshot anew"
            )

    def _wrong(self, block: Block, name: str, required: str, observed: str, fix: str) -> Finding:
        return self.violation(block.at(f"/{name}"), required=required, observed=observed, fix=fix)


class ObjectsContiguous(RecordChecker):
    """Recomputes the ranges of the objects that a manifest lists."""

    name = "manifest.objects-contiguous"
    rule = "The objects cover the stream from its first byte to its last, in order, each but the last of the full size."
    ids = ("FM-02",)
    parameters = record_fields(
        object_bytes=whole("the greatest size of an object; 64 MiB by default", minimum=1),
        chunk_tokens=whole("tokens of a chunk", minimum=1),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each number that does not follow from the ones before it."""
        stream = _format(block).stream
        size, total = (_number(block, f"/{stream}_{name}") for name in ("object_bytes", "encoded_bytes"))
        most = block.given.get("object_bytes", _MAX_OBJECT_BYTES)
        if isinstance(most, int) and not 0 < integer(size) <= most:
            yield self._wrong(size, f"1 to {most} bytes")
        count, end = len(block.find(f"/{stream}_objects/*")), 0
        for index in range(count):
            base = f"/{stream}_objects/{index}"
            length, start, stop = (_number(block, f"{base}/{name}") for name in ("bytes", "encoded_start", "encoded_end"))
            if integer(start) != end:
                yield self._wrong(start, f"{end}, where the object before ends")
            if integer(stop) != integer(start) + integer(length):
                yield self._wrong(stop, f"start + bytes = {integer(start) + integer(length)}")
            is_last = index == count - 1
            if not is_last and integer(length) != integer(size):
                yield self._wrong(length, f"{integer(size)} bytes, the size of every object but the last")
            if is_last and not 0 < integer(length) <= integer(size):
                yield self._wrong(length, f"1 to {integer(size)} bytes")
            end = integer(stop)
        if end != integer(total):
            yield self._wrong(total, f"{end}, where the last object ends")
        yield from self._chunks(block)

    def _chunks(self, block: Block) -> Iterator[Finding]:
        tokens, unit = _number(block, "/committed_tokens"), _number(block, "/logical_chunk_tokens")
        if integer(unit) <= 0 or integer(tokens) % integer(unit):
            yield self._wrong(tokens, f"a multiple of {unit.value}")
        for found in block.find("/logical_chunk_count"):
            if integer(unit) > 0 and integer(found) != integer(tokens) // integer(unit):
                yield self._wrong(found, f"{tokens.value} / {unit.value} = {integer(tokens) // integer(unit)}")

    def _wrong(self, found: Found, required: str) -> Finding:
        return self.violation(found.at, required=required, observed=str(found.value), fix="discard it and publish the snapshot anew")


class ObjectsHashed(RecordChecker):
    """Hashes the objects that a manifest lists, where the repository holds them."""

    name = "manifest.objects-hashed"
    rule = "The bytes of every object have the digest that the manifest lists."
    ids = ("FM-03",)
    parameters = record_fields("store", store=text("the folder of the objects, which are named SHA-256 and .spcc"))

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each object with other bytes, and one for each that is not here."""
        for found in block.find(f"/{_format(block).stream}_objects/*/sha256"):
            path = f"{block.given['store']}/{found.value}.spcc"
            if not block.case.tree.glob(path):
                required, fix = f"the file {path}", "add the object; until then it is not evaluated"
                yield self.violation(
                    found.at, required=required, observed="not here", fix=fix, outcome=Outcome.NOT_RUN, code=Code.REF_NOT_HERE
                )
            elif (made := hashlib.sha256(block.case.tree.read(path)).hexdigest()) != found.value:
                yield self.violation(found.at, required=str(found.value), observed=f"{made} of {path}", fix="discard the snapshot")


class DeltaChain(RecordChecker):
    """Follows the roots that a delta manifest embeds."""

    name = "manifest.delta-chain"
    rule = "A delta stands on the root that it embeds, which is shorter, of the same identity, and not nested too deep."
    ids = ("FM-06",)
    parameters = record_fields(depth=whole("how many deltas may stand on each other; 2 by default", minimum=1))

    def applies(self, block: Block) -> bool:
        """A snapshot has no base."""
        return _format(block).stream == "delta"

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each link that does not hold."""
        limit = block.given.get("depth", 2)
        here, depth = "", 1
        while block.find(f"{here}/base_root"):
            base = f"{here}/base_root"
            yield from self._link(block, here, base)
            depth += bool(block.find(f"{base}/base_root"))
            here = base
        if isinstance(limit, int) and depth > limit:
            yield self.violation(block.at(here), required=f"at most {limit} deltas", observed=str(depth), fix="compact the chain")

    def _link(self, block: Block, here: str, base: str) -> Iterator[Finding]:
        root = block.find(base)[0]
        digest = hashlib.sha256(_canonical(root.value)).hexdigest()
        pairs = [
            (f"{here}/base_root_sha256", digest),
            *((f"{here}/base_context_digest", found.value) for found in block.find(f"{base}/context_digest")),
            *((f"{here}/base_committed_tokens", found.value) for found in block.find(f"{base}/committed_tokens")),
            *((f"{here}/identity", found.value) for found in block.find(f"{base}/identity")),
        ]
        for pointer, value in pairs:
            for found in block.find(pointer):
                if found.value != value:
                    fix = "discard the delta, and publish the context anew"
                    yield self.violation(found.at, required=f"{shown(value)}, of the embedded root", observed=shown(found.value), fix=fix)
        own, shorter = _number(block, f"{here}/committed_tokens"), _number(block, f"{here}/base_committed_tokens")
        if integer(shorter) >= integer(own):
            fix = "publish the context as a snapshot"
            yield self.violation(shorter.at, required=f"fewer than {own.value}", observed=str(shorter.value), fix=fix)


def _number(block: Block, pointer: str) -> Found:
    found = block.find(pointer)
    if not found:
        raise InputError(Code.SCHEMA_INVALID, f"no {pointer}", at=block.at(pointer), fix="write the manifest anew")
    return found[0]


def _is(kind: str, value: JsonValue) -> bool:
    return {
        "text": isinstance(value, str) and value != "",
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "object": isinstance(value, dict),
        "list": isinstance(value, list),
        "digest": isinstance(value, str) and _SHA256.fullmatch(value) is not None,
    }[kind]
