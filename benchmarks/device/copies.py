"""What the device's parts do alone: copies from pinned and pageable memory, the kernel over blocks and tiles, one batch copy instead."""

from dataclasses import dataclass
from statistics import median
from typing import Final

import numpy as np

from benchmarks.device.timed import TimedDevice
from benchmarks.restore.dataset import PAGE_BYTES
from countermark.attestations.errors import CannotTellError
from countermark.cuda_restore.device import STATUS_BYTES
from countermark.cuda_restore.spans import SpanTable

SLAB_BYTES: Final = 64 * 1024 * 1024
BLOCKS: Final = (128, 256, 512, 1024)
TILES: Final = (16 * 1024, 64 * 1024, 256 * 1024, SLAB_BYTES)
_REPEATS: Final = 9


@dataclass(frozen=True, slots=True)
class Copy:
    """One way to bring a slab to the device, or why it was not taken."""

    name: str
    slab_bytes: int
    ms: float = 0.0
    gb_per_s: float = 0.0
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class Kernel:
    """The scatter kernel alone. `long_spans` is a slab of few long spans, where tiles matter; otherwise it is one of 64 KiB pages."""

    block_threads: int
    tile_bytes: int
    long_spans: bool
    ms: float
    gb_per_s: float


def copies(device: TimedDevice, slab_bytes: int) -> list[Copy]:
    """A slab from pinned memory, from pageable memory, copied and scattered by us, and page by page in one batch."""
    stream, pages = device.new_stream(), page_spans(slab_bytes)
    slab, arena = device.allocate(slab_bytes), device.allocate(2 * slab_bytes)
    staging, status = device.stage(slab_bytes, len(pages)), device.allocate(STATUS_BYTES)
    pageable = np.full(slab_bytes, 1, np.uint8)
    device.fill(status, 0, stream)

    def ours() -> float:
        begun = device.mark(stream)
        device.scatter(staging, pages, arena, status, stream)
        ended = device.mark(stream)
        device.synchronize(stream)
        device.timed_launches()
        return device.between(begun, ended)

    found = [
        _copy("pinned", slab_bytes, [device.copy_pinned(staging, slab, slab_bytes, stream) for _ in range(_REPEATS)]),
        _copy("pageable", slab_bytes, [device.copy_pageable(pageable, slab, stream) for _ in range(_REPEATS)]),
        _copy("one copy and our kernel", slab_bytes, [ours() for _ in range(_REPEATS)]),
    ]
    try:
        batch = [device.copy_batch(staging, pages, arena, stream) for _ in range(_REPEATS)]
        found.append(_copy("cuMemcpyBatchAsync, a page each", slab_bytes, batch))
    except CannotTellError as error:
        found.append(Copy("cuMemcpyBatchAsync, a page each", slab_bytes, skipped=error.message))
    return found


def sweep(ordinal: int, slab_bytes: int) -> list[Kernel]:
    """Every size of blocks with every size of tiles, for pages and for long spans."""
    return [
        _kernel(ordinal, slab_bytes, block, min(tile, slab_bytes), long_spans)
        for long_spans in (False, True)
        for block in BLOCKS
        for tile in TILES
    ]


def page_spans(slab_bytes: int) -> SpanTable:
    """The pages of a slab, in an order of their own over twice the room."""
    count = slab_bytes // PAGE_BYTES
    blocks = np.random.default_rng(1).permutation(2 * count)[:count]
    return SpanTable.of(np.arange(count) * PAGE_BYTES, blocks * PAGE_BYTES, np.full(count, PAGE_BYTES))


def _long_spans(slab_bytes: int) -> SpanTable:
    quarter = slab_bytes // 4
    return SpanTable.of(np.arange(4) * quarter, np.array([6, 2, 4, 0]) * quarter, np.full(4, quarter))


def _kernel(ordinal: int, slab_bytes: int, block: int, tile: int, long_spans: bool) -> Kernel:
    table = _long_spans(slab_bytes) if long_spans else page_spans(slab_bytes)
    with TimedDevice(ordinal, block_threads=block, tile_bytes=tile) as device:
        stream, arena = device.new_stream(), device.allocate(2 * slab_bytes)
        staging, status = device.stage(slab_bytes, len(table)), device.allocate(STATUS_BYTES)
        device.fill(status, 0, stream)
        for _ in range(_REPEATS):
            device.scatter(staging, table, arena, status, stream)
        device.synchronize(stream)
        spent = median(device.timed_launches()[1:])
    return Kernel(block, tile, long_spans, spent, slab_bytes / max(spent, 1e-6) / 1e6)


def _copy(name: str, slab_bytes: int, times: list[float]) -> Copy:
    spent = median(times[1:])
    return Copy(name, slab_bytes, spent, slab_bytes / max(spent, 1e-6) / 1e6)
