"""The kernel file, built for the host, and what it must do in Python; run as a program under the sanitizers.

usage: host_kernels.py LIBRARY SEED ROUNDS
"""

import ctypes
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from countermark.cuda_restore.device import ScatterStatus
from countermark.cuda_restore.page_digest import DigestKey, Digests, page_digests, page_table
from countermark.cuda_restore.spans import SPAN_ROW

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class HostKernels:
    """The two kernels as host functions."""

    library: ctypes.CDLL

    @classmethod
    def load(cls, path: Path) -> "HostKernels":
        return cls(ctypes.CDLL(str(path)))

    def scatter(
        self, slab: Bytes, destination: Bytes, rows: NDArray[np.void], *, alignment: int = 1, grid: int = 3, block: int = 5
    ) -> ScatterStatus:
        """Run `kv_scatter` on the destination in place."""
        status = np.zeros(4, np.uint64)
        u64, u32, pointer = ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p
        self.library.run_kv_scatter(
            u32(grid),
            u32(block),
            *(pointer(slab.ctypes.data), u64(slab.size), pointer(destination.ctypes.data), u64(destination.size)),
            *(pointer(rows.ctypes.data), u32(len(rows)), u32(alignment), pointer(status.ctypes.data)),
        )
        return ScatterStatus.of(status.view(np.uint8))

    def page_digests(
        self, destination: Bytes, pages: NDArray[np.void], key: DigestKey, *, grid: int = 3, block: int = 5
    ) -> tuple[Digests, ScatterStatus]:
        """Run `kv_page_digest`."""
        digests, status = np.zeros((len(pages), 2), np.uint64), np.zeros(4, np.uint64)
        u64, u32, pointer = ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p
        self.library.run_kv_page_digest(
            u32(grid),
            u32(block),
            *(pointer(destination.ctypes.data), u64(destination.size), pointer(pages.ctypes.data), u32(len(pages))),
            *(u64(key.low), u64(key.high), pointer(digests.ctypes.data), pointer(status.ctypes.data)),
        )
        return digests, ScatterStatus.of(status.view(np.uint8))


def expected_scatter(slab: Bytes, destination: Bytes, rows: NDArray[np.void], alignment: int) -> tuple[Bytes, ScatterStatus]:
    """What the kernel must do, one row after another in Python integers; the error word is that of the first bad row."""
    after, placed_bytes, placed_rows, errors = destination.copy(), 0, 0, []
    skew = (destination.ctypes.data - slab.ctypes.data) % alignment
    for index, (source, target, size) in enumerate(rows.tolist()):
        violations = [source + size > slab.size, target + size > destination.size, (target - source + skew) % alignment != 0]
        if size == 0 or any(violations):
            errors.append((4 if size == 0 else 1 + violations.index(True)) << 32 | index)
            continue
        after[target : target + size] = slab[source : source + size]
        placed_bytes, placed_rows = placed_bytes + size, placed_rows + 1
    return after, ScatterStatus(placed_bytes, placed_rows, len(errors), errors[0] if errors else 0)


def random_rows(rng: np.random.Generator, slab: int, destination: int) -> NDArray[np.void]:
    """Rows over disjoint destination stretches, some of which leave their buffers, overflow 64 bits or are empty."""
    edges = np.unique(rng.integers(0, destination + 40, 12))
    rows = np.zeros(len(edges) - 1, SPAN_ROW)
    rows["destination"] = edges[:-1]
    rows["bytes"] = np.minimum(np.diff(edges), rng.integers(0, slab + 8, len(rows)))
    rows["source"] = rng.integers(0, slab, len(rows))
    wild = rng.random(len(rows)) < 0.1
    rows["source"][wild] = np.uint64(2**64 - 8)
    return rows


def check_scatter(kernels: HostKernels, rng: np.random.Generator) -> None:
    """One random table; slab and destination begin at any address modulo 16."""
    slab, arena = np.empty(int(rng.integers(1, 400)), np.uint8), np.empty(int(rng.integers(32, 600)), np.uint8)
    slab[:], arena[:] = rng.integers(0, 256, slab.size), 0xA5
    destination = arena[int(rng.integers(0, 17)) :]
    slab = slab[int(rng.integers(0, min(slab.size, 17))) :]
    rows = random_rows(rng, slab.size, destination.size)
    alignment = int(rng.choice([1, 16]))
    wanted, status = expected_scatter(slab, destination, rows, alignment)
    block = int(rng.integers(1, 40))
    got = kernels.scatter(slab, destination, rows, alignment=alignment, grid=1, block=block)
    assert got == status, (got, status, rows)
    assert np.array_equal(destination, wanted), rows


def check_page_digest(kernels: HostKernels, rng: np.random.Generator) -> None:
    """Random pages of any length at any address; one of them may leave the buffer."""
    data = np.empty(int(rng.integers(1, 400)), np.uint8)
    data[:] = rng.integers(0, 256, data.size)
    starts = rng.integers(0, data.size, 6)
    pages = page_table(starts, np.minimum(rng.integers(0, 200, 6), data.size - starts))
    key = DigestKey.of(rng.bytes(16))
    got, status = kernels.page_digests(data, pages, key, grid=int(rng.integers(1, 9)), block=int(rng.integers(1, 40)))
    assert np.array_equal(got, page_digests(data, pages, key)), pages
    assert status.error == 0

    pages["bytes"][3] = np.uint64((data.size + 1, 2**64 - 1)[int(rng.integers(2))])
    got, status = kernels.page_digests(data, pages, key)
    assert (status.rejected_rows, status.error) == (1, 2 << 32 | 3)
    assert got[3].tolist() == [0, 0]


def main(library: str, seed: str, rounds: str) -> None:
    kernels, rng = HostKernels.load(Path(library)), np.random.default_rng(int(seed))
    for _ in range(int(rounds)):
        check_scatter(kernels, rng)
        check_page_digest(kernels, rng)
    sys.stdout.write(f"agreed {rounds}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
