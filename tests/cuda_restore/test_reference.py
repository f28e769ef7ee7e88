"""The read-back reference: it finds every page by its block and every stored byte by the format page, and imports no plan."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError
from countermark.cuda_restore.arena import Arena, BlockTable
from countermark.cuda_restore.geometry import Geometry, Group, Layer, Layout
from countermark.cuda_restore.page_digest import DigestKey, Digests, page_digests
from countermark.cuda_restore.reader import LoadedManifest
from countermark.cuda_restore.reference import Page, differing_pages, expected_digests, page_homes, pages_in_order
from countermark.cuda_restore.store import Folder
from countermark.cuda_restore.writer import layers_in_order, write_snapshot

KEY = DigestKey(0x1234, 0x5678)
Pages = dict[tuple[int, str], bytes]


def expected(loaded: LoadedManifest, layout: Layout) -> Digests:
    with Folder.at(loaded.path.parents[2] / "chunks") as chunks:
        return expected_digests(loaded.manifest, chunks, layout, KEY)


def placed_by_hand(geometry: Geometry, pages: Pages, arena: Arena, blocks: BlockTable) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    buffer = np.full(arena.size_bytes, 0xA5, np.uint8)
    for number, (group, row) in enumerate(zip(geometry.layout.groups, blocks.groups, strict=True)):
        for layer, tensor in zip(group.layers, arena.tensors[number], strict=True):
            for page, block in enumerate(row.tolist()):
                data = pages[number, layer.name][page * layer.bytes_per_page : (page + 1) * layer.bytes_per_page]
                start = tensor.start + block * tensor.stride
                buffer[start : start + layer.bytes_per_page] = np.frombuffer(data, np.uint8)
    return buffer


def test_it_imports_nothing_of_the_placement_that_it_judges() -> None:
    script = "import sys, countermark.cuda_restore.reference; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "countermark.cuda_restore.arena" in loaded
    for name in ("plan", "spans", "stream", "staging", "device", "engine"):
        assert f"countermark.cuda_restore.{name}" not in loaded


@pytest.mark.parametrize("object_bytes", [200, 333, 1000, 3424, 100_000])
@pytest.mark.parametrize("alignment", [1, 64])
def test_pages_placed_by_hand_agree(
    tmp_path: Path, geometry: Geometry, context: str, layer_pages: Pages, object_bytes: int, alignment: int
) -> None:
    loaded = write_snapshot(tmp_path, geometry, context, layers_in_order(geometry, layer_pages), object_bytes=object_bytes)
    arena = Arena.of(geometry.layout, (9, 7, 5), page_alignment_bytes=alignment)
    blocks = BlockTable.shuffled(geometry.block_counts, arena.capacities, seed=3)
    buffer = placed_by_hand(geometry, layer_pages, arena, blocks)
    found = page_digests(buffer, page_homes(arena, blocks), KEY)
    assert differing_pages(expected(loaded, geometry.layout), found) == []
    order = pages_in_order(geometry.layout, geometry.block_counts)
    assert len(order) == len(found) == geometry.pages
    wrong = order.index(Page(0, "0.v", 2))
    start = int(page_homes(arena, blocks)["start"][wrong])
    buffer[start] ^= 1
    assert differing_pages(expected(loaded, geometry.layout), page_digests(buffer, page_homes(arena, blocks), KEY)) == [wrong]


def test_pages_are_named() -> None:
    assert str(Page(1, "03.k", 7)) == "group 1, layer 03.k, page 7"


def test_a_damaged_object_is_no_expectation(snapshot: LoadedManifest, layout: Layout, tmp_path: Path) -> None:
    path = tmp_path / "chunks" / snapshot.manifest.objects[1].file_name
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        expected(snapshot, layout)
    assert caught.value.code is Code.BAD_DIGEST


def test_another_layout_is_refused(snapshot: LoadedManifest, layout: Layout) -> None:
    other = Layout((*layout.groups[:2], Group(512, (Layer("2.other", "float32", (8, 5), 160),))))
    with pytest.raises(InputError, match="layout_sha256"):
        expected(snapshot, other)


def test_nothing_compared_is_no_agreement() -> None:
    none = np.zeros((0, 2), np.uint64)
    for pair in ((none, none), (np.zeros((2, 2), np.uint64), np.zeros((1, 2), np.uint64))):
        with pytest.raises(InputError) as caught:
            differing_pages(*pair)
        assert caught.value.code is Code.NOTHING_EVALUATED
