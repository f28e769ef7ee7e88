"""The signed root: made from rank manifests, read strictly, and held against the manifests that a restore finds."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, NothingError, RefusedError
from countermark.cuda_restore.geometry import Geometry
from countermark.cuda_restore.identity import PublicationSchema
from countermark.cuda_restore.reader import LoadedManifest, load_manifest
from countermark.cuda_restore.root import RankRoot, Revision, SnapshotRoot
from countermark.cuda_restore.writer import layers_in_order, write_snapshot

Tree = dict[str, Any]
Pages = dict[tuple[int, str], bytes]
HEX = "0" * 64
DRAFT = Revision("incoai/GLM-5.3-Flash-DFlash2", "bf582e4eacc1810f76656d1811693ff6c6737d2a")


@pytest.fixture
def ranks(tmp_path: Path, geometry: Geometry, context: str, layer_pages: Pages) -> list[LoadedManifest]:
    """Both ranks of TP2, with different pages."""
    written = []
    for rank in (1, 0):
        pages = {key: bytes([rank]) + value[1:] for key, value in layer_pages.items()}
        at_rank = replace(geometry, identity=geometry.identity.at_rank(rank, 0))
        written.append(write_snapshot(tmp_path, at_rank, context, layers_in_order(at_rank, pages), object_bytes=1000))
    return written


def test_root_of_two_ranks(ranks: list[LoadedManifest], geometry: Geometry) -> None:
    root = SnapshotRoot.of(ranks, layout_sha256=geometry.layout.sha256, draft=DRAFT)
    assert root.subjects == (ranks[1].digest, ranks[0].digest)
    assert (root.missing_ranks, root.publication_mode) == ((), "snapshot-v1")
    assert SnapshotRoot.of(ranks[:1]).missing_ranks == (0,)
    tree = root.to_json()
    assert tree["topology"] == {"tp": 2, "dcp": 1, "pp": 1}
    assert (tree["model"], tree["draft"]) == (None, DRAFT.to_json())
    assert SnapshotRoot.parse(json.loads(json.dumps(tree)), "statement", "/predicate") == root
    for loaded in ranks:
        assert root.check(load_manifest(loaded.path)) == RankRoot.of(loaded)


def test_the_published_example_reads() -> None:
    """The seed's snapshot: one rank of four, self-digest, layout, model and draft not recorded."""
    example: Tree = {
        "schema": "sparkcache-page-snapshot-manifest/v2",
        "context_digest": "b4161571df103395e2abae10372a90f35468561ec6c42bf4a7b7f0d0dfda5873",
        "committed_tokens": 131072,
        "topology": {"tp": 4, "dcp": 1, "pp": 1},
        "publication_mode": "snapshot-v1",
        "layout_sha256": None,
        "model": None,
        "draft": None,
        "ranks": [
            {
                "rank": 0,
                "manifest": "file:sha256:e2190210966b887d6c37649b609196f9dfd5283939dad69b4e9dfb0a1b2aa833",
                "self": None,
                "stream": "stream:sha256:2329d5a063b94f22d44e4c9ef048f19f41a522414dd338733c3406722a63b17e",
                "encoded_bytes": 813068464,
                "objects": 13,
            }
        ],
    }
    root = SnapshotRoot.parse(example, "statement")
    assert (root.missing_ranks, root.to_json()) == ((1, 2, 3), example)
    root.check_layout(HEX)
    del example["model"], example["draft"]
    assert SnapshotRoot.parse(example, "statement") == root


ROWS: list[tuple[str, Callable[[Tree], object], str, Code]] = [
    ("schema", lambda tree: tree.update(schema="v1"), "/schema", Code.SCHEMA_INVALID),
    ("keys", lambda tree: tree.pop("layout_sha256"), "/layout_sha256", Code.SCHEMA_INVALID),
    ("no other key", lambda tree: tree.update(passed=True), "/passed", Code.SCHEMA_INVALID),
    ("context", lambda tree: tree.update(context_digest="x"), "/context_digest", Code.BAD_DIGEST),
    ("tokens", lambda tree: tree.update(committed_tokens=100), "/committed_tokens", Code.SCHEMA_INVALID),
    ("tokens are an integer", lambda tree: tree.update(committed_tokens=True), "/committed_tokens", Code.BAD_NUMBER),
    ("pp", lambda tree: tree["topology"].update(pp=2), "/topology/pp", Code.SCHEMA_INVALID),
    ("tp", lambda tree: tree["topology"].update(tp="2"), "/topology/tp", Code.BAD_NUMBER),
    ("degrees divide", lambda tree: tree["topology"].update(dcp=3), "/topology", Code.SCHEMA_INVALID),
    ("some ranks", lambda tree: tree["ranks"].clear(), "/ranks", Code.SCHEMA_INVALID),
    ("a rank once", lambda tree: tree["ranks"][1].update(rank=0), "/ranks/1/rank", Code.SCHEMA_INVALID),
    ("a rank of the topology", lambda tree: tree["ranks"][1].update(rank=2), "/ranks/1/rank", Code.SCHEMA_INVALID),
    ("a rank from 0", lambda tree: tree["ranks"][0].update(rank=-1), "/ranks/0/rank", Code.SCHEMA_INVALID),
    ("objects", lambda tree: tree["ranks"][0].update(objects=0), "/ranks/0/objects", Code.SCHEMA_INVALID),
    ("bytes", lambda tree: tree["ranks"][0].update(encoded_bytes=0), "/ranks/0/encoded_bytes", Code.SCHEMA_INVALID),
    ("kind of the manifest", lambda tree: tree["ranks"][0].update(manifest=f"object:sha256:{HEX}"), "/ranks/0/manifest", Code.BAD_DIGEST),
    ("kind of the self-digest", lambda tree: tree["ranks"][0].update(self=f"file:sha256:{HEX}"), "/ranks/0/self", Code.BAD_DIGEST),
    ("a whole stream digest", lambda tree: tree["ranks"][0].update(stream="stream:sha256:00"), "/ranks/0/stream", Code.BAD_DIGEST),
    ("no bare digest", lambda tree: tree["ranks"][0].update(manifest=HEX), "/ranks/0/manifest", Code.TAG_NOT_DIGEST),
    ("layout", lambda tree: tree.update(layout_sha256="x"), "/layout_sha256", Code.BAD_DIGEST),
    ("mode", lambda tree: tree.update(publication_mode=""), "/publication_mode", Code.SCHEMA_INVALID),
    ("a whole revision", lambda tree: tree.update(model={"repository": "a", "revision": "main"}), "/model/revision", Code.BAD_DIGEST),
    ("model keys", lambda tree: tree.update(model={"repository": "a"}), "/model/revision", Code.SCHEMA_INVALID),
]


@pytest.mark.parametrize(("rule", "break_it", "pointer", "code"), ROWS, ids=[row[0] for row in ROWS])
def test_predicate_rules(ranks: list[LoadedManifest], rule: str, break_it: Callable[[Tree], object], pointer: str, code: Code) -> None:
    tree: Tree = json.loads(json.dumps(SnapshotRoot.of(ranks).to_json()))
    break_it(tree)
    with pytest.raises(InputError) as caught:
        SnapshotRoot.parse(tree, "statement", "/predicate")
    assert caught.value.at is not None
    assert (caught.value.at.file, caught.value.at.pointer, caught.value.code) == ("statement", f"/predicate{pointer}", code)


def test_ranks_of_different_snapshots_are_no_root(ranks: list[LoadedManifest]) -> None:
    manifest = ranks[1].manifest
    for other in (
        replace(manifest, context_digest=HEX),
        replace(manifest, committed_tokens=768),
        replace(manifest, identity=replace(manifest.identity, rope_layout="other")),
    ):
        with pytest.raises(InputError, match="differs from"):
            SnapshotRoot.of([ranks[0], replace(ranks[1], manifest=other)])
    with pytest.raises(InputError, match="stands twice"):
        SnapshotRoot.of([ranks[0], ranks[0]])
    with pytest.raises(NothingError):
        SnapshotRoot.of([])


def test_an_unlisted_manifest_is_refused(ranks: list[LoadedManifest]) -> None:
    root = SnapshotRoot.of(ranks[:1])
    with pytest.raises(RefusedError, match="not listed") as caught:
        root.check(ranks[1])
    assert (caught.value.code, caught.value.exit) == (Code.SUBJECT_MISMATCH, ExitCode.NO)


def test_a_resealed_manifest_is_refused(ranks: list[LoadedManifest]) -> None:
    """Somebody edits the store and makes every digest fit again; only the signed root tells."""
    root = SnapshotRoot.of(ranks)
    edited = replace(ranks[0].manifest, identity=replace(ranks[0].manifest.identity, rope_layout="other"))
    ranks[0].path.write_bytes(edited.encode())
    with pytest.raises(RefusedError):
        root.check(load_manifest(ranks[0].path))


@pytest.mark.parametrize(
    "change",
    [
        {"context_digest": HEX},
        {"committed_tokens": 256},
        {"tp": 4},
        {"dcp": 2},
        {"publication_mode": PublicationSchema.PAGE_TAIL_COW_V1.publication_mode},
        {"stream": Digest(DigestKind.STREAM, HEX)},
        {"self_digest": Digest(DigestKind.MANIFEST_SELF, HEX)},
        {"encoded_bytes": 1},
        {"objects": 1},
        {"rank": 0},
    ],
)
def test_a_root_that_says_otherwise_is_refused(ranks: list[LoadedManifest], change: dict[str, Any]) -> None:
    root = SnapshotRoot.of(ranks[:1])
    of_rank = {name: value for name, value in change.items() if name in RankRoot.__slots__}
    of_root = {name: value for name, value in change.items() if name not in of_rank}
    wrong = replace(root, ranks=(replace(root.ranks[0], **of_rank),), **of_root)
    with pytest.raises(RefusedError, match="in the signed root"):
        wrong.check(ranks[0])


def test_layout_of_the_root(ranks: list[LoadedManifest], geometry: Geometry) -> None:
    root = SnapshotRoot.of(ranks, layout_sha256=geometry.layout.sha256)
    root.check_layout(geometry.layout.sha256)
    with pytest.raises(RefusedError):
        root.check_layout(HEX)


def test_no_model_can_be_stated() -> None:
    assert Revision("none", "none").to_json() == {"repository": "none", "revision": "none"}
    with pytest.raises(InputError):
        Revision("org/model", "none")
