"""Placement in host memory: what `kv_scatter.cu` does on a GPU, by numpy, with the interpreter free for the readers meanwhile."""

from itertools import pairwise
from typing import Final

import numpy as np

from countermark.cuda_restore.device import Bytes
from countermark.cuda_restore.spans import SpanTable

_LOCKED_ROWS: Final = 500
_ROW_BYTES_MIN: Final = 1024


def place(slab: Bytes, spans: SpanTable, destination: Bytes, status: Bytes) -> None:
    """The kernel's work in numpy: copy every span, count it in the status words."""
    joined = spans.coalesced()
    table = joined if 4 * len(joined) <= len(spans) else spans
    for first, last in pairwise(_run_edges(table)):
        _copy_run(slab, destination, table, first, last)
    words = status.view(np.uint64)
    words[0] += np.uint64(spans.total_bytes)
    words[1] += np.uint64(len(spans))


def _run_edges(spans: SpanTable) -> list[int]:
    """Where runs begin and end: rows of one size that follow each other in the slab and lie on one grid of the destination."""
    size, source, destination = spans.sizes, spans.source, spans.destination
    same = (size[1:] == size[:-1]) & (source[1:] == source[:-1] + size[:-1]) & ((destination[1:] - destination[:-1]) % size[1:] == 0)
    return [0, *(np.flatnonzero(~same) + 1).tolist(), len(spans)]


def _copy_run(slab: Bytes, destination: Bytes, spans: SpanTable, first: int, last: int) -> None:
    """Copy one run: a slice, or one indexed assignment over the whole run, cut so fine that the interpreter is free meanwhile."""
    size, source = int(spans.sizes[first]), int(spans.source[first])
    targets = spans.destination[first:last]
    data = slab[source : source + size * len(targets)]
    if len(targets) == 1:
        destination[int(targets[0]) : int(targets[0]) + size] = data
        return
    parts = _parts(size, len(targets))
    row = np.dtype((np.void, size // parts))
    grid = int(targets[0]) % row.itemsize
    rows = destination[grid : grid + (destination.size - grid) // row.itemsize * row.itemsize].view(row)
    firsts = (targets - grid) // row.itemsize
    rows[(firsts[:, None] + np.arange(parts)).ravel()] = data.view(row)


def _parts(size: int, pages: int) -> int:
    """Into how many rows to cut each page of a run: numpy keeps the interpreter lock over an indexed assignment of few rows."""
    parts = 1
    while parts * pages <= _LOCKED_ROWS and size % (2 * parts) == 0 and size // (2 * parts) >= _ROW_BYTES_MIN:
        parts *= 2
    return parts
