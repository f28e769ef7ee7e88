"""The files of a static export (C2SP tlog-tiles, with payloads beside them).

    SCHEMA                          which version of this layout it is
    checkpoint                      the newest head, the one file that changes
    tile/0/x001/x234/067            256 hashes each; tile/0/000.p/17 while there are but 17
    tile/entries/x001/x234/067      the leaves of the level-0 tile
    payload/9f/9f86d0818...         the bytes that a leaf names by their SHA-256: payloads, and sigstore bundles

Names are joined to the folder as they are made here, never as somebody else wrote them, and no link within the folder is followed:
an export is often written for a web server and read from strangers.
"""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from countermark.attestations.codes import Code
from countermark.attestations.errors import CannotTellError, InputError, Location, TamperError

CHECKPOINT: Final = "checkpoint"
SCHEMA: Final = "SCHEMA"
SCHEMA_TEXT: Final = b"https://countermark.dev/schema/export/v1\n"
SCHEMA_TEXT_BARE: Final = b"https://countermark.dev/schema/export/v1\nwithout payloads\n"
"""What the file `SCHEMA` says of an export of leaves and hashes alone. Whether that is enough, the reader decides."""

_UNFINISHED: Final = ".unfinished"


def payload_path(digest: bytes) -> str:
    """Where the bytes with this SHA-256 lie."""
    return f"payload/{digest.hex()[:2]}/{digest.hex()}"


def read_export_file(folder: Path, name: str, limit: int) -> bytes | None:
    """The bytes of a regular file of the export, none if there is no such file.

    `InputError` UNREADABLE for a link or anything else that is no file, TOO_LARGE beyond `limit` bytes.
    """
    at = Location(str(folder / name))
    try:
        descriptor = os.open(folder / name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        why = error.strerror or "it cannot be read"
        raise InputError(Code.UNREADABLE, why, at=at, fix="an export holds files and folders, and no links") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InputError(Code.UNREADABLE, "it is no file", at=at, fix="an export holds files and folders, and no links")
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise InputError(Code.TOO_LARGE, f"more than {limit} bytes", at=at, fix="get the file again")
    return data


def list_files(folder: Path) -> Iterator[str]:
    """The names of all that is in the folder and is no folder itself, sorted within each; nothing is followed."""
    for path, folders, files in os.walk(folder):
        folders.sort()
        links = [name for name in folders if (Path(path) / name).is_symlink()]
        for name in sorted([*files, *links]):
            yield (Path(path) / name).relative_to(folder).as_posix()


class ExportFolder:
    """A folder that one process at a time writes an export into. Whatever stands under a name is whole: written aside, then renamed."""

    def __init__(self, folder: Path, schema: bytes) -> None:
        self.folder = folder
        self._schema = schema
        self._made: set[Path] = set()

    @classmethod
    @contextmanager
    def claimed(cls, folder: Path, schema: bytes) -> Iterator["ExportFolder"]:
        """Make the folder, or go on with an export of this schema that is there, until the end of the block.

        `InputError` for a place that holds anything else, `CannotTellError` LEDGER_LOCKED while another process exports there.
        """
        at = Location(str(folder))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            why = error.strerror or "it cannot be made"
            raise InputError(Code.UNREADABLE, why, at=at, fix="give a folder that can be written") from None
        try:
            _lock(descriptor, at)
            claimed = cls(folder, schema)
            claimed._claim(at)
            yield claimed
        finally:
            os.close(descriptor)

    def read(self, name: str, limit: int) -> bytes | None:
        """See `read_export_file`."""
        return read_export_file(self.folder, name, limit)

    def put(self, name: str, data: bytes, *, published: bool) -> bool:
        """Have `data` under a name; whether it had to be written.

        What differs there is replaced, since it may come from a run that a power cut ended; but `TamperError` if a checkpoint has been
        published over it, because such a file never changes.
        """
        there = os.path.lexists(self.folder / name)
        if there and self._holds(name, data):
            return False
        if there and published:
            message = "it is not what was published"
            fix = "keep this folder as evidence, find out who wrote to it, and export into a new one"
            raise TamperError(Code.TAMPERED, message, at=Location(str(self.folder / name)), fix=fix)
        self._write(name, data)
        return True

    def remove(self, name: str) -> None:
        """Have nothing under a name."""
        with _errors(self.folder / name):
            (self.folder / name).unlink(missing_ok=True)

    def publish(self, note: str) -> None:
        """Make the checkpoint the head of the export, after the disk holds everything that it needs."""
        os.sync()
        self._write(CHECKPOINT, note.encode(), durable=True)
        with _errors(self.folder):
            descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _claim(self, at: Location) -> None:
        with _errors(self.folder):
            empty = all(path.name == _UNFINISHED for path in self.folder.iterdir())
        if not empty and not self._holds(SCHEMA, self._schema):
            fix = "give an empty folder, or that of an export of the same sort"
            raise InputError(Code.UNREADABLE, "the folder holds something else", at=at, fix=fix)
        self.put(SCHEMA, self._schema, published=False)

    def _holds(self, name: str, data: bytes) -> bool:
        """Whether exactly these bytes stand under a name."""
        try:
            return self.read(name, max(len(data), 1)) == data
        except InputError as error:
            if error.code is Code.TOO_LARGE:
                return False
            raise

    def _write(self, name: str, data: bytes, *, durable: bool = False) -> None:
        target, waiting = self.folder / name, self.folder / _UNFINISHED
        with _errors(target):
            self._make(target.parent)
            descriptor = os.open(waiting, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            waiting.replace(target)

    def _make(self, folder: Path) -> None:
        """Make a folder and those above it within the export; a link in the way is refused."""
        if folder in self._made or folder == self.folder:
            return
        self._make(folder.parent)
        try:
            folder.mkdir()
        except FileExistsError:
            if not stat.S_ISDIR(folder.lstat().st_mode):
                raise InputError(
                    Code.UNREADABLE, "it is no folder", at=Location(str(folder)), fix="an export holds files and folders, and no links"
                ) from None
        self._made.add(folder)


def _lock(descriptor: int, at: Location) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise CannotTellError(Code.LEDGER_LOCKED, "another process exports into it", at=at, fix="wait for it, or end it") from None


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = error.strerror or "it cannot be written"
        raise CannotTellError(Code.UNREADABLE, why, at=Location(str(path)), fix="check the rights and the room on the disk") from None
