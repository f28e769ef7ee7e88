"""What a manifest alone says, in each form that can be described; no object is there to be read."""

import hashlib
import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError
from countermark.cuda_restore.geometry import Geometry
from countermark.cuda_restore.inspect import Inspection
from countermark.cuda_restore.manifest import Manifest
from countermark.cuda_restore.reader import LoadedManifest

Tree = dict[str, Any]
HEX = "0" * 64


def encode(tree: Tree) -> bytes:
    return json.dumps(tree, sort_keys=True, separators=(",", ":")).encode("ascii")


def sealed(tree: Tree) -> Tree:
    rest = {key: value for key, value in tree.items() if key != "metadata_sha256"}
    return {**rest, "metadata_sha256": hashlib.sha256(encode(rest)).hexdigest()}


@pytest.fixture
def tail_manifest(snapshot: LoadedManifest) -> Tree:
    """The snapshot's manifest under the wire in which deltas are published."""
    tree: Tree = json.loads(snapshot.path.read_bytes())
    tree["identity"]["publication_schema"] = "page-tail-cow-v1"
    return sealed(tree)


def delta_on(base: Tree, tokens: int) -> Tree:
    """A delta manifest of two objects on `base`."""
    return sealed(
        {
            "schema": "sparkcache-page-delta-manifest/v2",
            "format_abi": 1,
            "identity": base["identity"],
            "context_digest": hashlib.sha256(str(tokens).encode()).hexdigest(),
            "committed_tokens": tokens,
            "logical_chunk_tokens": 256,
            "base_context_digest": base["context_digest"],
            "base_committed_tokens": base["committed_tokens"],
            "base_root": base,
            "base_root_sha256": hashlib.sha256(encode(base)).hexdigest(),
            "layout_sha256": HEX,
            "base_block_counts": base.get("result_block_counts", [4, 2, 1]),
            "result_block_counts": [tokens // 128, 2, 1],
            "delta_encoded_bytes": 1500,
            "delta_object_bytes": 1000,
            "delta_objects": [
                {"sha256": HEX, "bytes": 1000, "encoded_start": 0, "encoded_end": 1000},
                {"sha256": HEX, "bytes": 500, "encoded_start": 1000, "encoded_end": 1500},
            ],
            "delta_sha256": HEX,
        }
    )


def flat(snapshot: LoadedManifest, tokens: int, last: int = 256) -> Tree:
    """A flat manifest of whole chunks, the last one shorter."""
    edges = [*range(0, tokens, 256), tokens - 256 + last]
    chunks = [{"sha256": HEX, "bytes": 7, "logical_start": one, "logical_end": two} for one, two in pairwise(edges)]
    wire = snapshot.manifest.identity.wire()
    return {"format_abi": 1, "identity": wire, "context_digest": HEX, "committed_tokens": edges[-1], "chunks": chunks}


def test_a_page_snapshot(snapshot: LoadedManifest, geometry: Geometry) -> None:
    found = Inspection.of(snapshot.path.read_bytes(), "m.json", geometry.layout)
    tree = found.to_json()
    assert tree["restorable"] is True
    assert (tree["objects"], tree["object_bytes"]) == (4, 1000)
    assert tree["last_object_bytes"] == snapshot.manifest.encoded_bytes - 3000
    assert (tree["file"], tree["self"]) == (str(snapshot.digest), str(snapshot.manifest.self_digest))
    assert [number.name for number in found.arithmetic] == ["chunks", "objects", "last object", "stream"]
    assert all(number.holds for number in found.arithmetic)
    assert json.loads(json.dumps(tree)) == tree


def test_without_a_layout_no_page_is_claimed(snapshot: LoadedManifest) -> None:
    found = Inspection.of(snapshot.path.read_bytes(), "m.json")
    assert (found.to_json()["geometry"], len(found.arithmetic)) == (None, 3)


def test_a_layout_that_does_not_fit_shows(snapshot: LoadedManifest, geometry: Geometry) -> None:
    found = Inspection.of(snapshot.path.read_bytes(), "m.json", type(geometry.layout)(geometry.layout.groups[:1]))
    assert [number.holds for number in found.arithmetic] == [True, True, True, False]


def test_the_published_flat_snapshot(snapshot: LoadedManifest) -> None:
    """131,072 tokens in the legacy layout are 512 files of 256 tokens."""
    found = Inspection.of(encode(flat(snapshot, 131_072)), "m.json")
    tree = found.to_json()
    assert (tree["schema"], tree["restorable"], tree["objects"], tree["object_bytes"]) == ("flat-v1", False, 512, None)
    assert Inspection.of(encode(flat(snapshot, 512, last=10)), "m.json").manifest.committed_tokens == 266


def test_deltas(tail_manifest: Tree) -> None:
    one = delta_on(tail_manifest, 768)
    two = delta_on(one, 1024)
    assert Inspection.of(encode(tail_manifest), "m.json").to_json()["publication_mode"] == "page-tail-cow-v1"
    for tree, depth in ((one, 1), (two, 2)):
        found = Inspection.of(encode(tree), "m.json").to_json()
        assert (found["deltas"], found["restorable"], found["encoded_bytes"], found["last_object_bytes"]) == (depth, False, 1500, 500)
    with pytest.raises(InputError, match="3 deltas"):
        Inspection.of(encode(delta_on(two, 1280)), "m.json")


DELTA_ROWS: list[tuple[str, Callable[[Tree], object], str, Code]] = [
    ("keys", lambda tree: tree.pop("delta_sha256"), "/delta_sha256", Code.SCHEMA_INVALID),
    ("no other key", lambda tree: tree.update(delta_chunks=[]), "/delta_chunks", Code.SCHEMA_INVALID),
    ("ABI", lambda tree: tree.update(format_abi=True), "/format_abi", Code.SCHEMA_INVALID),
    ("chunk", lambda tree: tree.update(logical_chunk_tokens=128), "/logical_chunk_tokens", Code.SCHEMA_INVALID),
    ("wire", lambda tree: tree["identity"].pop("publication_schema"), "/identity/publication_schema", Code.SCHEMA_INVALID),
    ("one identity", lambda tree: tree["identity"].update(rope_layout="x"), "/base_root/identity", Code.SCHEMA_INVALID),
    ("base hash", lambda tree: tree.update(base_root_sha256=HEX), "/base_root_sha256", Code.BAD_DIGEST),
    ("base context", lambda tree: tree.update(base_context_digest=HEX), "/base_context_digest", Code.SCHEMA_INVALID),
    ("base tokens", lambda tree: tree.update(base_committed_tokens=256), "/base_committed_tokens", Code.SCHEMA_INVALID),
    ("beyond the base", lambda tree: tree.update(committed_tokens=512), "/committed_tokens", Code.SCHEMA_INVALID),
    ("behind the base", lambda tree: tree.update(committed_tokens=256), "/committed_tokens", Code.SCHEMA_INVALID),
    ("whole chunks", lambda tree: tree.update(committed_tokens=800), "/committed_tokens", Code.SCHEMA_INVALID),
    ("same groups", lambda tree: tree.update(result_block_counts=[6, 2]), "/result_block_counts", Code.SCHEMA_INVALID),
    ("no empty group", lambda tree: tree.update(result_block_counts=[6, 0, 1]), "/result_block_counts", Code.SCHEMA_INVALID),
    ("ranges", lambda tree: tree["delta_objects"].reverse(), "/delta_objects/0/encoded_start", Code.SCHEMA_INVALID),
    ("object size", lambda tree: tree.update(delta_object_bytes=0), "/delta_object_bytes", Code.SCHEMA_INVALID),
    ("the stream's end", lambda tree: tree.update(delta_encoded_bytes=1501), "/delta_objects/1/encoded_end", Code.SCHEMA_INVALID),
]


@pytest.mark.parametrize(("rule", "break_it", "pointer", "code"), DELTA_ROWS, ids=[row[0] for row in DELTA_ROWS])
def test_delta_rules(tail_manifest: Tree, rule: str, break_it: Callable[[Tree], object], pointer: str, code: Code) -> None:
    tree: Tree = json.loads(json.dumps(delta_on(tail_manifest, 768)))
    break_it(tree)
    with pytest.raises(InputError) as caught:
        Inspection.of(encode(sealed(tree)), "m.json")
    assert caught.value.at is not None
    assert (caught.value.at.file, caught.value.at.pointer, caught.value.code) == ("m.json", pointer, code)


def test_counts_of_the_base_are_its_results(tail_manifest: Tree) -> None:
    tree = delta_on(delta_on(tail_manifest, 768), 1024)
    tree["base_block_counts"] = [5, 2, 1]
    with pytest.raises(InputError, match="other counts"):
        Inspection.of(encode(sealed(tree)), "m.json")


FLAT_ROWS: list[tuple[str, Callable[[Tree], object], str]] = [
    ("keys", lambda tree: tree.pop("context_digest"), "/context_digest"),
    ("no other key", lambda tree: tree.update(schema_version=1), "/schema_version"),
    ("ABI", lambda tree: tree.update(format_abi=0), "/format_abi"),
    ("some chunks", lambda tree: tree["chunks"].clear(), "/chunks"),
    ("from 0", lambda tree: tree["chunks"].pop(0), "/chunks/0/logical_start"),
    ("no gap", lambda tree: tree["chunks"].pop(1), "/chunks/1/logical_start"),
    ("whole chunks", lambda tree: tree["chunks"][0].update(logical_end=255), "/chunks/0/logical_end"),
    ("a last chunk", lambda tree: tree["chunks"][-1].update(logical_end=512), "/chunks/2/logical_end"),
    ("no long chunk", lambda tree: tree["chunks"][-1].update(logical_end=769), "/chunks/2/logical_end"),
    ("bytes", lambda tree: tree["chunks"][0].update(bytes=0), "/chunks/0/bytes"),
    ("chunk keys", lambda tree: tree["chunks"][0].update(encoded_start=0), "/chunks/0/encoded_start"),
    ("the end", lambda tree: tree.update(committed_tokens=1024), "/committed_tokens"),
]


@pytest.mark.parametrize(("rule", "break_it", "pointer"), FLAT_ROWS, ids=[row[0] for row in FLAT_ROWS])
def test_flat_rules(snapshot: LoadedManifest, rule: str, break_it: Callable[[Tree], object], pointer: str) -> None:
    tree = flat(snapshot, 768)
    break_it(tree)
    with pytest.raises(InputError) as caught:
        Inspection.of(encode(tree), "m.json")
    assert caught.value.at is not None
    assert (caught.value.at.file, caught.value.at.pointer) == ("m.json", pointer)


@pytest.mark.parametrize("schema", ["sparkcache-page-delta-manifest/v3", "sparkcache-clear-once/v1", None, 2])
def test_other_documents_are_named(schema: Any) -> None:
    with pytest.raises(InputError, match="is not read here") as caught:
        Inspection.of(encode({"schema": schema}), "m.json")
    assert caught.value.code is Code.UNKNOWN_NAME


def test_only_a_whole_snapshot_is_a_manifest(tail_manifest: Tree) -> None:
    with pytest.raises(InputError):
        Manifest.parse(encode(delta_on(tail_manifest, 768)), "m.json")
