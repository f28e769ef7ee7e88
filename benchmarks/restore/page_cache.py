"""Whether files lie in the page cache, and bringing them there or dropping them from it, without privileges."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_STRIDE_BYTES: Final = 1024 * 1024


def warm(paths: Iterable[Path]) -> None:
    """Read what is not in the page cache."""
    buffer = bytearray(_STRIDE_BYTES)
    for path in paths:
        if resident_share([path]) < 1:
            with path.open("rb", buffering=0) as file:
                while file.readinto(buffer):
                    pass


def drop(paths: Iterable[Path]) -> None:
    """Ask the kernel to forget the files, which must be synced; whether it did, `resident_share` tells. A hypervisor may remember."""
    for path in paths:
        with path.open("rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def resident_share(paths: Iterable[Path]) -> float:
    """The share of the files, 0 to 1, that can be read without waiting for a disk; sampled once a MiB.

    A file system that cannot tell counts as resident.
    """
    asked = found = 0
    for path in paths:
        with path.open("rb", buffering=0) as file:
            for start in range(0, path.stat().st_size, _STRIDE_BYTES):
                asked += 1
                found += _is_resident(file.fileno(), start)
    return found / asked if asked else 1.0


def _is_resident(fd: int, start: int) -> bool:
    try:
        return os.preadv(fd, [bytearray(1)], start, os.RWF_NOWAIT) > 0
    except BlockingIOError:
        return False
    except OSError:
        return True
