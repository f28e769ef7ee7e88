"""Opening files: a name in a manifest leads to a regular file under the folder, of the promised size, or nowhere."""

import os
from pathlib import Path

import pytest

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError
from countermark.cuda_restore.store import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file, links in and out, a pipe and a folder; a secret lies beside it."""
    (tmp_path / "secret").write_bytes(b"12345")
    root = tmp_path / "chunks"
    (root / "inner").mkdir(parents=True)
    (root / "inner" / "deep").write_bytes(b"deep")
    (root / "file").write_bytes(b"12345")
    (root / "link-out").symlink_to(tmp_path / "secret")
    (root / "link-in").symlink_to("file")
    (root / "link-folder").symlink_to("inner")
    os.mkfifo(root / "pipe")
    return root


def test_a_regular_file_of_the_right_size(folder: Path) -> None:
    with Folder.at(folder) as opened, opened.open("file", 5) as file:
        assert file.read_all() == b"12345"
        assert (file.size_bytes, file.path) == (5, folder.resolve() / "file")
    with Folder.at(folder) as opened, opened.folder("inner") as inner, inner.open("deep") as file:
        assert file.read_all() == b"deep"


@pytest.mark.parametrize(
    "name", ["link-out", "link-in", "pipe", "inner", "absent", "../secret", "inner/deep", "..", ".", "", "a\0b", "/etc/hostname"]
)
def test_anything_else_is_refused(folder: Path, name: str) -> None:
    with Folder.at(folder) as opened, pytest.raises(InputError) as caught:
        opened.open(name)
    assert (caught.value.code, bool(caught.value.fix)) == (Code.UNREADABLE, True)


@pytest.mark.parametrize("size", [0, 4, 6])
def test_another_size_is_refused(folder: Path, size: int) -> None:
    with Folder.at(folder) as opened, pytest.raises(InputError, match="promises"):
        opened.open("file", size)


@pytest.mark.parametrize("name", ["link-folder", "file", "absent", ".."])
def test_only_true_folders_are_entered(folder: Path, name: str) -> None:
    with Folder.at(folder) as opened, pytest.raises(InputError):
        opened.folder(name)


def test_the_users_own_path_may_hold_a_link(folder: Path) -> None:
    with Folder.at(folder / "link-folder") as opened, opened.open("deep", 4) as file:
        assert file.read_all() == b"deep"
    for path in (folder / "file", folder / "absent"):
        with pytest.raises(InputError):
            Folder.at(path)


def test_refusals_leave_no_descriptor_open(folder: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    for name in ("pipe", "file"):
        with Folder.at(folder) as opened, pytest.raises(InputError):
            opened.open(name, 1)
    after = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    assert after == before


def test_reads_are_exact_and_piecewise(folder: Path) -> None:
    into = memoryview(bytearray(5))
    with Folder.at(folder) as opened, opened.open("file", 5) as file:
        assert [bytes(piece) for piece in file.pieces(into, 2)] == [b"12", b"34", b"5"]
        assert bytes(into) == b"12345"
        file.read_into(into[:2], 3)
        assert bytes(into[:2]) == b"45"


def test_a_file_that_shrank_is_a_short_read(folder: Path) -> None:
    with Folder.at(folder) as opened, opened.open("file", 5) as file:
        os.truncate(folder / "file", 3)
        with pytest.raises(InputError, match="ends after 3 bytes where 5 were wanted"):
            file.read_all()


def test_a_read_that_fails_is_typed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> int:
        raise OSError(5, "Input/output error")

    with Folder.at(folder) as opened, opened.open("file", 5) as file:
        monkeypatch.setattr(os, "preadv", broken)
        with pytest.raises(InputError, match="Input/output error"):
            file.read_all()
