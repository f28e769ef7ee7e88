"""Writing files so that nobody loses one: a new file replaces none, and a file that is replaced is whole at each moment."""

import os
import tempfile
from pathlib import Path

from countermark.attestations.codes import Code
from countermark.attestations.errors import CannotTellError, InputError, Location


def refuse_existing(path: Path) -> None:
    """`InputError` when no new file can be made at this path, so that work whose result could not be kept is not begun."""
    at = Location(str(path))
    if os.path.lexists(path):
        raise InputError(Code.UNREADABLE, "it exists and is not overwritten", at=at, fix="give the name of a new file")
    if not path.absolute().parent.is_dir():
        raise InputError(Code.UNREADABLE, "its folder does not exist", at=at, fix="make the folder first, or name another")


def write_new(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write a file that must not exist yet, with its mode from the first byte on; `InputError` when it exists."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        raise InputError(Code.UNREADABLE, "it exists and is not overwritten", at=Location(str(path)), fix="choose another place") from None
    except OSError as error:
        why = error.strerror or "it cannot be written"
        raise InputError(Code.UNREADABLE, why, at=Location(str(path)), fix="choose a place that can be written") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except OSError as error:
        path.unlink(missing_ok=True)
        why = error.strerror or "it cannot be written"
        raise CannotTellError(Code.UNREADABLE, why, at=Location(str(path)), fix="make room on the disk") from None


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file's content in one step: readers see the old bytes or the new ones, never a part."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    Path(name).chmod(path.stat().st_mode)
    Path(name).replace(path)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file, new or not, in one step: whoever reads it meanwhile sees the old bytes or the new ones. Raises `OSError`.

    A link is followed, so that the file it names is replaced, not the link; what is no regular file, a device or pipe, takes the bytes.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        target.write_bytes(data)
        return
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        Path(name).chmod(target.stat().st_mode if target.exists() else _mode_of_new_files())
        Path(name).replace(target)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def _mode_of_new_files() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
