"""One writer at a time, queued outside SQLite.

SQLite's own busy handler sleeps and retries, which starves writers for seconds when several wait; a lock taken first keeps the wait
short. The lock is on a file of its own: closing any descriptor of the database file would drop SQLite's locks on it.
"""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from countermark.attestations.codes import Code
from countermark.attestations.errors import CannotTellError, Location

WAIT_S: Final = 60.0
_RETRY_S: Final = 0.001
_NETWORK: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "glusterfs", "lustre", "fuse.sshfs", "fuse.s3fs"})
_MOUNTS: Final = Path("/proc/self/mounts")


class WriterLock:
    """The lock of one ledger, held by one process for the time of one append."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger
        path = ledger.with_name(ledger.name + ".lock")
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            message = f"the lock file cannot be opened: {error.strerror}"
            raise CannotTellError(Code.UNREADABLE, message, at=Location(str(path)), fix="write where the folder can be written") from None

    def close(self) -> None:
        """Give the file back; the lock goes with it."""
        os.close(self._descriptor)

    @contextmanager
    def held(self, wait_s: float = WAIT_S) -> Iterator[None]:
        """Hold the lock; `CannotTellError` LEDGER_LOCKED when another process does not let go within `wait_s` seconds."""
        self._acquire(time.monotonic() + wait_s)
        try:
            yield
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _acquire(self, deadline: float) -> None:
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES) or time.monotonic() > deadline:
                    raise CannotTellError(
                        Code.LEDGER_LOCKED,
                        "another process is writing to the ledger",
                        at=Location(str(self._ledger)),
                        fix="wait for it, or end it",
                    ) from None
                time.sleep(_RETRY_S)
            else:
                return


def refuse_network(path: Path, mounts: str | None = None) -> None:
    """`CannotTellError` UNSUPPORTED for a file on a network file system, whose locks and syncs do not hold what SQLite needs of them.

    `mounts` is the text of `/proc/self/mounts`; where a system has none, nothing is refused.
    """
    if mounts is None:
        mounts = _MOUNTS.read_text(errors="surrogateescape") if _MOUNTS.exists() else ""
    best, kind = "", ""
    for line in mounts.splitlines():
        _, point, found, *_ = line.split(" ")
        point = point.replace("\\040", " ")
        inside = path.absolute().is_relative_to(point)
        if inside and len(point) >= len(best):
            best, kind = point, found
    if kind in _NETWORK:
        message = f"{best} is a network file system ({kind}); SQLite is not safe there"
        raise CannotTellError(Code.UNSUPPORTED, message, at=Location(str(path)), fix="put the ledger on a local disk, or use PostgreSQL")
