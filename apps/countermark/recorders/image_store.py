"""Where an image's bytes lie: a folder or a tar archive, behind one question, "what is at this path, and what does it hash to?".

Nothing is extracted. A tar archive is read once, front to back, compressed or not: every member is hashed, and those small enough
to be a JSON document are kept. Two members of one name, links and paths that leave the archive mean different things to different
readers, so they are refused.
"""

import gzip
import hashlib
import io
import os
import tarfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, Protocol

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.recorders.files import CHUNK_BYTES, FileKind, kind_of, opened, too_large, unreadable
from countermark.recorders.recording import Progress

MAX_DOCUMENT_BYTES = 4 << 20
MAX_KEPT_BYTES = 64 << 20
MAX_MEMBERS = 200_000

_MAX_HEADER_BYTES = 16 << 20
_GZIP = b"\x1f\x8b"
_JSON_STARTS = (b"{", b"[")


@dataclass(frozen=True, slots=True)
class Member:
    """A file in a store: size, SHA-256 in hex, its first bytes, and its content when it may be a JSON document."""

    size_bytes: int
    sha256: str
    start: bytes
    document: bytes | None

    @property
    def is_gzip(self) -> bool:
        """Whether the content begins as gzip does."""
        return self.start.startswith(_GZIP)


class Store(Protocol):
    """A folder or an archive of files, addressed by POSIX path."""

    @property
    def name(self) -> str:
        """What errors call it."""

    def member(self, path: str) -> Member | None:
        """The regular file at `path`, hashed; `None` when there is none."""


class DirectoryStore:
    """An OCI layout in a folder; files are hashed when they are asked for, each once."""

    def __init__(self, root: Path, progress: Progress) -> None:
        self.name = str(root)
        self._root = root
        self._progress = progress
        self._total_bytes = _size_below(root / "blobs")
        self._done_bytes = 0
        self._known: dict[str, Member] = {}

    def member(self, path: str) -> Member | None:
        """The regular file at `path`, hashed."""
        if path not in self._known:
            if kind_of(self._root / path) is None:
                return None
            with opened(self._root / path) as file:
                self._known[path] = _hashed(file, self._advance)
        return self._known[path]

    def _advance(self, size_bytes: int) -> None:
        self._done_bytes += size_bytes
        self._progress(self._done_bytes, max(self._total_bytes, self._done_bytes))


class TarStore:
    """A tar archive, plain or gzip; read whole when made. Errors are `InputError` and name the member."""

    def __init__(self, path: Path, progress: Progress) -> None:
        self.name = str(path)
        self._members: dict[str, Member] = {}
        self._kept_bytes = 0
        with opened(path) as file:
            total_bytes = os.fstat(file.fileno()).st_size
            packed = file.read(2) == _GZIP
            file.seek(0)
            try:
                self._read(gzip.GzipFile(fileobj=file) if packed else file, lambda: progress(file.tell(), total_bytes))
            except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, ValueError, OverflowError, RecursionError) as error:
                raise self._error(Code.UNREADABLE, f"not a whole tar archive: {error}", "make the archive again") from None

    def member(self, path: str) -> Member | None:
        """The regular file at `path`."""
        return self._members.get(path)

    def _read(self, source: BinaryIO | gzip.GzipFile, advance: Callable[[], None]) -> None:
        stream = _Bounded(source, self.name)
        with tarfile.open(fileobj=stream, mode="r:") as archive:
            for number, entry in enumerate(archive):
                if number >= MAX_MEMBERS:
                    raise self._error(Code.TOO_LARGE, f"more than {MAX_MEMBERS} members", "check the archive")
                if not entry.isdir():
                    self._add(archive, entry, advance)
        while stream.read(CHUNK_BYTES):  # to the end, where gzip keeps its checksum
            advance()

    def _add(self, archive: tarfile.TarFile, entry: tarfile.TarInfo, advance: Callable[[], None]) -> None:
        path = entry.name.removeprefix("./")
        if entry.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or entry.issparse():
            raise self._error(Code.UNREADABLE, "is a link or a special file", "make the archive anew, from an OCI layout folder", path)
        if path.startswith("/") or {"", ".", ".."}.intersection(path.split("/")):
            raise self._error(Code.UNREADABLE, "has a path that leaves the archive", "do not use this archive", path)
        if path in self._members:
            raise self._error(Code.DUPLICATE_KEY, "stands twice in the archive", "do not use this archive", path)
        content = archive.extractfile(entry)
        if content is None:
            raise self._error(Code.UNREADABLE, "has no content", "make the archive again", path)
        self._members[path] = found = _hashed(content, lambda _size_bytes: advance())
        if found.size_bytes != entry.size:
            raise self._error(Code.UNREADABLE, "is cut off", "make the archive again", path)
        self._kept_bytes += len(found.document or b"")
        if self._kept_bytes > MAX_KEPT_BYTES:
            raise too_large(f"{self.name} (its JSON documents together)", MAX_KEPT_BYTES)

    def _error(self, code: Code, message: str, fix: str, member: str | None = None) -> InputError:
        shown = (member or "").encode(errors="backslashreplace").decode()  # a name in an archive need not be UTF-8
        return InputError(code, message, at=Location(f"{self.name}!{shown}" if member else self.name), fix=fix)


class _Bounded(io.RawIOBase):
    """A stream for `tarfile`, which reads a header of any size that the archive claims in one piece."""

    def __init__(self, source: BinaryIO | gzip.GzipFile, name: str) -> None:
        self._source = source
        self._name = name

    def read(self, size: int = -1, /) -> bytes:
        if not 0 <= size <= _MAX_HEADER_BYTES:
            raise too_large(f"{self._name} (a header in it)", _MAX_HEADER_BYTES)
        return self._source.read(size)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._source.seek(offset, whence)

    def tell(self) -> int:
        return self._source.tell()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


def _size_below(folder: Path) -> int:
    try:
        return sum(path.stat().st_size for path in folder.glob("*/*") if kind_of(path) is FileKind.FILE)
    except OSError as error:
        raise unreadable(str(folder), error) from None


def _hashed(file: IO[bytes], advance: Callable[[int], None]) -> Member:
    start = piece = file.read(CHUNK_BYTES)
    hasher, size_bytes = hashlib.sha256(), 0
    kept: list[bytes] | None = [] if start.lstrip()[:1] in _JSON_STARTS else None
    while piece:
        hasher.update(piece)
        size_bytes += len(piece)
        if kept is not None:
            kept = None if size_bytes > MAX_DOCUMENT_BYTES else [*kept, piece]
        advance(len(piece))
        piece = file.read(CHUNK_BYTES)
    return Member(size_bytes, hasher.hexdigest(), start[:8], None if kept is None else b"".join(kept))
