"""Opening files that somebody else made: regular files only, bounded reads, and an error that names the path."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from io import BufferedReader
from pathlib import Path

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location

CHUNK_BYTES = 1 << 20


class FileKind(Enum):
    """What a path leads to."""

    FILE = "file"
    FOLDER = "folder"
    OTHER = "pipe, socket or device"


@contextmanager
def opened(path: Path, name: str = "") -> Iterator[BufferedReader]:
    """The regular file at `path`, open for reading; `name` is what errors call it. A pipe or device is refused without waiting on it."""
    shown = name or str(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise unreadable(shown, error) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InputError(Code.UNREADABLE, "this is not a regular file", at=Location(shown), fix="give the path of a file")
    with os.fdopen(descriptor, "rb") as file:
        try:
            yield file
        except OSError as error:
            raise unreadable(shown, error) from None


def read_bytes(path: Path, limit_bytes: int, name: str = "") -> bytes:
    """The whole file, of at most `limit_bytes`; more is `TOO_LARGE`."""
    with opened(path, name) as file:
        data = file.read(limit_bytes + 1)
    if len(data) > limit_bytes:
        raise too_large(name or str(path), limit_bytes)
    return data


def kind_of(path: Path, name: str = "") -> FileKind | None:
    """What is at `path`, links followed; `None` when nothing is. A path that cannot be looked at is an `InputError`."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise unreadable(name or str(path), error) from None
    return FileKind.FOLDER if stat.S_ISDIR(mode) else FileKind.FILE if stat.S_ISREG(mode) else FileKind.OTHER


def too_large(name: str, limit_bytes: int) -> InputError:
    """The error for a document larger than its kind can be."""
    return InputError(
        Code.TOO_LARGE, f"more than {limit_bytes} bytes, which no document of this kind needs", at=Location(name), fix="check the file"
    )


def unreadable(name: str, error: OSError | ValueError) -> InputError:
    """The error for a path that the system would not open or read."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return InputError(Code.UNREADABLE, f"cannot be read: {reason}", at=Location(name), fix="check the path and its permissions")
