"""A cache to restore into that holds no right byte before: every byte of it is poison, so a page that is never written shows.

Without that a warm destination, which holds an earlier restore of the same prefix, hides most wrong pages.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from countermark.cuda_restore.arena import POISON, Arena, BlockTable
from countermark.cuda_restore.device import Buffer, Bytes, Device, Event, Ownership, Stream
from countermark.cuda_restore.engine import restore
from countermark.cuda_restore.geometry import Layout
from countermark.cuda_restore.page_digest import DigestKey
from countermark.cuda_restore.pool import open_ring
from countermark.cuda_restore.reader import LoadedManifest
from countermark.cuda_restore.reference import page_homes
from countermark.cuda_restore.request import Interference, RestoreRequest
from countermark.cuda_restore.result import PageReadBack, RestoreResult

SPARE_BLOCKS: Final = 2
"""Blocks of every group that stay poison, beside the null block."""


@dataclass(frozen=True, slots=True, eq=False)
class Destination:
    """A poisoned arena on a device, the blocks of one context in it, and the event behind the poisoning."""

    device: Device
    arena: Arena
    blocks: BlockTable
    buffer: Buffer
    stream: Stream
    poisoned: Event

    @property
    def homes(self) -> NDArray[np.void]:
        """The page table of the context, in stream order."""
        return page_homes(self.arena, self.blocks)

    def request(self, loaded: LoadedManifest, chunks: Path) -> RestoreRequest:
        """The request to restore a context into these blocks, and to read its pages back."""
        return RestoreRequest(
            loaded=loaded, chunks=chunks, arena=self.arena, blocks=self.blocks, destination=self.buffer, read_back=self.homes
        )

    def restore(self, loaded: LoadedManifest, chunks: Path, interference: Interference | None = None) -> RestoreResult:
        """Restore a context here, behind the poisoning."""
        request = self.request(loaded, chunks)
        with open_ring(self.device, loaded.manifest, self.arena, self.blocks, request.bounds) as ring:
            return restore(request, ring, prerequisite=self.poisoned, interference=interference)

    def read_back(self) -> PageReadBack:
        """The digests of the pages as they lie there now, under a key drawn now."""
        key = DigestKey.of(secrets.token_bytes(16))
        return PageReadBack(key, self.device.page_digests(self.buffer, self.homes, key, self.stream))

    def pages(self) -> Bytes:
        """The bytes of all pages as they lie there now, one behind the other in stream order."""
        everything = self.device.read(self.buffer, 0, self.arena.size_bytes, self.stream)
        return np.concatenate([everything[start : start + size] for start, size in self.homes.tolist()])


@contextmanager
def poisoned(device: Device, layout: Layout, counts: tuple[int, ...], *, seed: int) -> Iterator[Destination]:
    """An arena with blocks in an order drawn from `seed`; its memory is given back at the end."""
    arena = Arena.of(layout, [count + 1 + SPARE_BLOCKS for count in counts])
    with Ownership() as owned:
        buffer = device.allocate(arena.size_bytes)
        owned.add(buffer, partial(device.release, buffer))
        stream = device.new_stream()
        owned.add(stream, partial(device.release, stream))
        device.fill(buffer, POISON, stream)
        event = device.record(stream)
        owned.add(event, partial(device.release, event))
        owned.add("poisoning", partial(device.synchronize, stream))
        yield Destination(device, arena, BlockTable.shuffled(counts, arena.capacities, seed), buffer, stream, event)
