"""Loading and checking a snapshot: any byte of anything changed is refused, and the message says which."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError
from countermark.cuda_restore.geometry import Geometry, Layout
from countermark.cuda_restore.manifest import MANIFEST_BYTES_MAX
from countermark.cuda_restore.reader import (
    LoadedManifest,
    check_snapshot,
    find_layout,
    find_manifest,
    load_manifest,
    read_head,
    read_object,
    reload_manifest,
)
from countermark.cuda_restore.store import Folder
from countermark.cuda_restore.stream import StreamLayout, header_of


@pytest.fixture
def chunks(snapshot: LoadedManifest) -> Path:
    return snapshot.path.parents[2] / "chunks"


def test_load_and_find_agree(tmp_path: Path, snapshot: LoadedManifest) -> None:
    manifest = snapshot.manifest
    assert load_manifest(snapshot.path) == snapshot
    assert find_manifest(tmp_path, manifest.identity.storage_key, manifest.context_digest) == snapshot
    assert snapshot.digest == Digest.of(DigestKind.FILE, snapshot.path.read_bytes())
    assert reload_manifest(snapshot) == snapshot


def test_absent_linked_or_huge_manifests(tmp_path: Path, snapshot: LoadedManifest) -> None:
    (tmp_path / "link.json").symlink_to(snapshot.path)
    (tmp_path / "huge.json").write_bytes(b" " * (MANIFEST_BYTES_MAX + 1))
    for name, code in (("absent.json", Code.UNREADABLE), ("link.json", Code.UNREADABLE), ("huge.json", Code.TOO_LARGE)):
        with pytest.raises(InputError) as caught:
            load_manifest(tmp_path / name)
        assert caught.value.code is code


def test_a_manifest_under_another_name_is_not_found(tmp_path: Path, snapshot: LoadedManifest) -> None:
    key, context = snapshot.manifest.identity.storage_key, snapshot.manifest.context_digest
    shutil.copy(snapshot.path, snapshot.path.with_name(f"{'0' * 64}.json"))
    with pytest.raises(InputError, match="its path for 000"):
        find_manifest(tmp_path, key, "0" * 64)
    shutil.copytree(snapshot.path.parent, snapshot.path.parents[1] / ("1" * 64))
    with pytest.raises(InputError, match="its path for 111"):
        find_manifest(tmp_path, "1" * 64, context)


def test_a_manifest_that_changed_since_the_lookup(snapshot: LoadedManifest) -> None:
    snapshot.path.write_bytes(snapshot.path.read_bytes() + b"\n")
    with pytest.raises(InputError, match="when it was looked up") as caught:
        reload_manifest(snapshot)
    assert caught.value.code is Code.BAD_DIGEST


def test_whole_snapshot(snapshot: LoadedManifest, chunks: Path, geometry: Geometry) -> None:
    with Folder.at(chunks) as folder:
        assert check_snapshot(snapshot.manifest, folder).layout is None
        found = check_snapshot(snapshot.manifest, folder, geometry.layout)
        assert read_head(folder, snapshot.manifest) == (chunks / snapshot.manifest.objects[0].file_name).read_bytes()
    assert (found.header, found.layout) == (header_of(geometry), StreamLayout.of(geometry))


def test_every_changed_byte_of_every_object_is_refused(snapshot: LoadedManifest, chunks: Path) -> None:
    """Each byte of the header's neighbourhood, and one in seven of the rest, flipped in turn."""
    with Folder.at(chunks) as folder:
        for descriptor in snapshot.manifest.objects:
            path, into = chunks / descriptor.file_name, memoryview(bytearray(descriptor.size_bytes))
            whole = path.read_bytes()
            for place in sorted({*range(0, len(whole), 7), len(whole) - 1, *range(160 if descriptor.index == 0 else 0)}):
                path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
                with pytest.raises(InputError) as caught:
                    read_object(folder, descriptor, into)
                assert caught.value.code is Code.BAD_DIGEST
            path.write_bytes(whole)
            read_object(folder, descriptor, into)
            assert bytes(into) == whole


@pytest.mark.parametrize("number", [0, 1, 3])
def test_a_damaged_cut_or_missing_object(snapshot: LoadedManifest, chunks: Path, number: int) -> None:
    path = chunks / snapshot.manifest.objects[number].file_name
    whole = path.read_bytes()
    for data, code in (
        (bytes([whole[0] ^ 1]) + whole[1:], Code.BAD_DIGEST),
        (whole[:-1], Code.UNREADABLE),
        (whole + b"x", Code.UNREADABLE),
    ):
        path.write_bytes(data)
        with Folder.at(chunks) as folder, pytest.raises(InputError) as caught:
            check_snapshot(snapshot.manifest, folder)
        assert caught.value.code is code
    path.unlink()
    with Folder.at(chunks) as folder, pytest.raises(InputError, match="cannot be opened"):
        check_snapshot(snapshot.manifest, folder)


def test_a_stream_digest_that_the_objects_do_not_make(snapshot: LoadedManifest, chunks: Path) -> None:
    wrong = replace(snapshot.manifest, stream=Digest(DigestKind.STREAM, "0" * 64))
    with Folder.at(chunks) as folder, pytest.raises(InputError, match="the stream has SHA-256"):
        check_snapshot(wrong, folder)


def test_layouts_are_found_by_their_digest(snapshot: LoadedManifest, chunks: Path, layout: Layout) -> None:
    assert find_layout(chunks, layout.sha256) == layout
    path = chunks.parent / "layouts" / f"{layout.sha256}.json"
    path.write_bytes(path.read_bytes().replace(b"0.k", b"0.j"))
    with pytest.raises(InputError, match="its name promises") as caught:
        find_layout(chunks, layout.sha256)
    assert caught.value.code is Code.BAD_DIGEST
    path.unlink()
    with pytest.raises(InputError):
        find_layout(chunks, layout.sha256)
