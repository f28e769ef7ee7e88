"""What a restore is asked to do, and the one door through which a qualification may disturb it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from countermark.cuda_restore.arena import Arena, BlockTable
from countermark.cuda_restore.device import Buffer, Bytes
from countermark.cuda_restore.reader import LoadedManifest
from countermark.cuda_restore.slabs import DEFAULT_BOUNDS, Bounds
from countermark.cuda_restore.spans import SpanTable

Advance: TypeAlias = Callable[[int], None]
"""Told in the coordinating thread how many bytes more of a stream are behind it; for a progress bar."""


def unwatched(_more_bytes: int) -> None:
    """The `Advance` of a caller who does not watch."""


class Authenticate(StrEnum):
    """What must be authenticated before any of it is placed: the objects of each slab, or of as many slabs as are read at once."""

    OBJECT = "object"
    BATCH = "batch"


class Interference(Protocol):
    """A fault between authentication and placement, for a qualification that must see its controls fail. It cannot hide: the trace
    names it before anything else happens, and its result is never `verified`."""

    @property
    def fault(self) -> str:
        """The fault's name."""
        ...

    def disturb(self, index: int, payload: Bytes, spans: SpanTable) -> SpanTable:
        """Change the authenticated bytes of slab `index` in place, or return other spans than were planned and proven."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RestoreRequest:
    """One rank's manifest as it was looked up, the folder of its objects, and the blocks that were allocated for it.

    The pages of `blocks` in `destination` must be private to this request until it ends. `read_back` is the page table whose digests
    are wanted in the result, if they are.
    """

    loaded: LoadedManifest
    chunks: Path
    arena: Arena
    blocks: BlockTable
    destination: Buffer
    bounds: Bounds = DEFAULT_BOUNDS
    authenticate: Authenticate = Authenticate.OBJECT
    read_back: NDArray[np.void] | None = None
