"""Publish a file so that its name never shows half of it: exclusive temporary name, fsync, hard link to the final name.

A crash leaves at most a temporary file, whose name no reader looks for and which the next writer removes. (Format page 2.2.)
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.cuda_restore.store import CHUNKS, LAYOUTS, MAINTENANCE_LOCK, MANIFESTS, Folder

_DRAFT = ".writing-"
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Draft:
    """A file under a temporary name in its future folder, to be linked to its final name or to be discarded."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._name = f"{_DRAFT}{uuid4().hex}"
        self._fd = os.open(self._name, _CREATE, 0o644, dir_fd=folder.fd)

    def write(self, data: memoryview) -> None:
        """Append all of `data`."""
        while data:
            data = data[os.write(self._fd, data) :]

    def sync(self) -> None:
        """Wait until the bytes are on stable storage, and close the file for writing."""
        os.fsync(self._fd)
        self._close()

    def link(self, name: str) -> bool:
        """Give the synced file its final name; `False` when that name exists already, which leaves it untouched."""
        try:
            os.link(self._name, name, src_dir_fd=self._folder.fd, dst_dir_fd=self._folder.fd, follow_symlinks=False)
        except FileExistsError:
            return False
        return True

    def replace(self, name: str) -> None:
        """Give the synced file its final name in place of what has it now, in one step."""
        os.replace(self._name, name, src_dir_fd=self._folder.fd, dst_dir_fd=self._folder.fd)

    def discard(self) -> None:
        """Remove the temporary name, if it is still there."""
        self._close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._name, dir_fd=self._folder.fd)

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def publish_bytes(folder: Folder, name: str, data: bytes) -> bool:
    """Publish a small file for good, folder entry included; `False` when that name exists with other bytes."""
    draft = Draft(folder)
    try:
        draft.write(memoryview(data))
        draft.sync()
        if not draft.link(name):
            with folder.open(name) as existing:
                if existing.size_bytes != len(data) or existing.read_all() != data:
                    return False
    finally:
        draft.discard()
    os.fsync(folder.fd)
    return True


def make_folder(parent: Folder, name: str) -> Folder:
    """Open the folder `name` in `parent`, made and made durable if it is not there."""
    try:
        os.mkdir(name, 0o755, dir_fd=parent.fd)
        os.fsync(parent.fd)
    except FileExistsError:
        pass
    return parent.folder(name)


@contextlib.contextmanager
def publishing(root: Folder) -> Iterator[None]:
    """Hold the store's maintenance lock shared, so that nobody clears objects whose manifest is still to come.

    Who can have the lock alone first knows that every draft in the store is a dead writer's, and removes them.
    """
    fd = os.open(MAINTENANCE_LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=root.fd)
    try:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _sweep(root)
        fcntl.flock(fd, fcntl.LOCK_SH)
        yield
    finally:
        os.close(fd)


def _sweep(folder: Folder, members: tuple[str, ...] = (CHUNKS, LAYOUTS, MANIFESTS)) -> None:
    """Remove the drafts below `members` of `folder`; manifests lie one folder deeper."""
    for name in members:
        try:
            inner = folder.folder(name)
        except InputError:
            continue
        with inner, os.scandir(inner.fd) as found:
            entries = list(found)
            for entry in entries:
                if entry.name.startswith(_DRAFT):
                    os.unlink(entry.name, dir_fd=inner.fd)
            if name == MANIFESTS:
                _sweep(inner, tuple(entry.name for entry in entries if entry.is_dir(follow_symlinks=False)))


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """An `OSError` inside, such as a full disk, becomes an `InputError` that names what was being written."""
    try:
        yield
    except OSError as error:
        message = f"cannot write the snapshot: {error.strerror}"
        raise InputError(
            Code.UNREADABLE, message, at=Location(str(path)), fix="mend the disk and write again; what has a name is whole"
        ) from None
