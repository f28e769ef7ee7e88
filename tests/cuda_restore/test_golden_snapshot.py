"""The golden snapshot, written by a script that knows the format page and none of our code, read and written again by ours."""

import ast
import hashlib
import runpy
import struct
from pathlib import Path

from countermark.cuda_restore.geometry import Geometry
from countermark.cuda_restore.identity import ContextSalt, context_digest, salt_of
from countermark.cuda_restore.reader import LoadedManifest, check_snapshot, find_layout, find_manifest, read_head
from countermark.cuda_restore.store import Folder
from countermark.cuda_restore.stream import StreamHeader, StreamLayout
from countermark.cuda_restore.topology import topology_of, topology_sha256
from countermark.cuda_restore.writer import layers_in_order, write_snapshot

GOLDEN = Path(__file__).parent.parent / "data" / "golden_snapshot"
STORE = GOLDEN / "store"
KEY = "86a618c9f0a62cab339ed5827f93b1e280fa587c07cc30072ecefc98af0c4754"
CONTEXT = "dac377ad0e25b66b77160c49b981075fb7ab51453d59ec38526efadc3e9222c2"


def golden() -> LoadedManifest:
    return find_manifest(STORE, KEY, CONTEXT)


def stream_layout(loaded: LoadedManifest) -> StreamLayout:
    with Folder.at(STORE / "chunks") as chunks:
        head = read_head(chunks, loaded.manifest)
    header, _ = StreamHeader.decode(head, "golden")
    return StreamLayout.read(head, loaded.manifest, find_layout(STORE / "chunks", header.layout_sha256), "golden")


def golden_page(group: int, layer: str, number: int, size: int) -> bytes:
    seed = f"{group}/{layer}/{number}".encode()
    return b"".join(hashlib.sha256(seed + struct.pack("<I", count)).digest() for count in range(-(-size // 32)))[:size]


def test_reads_and_authenticates() -> None:
    loaded = golden()
    with Folder.at(STORE / "chunks") as chunks:
        found = check_snapshot(loaded.manifest, chunks, stream_layout(loaded).geometry.layout)
    assert found.header.block_counts == (3, 2, 1)
    assert loaded.manifest.identity.storage_key == KEY
    assert loaded.manifest.self_digest.hex == "7da60e9833f0c0d09228eaab754c8185787a45a83e98447951bf41ac2d3d527b"


def test_every_page_lies_where_the_format_page_says() -> None:
    loaded = golden()
    layout = stream_layout(loaded)
    stream = b"".join((STORE / "chunks" / one.file_name).read_bytes() for one in loaded.manifest.objects)
    pages = 0
    for run in layout.runs:
        name = layout.geometry.layout.groups[run.group].layers[run.layer].name
        for page in range(run.pages):
            start = run.page_start(page)
            assert stream[start : start + run.bytes_per_page] == golden_page(run.group, name, page, run.bytes_per_page)
            pages += 1
    assert pages == layout.geometry.pages == 3 * 2 + 2 * 2 + 1


def test_digests_of_identity_context_and_topology() -> None:
    loaded = golden()
    tokens = [number * 7 % 32000 for number in range(768)]
    assert context_digest(salt_of(loaded.manifest.identity, ContextSalt.MULTIMODAL_V2), tokens) == CONTEXT
    assert loaded.manifest.identity.topology_sha256 == topology_sha256(topology_of(stream_layout(loaded).geometry.layout))


def test_our_writer_makes_the_same_files(tmp_path: Path) -> None:
    loaded = golden()
    geometry: Geometry = stream_layout(loaded).geometry
    layers = {
        (number, layer.name): b"".join(golden_page(number, layer.name, page, layer.bytes_per_page) for page in range(count))
        for number, (group, count) in enumerate(zip(geometry.layout.groups, geometry.block_counts, strict=True))
        for layer in group.layers
    }
    write_snapshot(tmp_path, geometry, CONTEXT, layers_in_order(geometry, layers), object_bytes=2048)
    (tmp_path / ".maintenance.lock").unlink()
    assert files(tmp_path) == files(STORE)


def test_the_script_is_independent_and_made_these_files(tmp_path: Path) -> None:
    script = GOLDEN / "make_golden.py"
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(script.read_text()))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported == {"hashlib", "json", "pathlib", "struct", "sys", "typing"}
    runpy.run_path(str(script))["main"](tmp_path)
    assert files(tmp_path) == files(STORE)


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
