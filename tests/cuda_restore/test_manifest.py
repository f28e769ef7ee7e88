"""The manifest's rules: each has a row that breaks it alone, in a manifest sealed again, and is refused at its place."""

import contextlib
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from countermark.attestations.codes import Code
from countermark.attestations.digests import DigestKind
from countermark.attestations.errors import InputError
from countermark.cuda_restore.manifest import MANIFEST_BYTES_MAX, OBJECT_BYTES_MAX, Manifest
from countermark.cuda_restore.reader import LoadedManifest

Tree = dict[str, Any]
HEX = "0" * 64


def encode(tree: Tree) -> bytes:
    return json.dumps(tree, sort_keys=True, separators=(",", ":")).encode("ascii")


def sealed(tree: Tree) -> bytes:
    """The manifest with its self-digest made to fit, as an attacker would."""
    rest = {key: value for key, value in tree.items() if key != "metadata_sha256"}
    return encode({**rest, "metadata_sha256": hashlib.sha256(encode(rest)).hexdigest()})


@dataclass(frozen=True)
class Row:
    rule: str
    break_it: Callable[[Tree], object]
    pointer: str | None
    code: Code = Code.SCHEMA_INVALID


def put(*path: str | int, value: Any) -> Callable[[Tree], object]:
    """Set the value at a path."""

    def change(tree: Tree) -> None:
        node: Any = tree
        for part in path[:-1]:
            node = node[part]
        node[path[-1]] = value

    return change


def drop(*path: str | int) -> Callable[[Tree], object]:
    """Remove the value at a path."""

    def change(tree: Tree) -> None:
        node: Any = tree
        for part in path[:-1]:
            node = node[part]
        del node[path[-1]]

    return change


def one_object(size: int) -> Callable[[Tree], object]:
    """Make the stream one object of `size` bytes."""

    def change(tree: Tree) -> None:
        tree["snapshot_objects"] = [{"sha256": HEX, "bytes": size, "encoded_start": 0, "encoded_end": size}]
        tree["snapshot_encoded_bytes"] = tree["snapshot_object_bytes"] = size

    return change


def shift_second(tree: Tree, by: int) -> None:
    second = tree["snapshot_objects"][1]
    second["encoded_start"] += by
    second["encoded_end"] += by


def resize(tree: Tree, number: int, size: int) -> None:
    """Give one object another size and move all that follow, so that only the size is wrong."""
    start = 0
    for place, found in enumerate(tree["snapshot_objects"]):
        found["bytes"] = size if place == number else found["bytes"]
        found["encoded_start"], start = start, start + found["bytes"]
        found["encoded_end"] = start
    tree["snapshot_encoded_bytes"] = start


TOP = [
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
]
IDENTITY = [
    "target_checkpoint",
    "draft_checkpoint",
    "quantization_layout",
    "rope_layout",
    "tp_degree",
    "dcp_degree",
    "chunk_tokens",
    "dcp_shard_rank",
    "tp_shard_rank",
    "boundary_hidden_policy",
    "draft_kv_policy",
]
OBJECT = ["sha256", "bytes", "encoded_start", "encoded_end"]

ROWS = [
    *(Row(f"{key} is required", drop(key), f"/{key}") for key in TOP),
    *(Row(f"identity.{key} is required", drop("identity", key), f"/identity/{key}") for key in IDENTITY),
    *(Row(f"object {key} is required", drop("snapshot_objects", 1, key), f"/snapshot_objects/1/{key}") for key in OBJECT),
    Row("no other key", put("comment", value=1), "/comment"),
    Row("no other identity key", put("identity", "profile", value="glm"), "/identity/profile"),
    Row("no other object key", put("snapshot_objects", 0, "offset", value=0), "/snapshot_objects/0/offset"),
    Row("the schema", put("schema", value="sparkcache-page-snapshot-manifest/v3"), "/schema"),
    Row("the ABI", put("format_abi", value=2), "/format_abi"),
    Row("an ABI that is no boolean", put("format_abi", value=True), "/format_abi"),
    Row("an ABI that is no real", put("format_abi", value=1.0), "/format_abi"),
    Row("the storage mode", put("storage_mode", value="per_token_rows"), "/storage_mode"),
    # identity
    Row("checkpoint is a SHA-256", put("identity", "target_checkpoint", value="ab"), "/identity/target_checkpoint", Code.BAD_DIGEST),
    Row("lower-case hex", put("identity", "draft_checkpoint", value="A" * 64), "/identity/draft_checkpoint", Code.BAD_DIGEST),
    Row("a digest is a text", put("identity", "target_checkpoint", value=0), "/identity/target_checkpoint", Code.BAD_DIGEST),
    Row("rope layout says something", put("identity", "rope_layout", value=""), "/identity/rope_layout"),
    Row("layout says something", put("identity", "quantization_layout", value=""), "/identity/quantization_layout"),
    Row("layout names the topology", put("identity", "quantization_layout", value="bf16"), "/identity/quantization_layout"),
    Row(
        "topology digest is whole",
        put("identity", "quantization_layout", value="bf16:manager-pages-v2:abc"),
        "/identity/quantization_layout",
    ),
    Row("TP counts from 1", put("identity", "tp_degree", value=0), "/identity/tp_degree"),
    Row("DCP counts from 1", put("identity", "dcp_degree", value=0), "/identity/dcp_degree"),
    Row("DCP divides TP", put("identity", "dcp_degree", value=4), "/identity/dcp_degree"),
    Row("DCP divides a chunk", lambda tree: tree["identity"].update(tp_degree=3, dcp_degree=3), "/identity/dcp_degree"),
    Row("interleave counts from 1", put("identity", "cp_kv_cache_interleave_size", value=0), "/identity/cp_kv_cache_interleave_size"),
    Row("chunks of 256 tokens", put("identity", "chunk_tokens", value=128), "/identity/chunk_tokens"),
    Row(
        "chunks of 256 tokens, said twice",
        lambda tree: (tree["identity"].update(chunk_tokens=128), tree.update(logical_chunk_tokens=128, logical_chunk_count=4)),
        "/identity/chunk_tokens",
    ),
    Row("TP rank below TP", put("identity", "tp_shard_rank", value=2), "/identity/tp_shard_rank"),
    Row("TP rank from -1", put("identity", "tp_shard_rank", value=-2), "/identity/tp_shard_rank"),
    Row("DCP rank below DCP", put("identity", "dcp_shard_rank", value=1), "/identity/dcp_shard_rank"),
    Row("a rank is no boolean", put("identity", "dcp_shard_rank", value=False), "/identity/dcp_shard_rank", Code.BAD_NUMBER),
    Row("hidden policy", put("identity", "boundary_hidden_policy", value="x"), "/identity/boundary_hidden_policy", Code.UNKNOWN_NAME),
    Row("draft policy", put("identity", "draft_kv_policy", value="shared"), "/identity/draft_kv_policy", Code.UNKNOWN_NAME),
    Row("record schema is needed", drop("identity", "record_schema"), "/identity/record_schema"),
    Row("record schema is not empty", put("identity", "record_schema", value=[]), "/identity/record_schema"),
    Row("a record once", lambda tree: tree["identity"]["record_schema"].append("target_ckv"), "/identity/record_schema"),
    Row(
        "a known record",
        lambda tree: tree["identity"]["record_schema"].append("logits"),
        "/identity/record_schema/2",
        Code.UNKNOWN_NAME,
    ),
    Row("positions are stored", put("identity", "record_schema", value=["target_ckv"]), "/identity/record_schema"),
    Row(
        "exactly two records",
        lambda tree: tree["identity"]["record_schema"].append("sparse_indexer"),
        "/identity/record_schema",
    ),
    Row("publication says something", put("identity", "publication_schema", value=""), "/identity/publication_schema"),
    Row(
        "publication of this version",
        put("identity", "publication_schema", value="page-tail-cow-v2"),
        "/identity/publication_schema",
    ),
    Row(
        "operator names are no wire names",
        put("identity", "publication_schema", value="snapshot-v1"),
        "/identity/publication_schema",
        Code.UNKNOWN_NAME,
    ),
    # context and tokens
    Row("context is a SHA-256", put("context_digest", value="../" + HEX[3:]), "/context_digest", Code.BAD_DIGEST),
    Row("tokens are an integer", put("committed_tokens", value="512"), "/committed_tokens", Code.BAD_NUMBER),
    Row("tokens are no real", put("committed_tokens", value=512.0), "/committed_tokens", Code.BAD_NUMBER),
    Row("tokens are positive", lambda tree: tree.update(committed_tokens=0, logical_chunk_count=0), "/committed_tokens"),
    Row("tokens in whole chunks", lambda tree: tree.update(committed_tokens=640), "/committed_tokens"),
    Row("negative tokens", lambda tree: tree.update(committed_tokens=-256, logical_chunk_count=-1), "/committed_tokens"),
    Row("chunk tokens as in the identity", put("logical_chunk_tokens", value=512), "/logical_chunk_tokens"),
    Row("chunk count follows", put("logical_chunk_count", value=3), "/logical_chunk_count"),
    Row("chunk count is no real", put("logical_chunk_count", value=2.0), "/logical_chunk_count"),
    # objects
    Row("some objects", put("snapshot_objects", value=[]), "/snapshot_objects"),
    Row("objects are a list", put("snapshot_objects", value={}), "/snapshot_objects"),
    Row("an object is an object", put("snapshot_objects", 0, value=HEX), "/snapshot_objects/0"),
    Row("an object has a SHA-256", put("snapshot_objects", 0, "sha256", value=HEX[1:]), "/snapshot_objects/0/sha256", Code.BAD_DIGEST),
    Row("a size is no boolean", put("snapshot_objects", 0, "bytes", value=True), "/snapshot_objects/0/bytes", Code.BAD_NUMBER),
    Row("the stream has bytes", put("snapshot_encoded_bytes", value=0), "/snapshot_encoded_bytes"),
    Row("object size is positive", put("snapshot_object_bytes", value=0), "/snapshot_object_bytes"),
    Row("object size is at most 64 MiB", one_object(OBJECT_BYTES_MAX + 1), "/snapshot_object_bytes"),
    Row(
        "the first object starts at 0",
        lambda tree: tree["snapshot_objects"][0].update(encoded_start=1, encoded_end=1001),
        "/snapshot_objects/0/encoded_start",
    ),
    Row("no gap", lambda tree: shift_second(tree, 1), "/snapshot_objects/1/encoded_start"),
    Row("no overlap", lambda tree: shift_second(tree, -1), "/snapshot_objects/1/encoded_start"),
    Row("stream order", lambda tree: tree["snapshot_objects"].reverse(), "/snapshot_objects/0/encoded_start"),
    Row(
        "no object twice", lambda tree: tree["snapshot_objects"].insert(1, tree["snapshot_objects"][0]), "/snapshot_objects/1/encoded_start"
    ),
    Row("no object missing", drop("snapshot_objects", 1), "/snapshot_objects/1/encoded_start"),
    Row("end is start plus size", put("snapshot_objects", 0, "encoded_end", value=999), "/snapshot_objects/0/encoded_end"),
    Row("inner objects are whole", lambda tree: resize(tree, 1, 999), "/snapshot_objects/1/bytes"),
    Row("inner objects are not larger", lambda tree: resize(tree, 1, 1001), "/snapshot_objects/1/bytes"),
    Row("the last is not larger", lambda tree: resize(tree, -1 + len(tree["snapshot_objects"]), 1001), "/snapshot_objects/3/bytes"),
    Row("the last is not empty", lambda tree: resize(tree, -1 + len(tree["snapshot_objects"]), 0), "/snapshot_objects/3/bytes"),
    Row(
        "the objects end with the stream",
        lambda tree: tree.update(snapshot_encoded_bytes=tree["snapshot_encoded_bytes"] + 1),
        "/snapshot_objects/3/encoded_end",
    ),
    Row("the last object is there", lambda tree: tree["snapshot_objects"].pop(), "/snapshot_objects/2/encoded_end"),
    Row("the stream has a SHA-256", put("snapshot_sha256", value=""), "/snapshot_sha256", Code.BAD_DIGEST),
]


@pytest.fixture
def tree(snapshot: LoadedManifest) -> Tree:
    found: Tree = json.loads(snapshot.path.read_bytes())
    return found


def test_valid(tree: Tree, snapshot: LoadedManifest) -> None:
    assert len(tree["snapshot_objects"]) == 4
    assert Manifest.parse(sealed(tree), "m.json") == snapshot.manifest
    assert sealed(tree) == snapshot.path.read_bytes() == snapshot.manifest.encode()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.rule)
def test_each_rule_is_refused_at_its_place(row: Row, tree: Tree) -> None:
    row.break_it(tree)
    with pytest.raises(InputError) as caught:
        Manifest.parse(sealed(tree), "m.json")
    error = caught.value
    assert error.at is not None
    assert (error.at.file, error.at.pointer, error.code) == ("m.json", row.pointer, row.code)
    assert error.fix


def test_self_digest(tree: Tree) -> None:
    tree["context_digest"] = HEX
    for broken, pointer in ((tree, "/metadata_sha256"), ({**tree, "metadata_sha256": 7}, "/metadata_sha256")):
        with pytest.raises(InputError, match="metadata_sha256") as caught:
            Manifest.parse(encode(broken), "m.json")
        assert caught.value.at is not None
        assert (caught.value.at.pointer, caught.value.code) == (pointer, Code.BAD_DIGEST)
    del tree["metadata_sha256"]
    with pytest.raises(InputError, match="missing"):
        Manifest.parse(encode(tree), "m.json")


def leaves(node: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    children: Any = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else []
    return [path, *(leaf for key, child in children for leaf in leaves(child, (*path, key)))]


def test_no_value_may_have_another_type(tree: Tree) -> None:
    """Every member, set to each value of another type, is refused even when the self-digest fits."""
    del tree["metadata_sha256"]
    others: list[Any] = [None, True, False, 1.0, -3, "x", "", [], {}, [1]]
    accepted = []
    for path in leaves(tree)[1:]:
        node: Any = tree
        for part in path:
            node = node[part]
        for other in [*others, float(node) if type(node) is int else None]:
            if type(other) is type(node):
                continue
            changed = json.loads(json.dumps(tree))
            put(*path, value=other)(changed)
            with contextlib.suppress(InputError):
                Manifest.parse(sealed(changed), "m.json")
                accepted.append((path, other))
    assert accepted == []


def test_every_changed_byte_is_refused(snapshot: LoadedManifest) -> None:
    data = snapshot.path.read_bytes()
    for place, byte in enumerate(data):
        for other in {byte ^ 1, byte ^ 0x20, ord("0"), ord(" "), 0xFF} - {byte}:
            with pytest.raises(InputError):
                Manifest.parse(data[:place] + bytes([other]) + data[place + 1 :], "m.json")


def test_every_truncation_is_refused(snapshot: LoadedManifest) -> None:
    data = snapshot.path.read_bytes()
    for size in range(len(data)):
        with pytest.raises(InputError):
            Manifest.parse(data[:size], "m.json")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"[]", Code.SCHEMA_INVALID),
        (b"", Code.SCHEMA_INVALID),
        (b'{"schema": 1, "schema": 1}', Code.DUPLICATE_KEY),
        (b'{"schema": NaN}', Code.BAD_NUMBER),
        (b'{"schema": 9007199254740992}', Code.BAD_NUMBER),
        (b" " * (MANIFEST_BYTES_MAX + 1), Code.TOO_LARGE),
    ],
)
def test_json_with_two_meanings_is_refused(data: bytes, code: Code) -> None:
    with pytest.raises(InputError) as caught:
        Manifest.parse(data, "m.json")
    assert caught.value.code is code


def test_page_tail_wire_is_accepted(tree: Tree) -> None:
    tree["identity"]["publication_schema"] = "page-tail-cow-v1"
    assert Manifest.parse(sealed(tree), "m.json").identity.publication_schema.publication_mode == "page-tail-cow-v1"


def test_older_identity_without_interleave_has_another_key(tree: Tree, snapshot: LoadedManifest) -> None:
    del tree["identity"]["cp_kv_cache_interleave_size"]
    found = Manifest.parse(sealed(tree), "m.json")
    assert found.identity.interleave == 1
    assert found.identity.storage_key != snapshot.manifest.identity.storage_key


def test_published_arithmetic(snapshot: LoadedManifest) -> None:
    """131,072 tokens of the seeds: 813,068,464 bytes are twelve objects of 64 MiB and one of 7,762,096."""
    total, objects = 813_068_464, []
    for index, start in enumerate(range(0, total, OBJECT_BYTES_MAX)):
        size = min(OBJECT_BYTES_MAX, total - start)
        objects.append(replace(snapshot.manifest.objects[0], index=index, start=start, size_bytes=size))
    found = replace(snapshot.manifest, committed_tokens=131_072, encoded_bytes=total, object_bytes=OBJECT_BYTES_MAX, objects=tuple(objects))
    assert (len(found.objects), found.objects[-1].size_bytes, found.chunk_count) == (13, 7_762_096, 512)
    assert Manifest.parse(found.encode(), "m.json") == found


def test_programmatic_mistakes_are_refused_too(snapshot: LoadedManifest) -> None:
    found = snapshot.manifest
    for wrong in (
        {"objects": found.objects[1:]},
        {"objects": tuple(replace(one, index=0) for one in found.objects)},
        {"committed_tokens": 100},
        {"context_digest": "x"},
        {"object_bytes": 0},
        {"identity": replace(found.identity, record_schema=())},
    ):
        with pytest.raises(InputError):
            replace(found, **wrong)


def test_an_object_authenticates_by_its_own_digest(snapshot: LoadedManifest) -> None:
    first = snapshot.manifest.objects[0]
    assert first.digest.kind is DigestKind.OBJECT
    first.authenticate(first.digest.hex)
    with pytest.raises(InputError, match="object 0") as caught:
        first.authenticate(HEX)
    assert caught.value.code is Code.BAD_DIGEST
