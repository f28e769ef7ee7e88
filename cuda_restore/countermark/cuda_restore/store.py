"""The folders of a snapshot store, opened so that a name in a manifest can never lead elsewhere.

    <root>/chunks/<sha256>.spcc                             the objects of all streams, by content
    <root>/manifests/<storage_key>/<context_digest>.json    the roots; one that exists is complete
    <root>/layouts/<layout_sha256>.json                     ours: the layout documents that stream headers name

A folder is held open and its members are opened by one plain name each, never through a link, as regular files of the size that was
promised. (Format page 2.2, 3.1 step 6.)
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location

CHUNKS = "chunks"
MANIFESTS = "manifests"
LAYOUTS = "layouts"
MAINTENANCE_LOCK = ".maintenance.lock"
PIECE_BYTES = 1024 * 1024

_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A regular file that was opened under a folder; close it, or use it in a `with`. Reads are positional and may be concurrent."""

    fd: int
    path: Path
    size_bytes: int

    def read_into(self, into: memoryview, offset: int = 0) -> None:
        """Fill `into` from `offset`. A file that ends sooner is an `InputError`, as a failing disk is."""
        filled = 0
        while filled < len(into):
            try:
                count = os.preadv(self.fd, [into[filled:]], offset + filled)
            except OSError as error:
                raise unreadable(self.path, f"cannot be read: {error.strerror}") from None
            if not count:
                raise unreadable(self.path, f"ends after {offset + filled} bytes where {offset + len(into)} were wanted")
            filled += count

    def pieces(self, into: memoryview, piece_bytes: int = PIECE_BYTES) -> Iterator[memoryview]:
        """Fill `into`, which has the size of the file, piece by piece; each piece is yielded once it is read, to be hashed while hot."""
        for start in range(0, len(into), piece_bytes):
            piece = into[start : start + piece_bytes]
            self.read_into(piece, start)
            yield piece

    def read_all(self) -> bytes:
        """The whole file, as large as it was when it was opened."""
        whole = bytearray(self.size_bytes)
        self.read_into(memoryview(whole))
        return bytes(whole)

    def close(self) -> None:
        """Release the descriptor."""
        os.close(self.fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder held open; close it, or use it in a `with`. `path` is for messages only."""

    fd: int
    path: Path

    @classmethod
    def at(cls, path: Path) -> Self:
        """Open a folder that the user named; links in the user's own path are followed, once, now."""
        try:
            resolved = path.resolve(strict=True)
            return cls(os.open(resolved, _FOLDER_FLAGS), resolved)
        except OSError as error:
            raise unreadable(path, f"is no folder that can be opened: {error.strerror}") from None

    def folder(self, name: str) -> "Folder":
        """Open the folder `name` inside, which must not be a link."""
        path = self._member(name)
        try:
            return Folder(os.open(name, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=self.fd), path)
        except OSError as error:
            raise unreadable(path, f"is no folder that can be opened: {error.strerror}") from None

    def open(self, name: str, size_bytes: int | None = None) -> OpenFile:
        """Open the regular file `name`, which must have `size_bytes` if that is given."""
        path = self._member(name)
        try:
            fd = os.open(name, _FILE_FLAGS, dir_fd=self.fd)
        except OSError as error:
            raise unreadable(path, f"cannot be opened, or is a link: {error.strerror}") from None
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise unreadable(path, "is not a regular file")
            if size_bytes is not None and found.st_size != size_bytes:
                raise unreadable(path, f"has {found.st_size} bytes, its descriptor promises {size_bytes}")
        except InputError:
            os.close(fd)
            raise
        return OpenFile(fd, path, found.st_size)

    def close(self) -> None:
        """Release the descriptor."""
        os.close(self.fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _member(self, name: str) -> Path:
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            raise InputError(Code.UNREADABLE, f"{name!r} is not a plain file name", at=Location(str(self.path)), fix="name a member")
        return self.path / name


def unreadable(path: Path, why: str) -> InputError:
    """The error for a file or folder that a restore cannot use."""
    return InputError(
        Code.UNREADABLE, f"{path.name} {why}", at=Location(str(path)), fix="publish the snapshot again, or recompute the prefix"
    )
