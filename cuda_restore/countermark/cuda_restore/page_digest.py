"""The read-back digest of a page, recomputed on the host exactly as `kv_page_digest` computes it on the device.

Two independent 64-bit multilinear hashes over the page's 32-bit little-endian words (Carter and Wegman's construction; the keys
are odd and come from splitmix64). Under a key chosen after the fault happened, two different pages of one length collide with a
probability of about 2^-64. It says *where* bytes went wrong after placement. It is no cryptographic hash and stands in for none:
what a page should hold is authenticated by SHA-256 before it is placed.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError

PAGE_ROW: Final = np.dtype([("start", "<u8"), ("bytes", "<u8")])
"""One row of the page table as the kernel reads it: 16 bytes, little-endian."""

Digests = NDArray[np.uint64]
"""Shape (pages, 2)."""


@dataclass(frozen=True, slots=True)
class DigestKey:
    """The 128-bit key of a read-back: one seed for each of the two hashes."""

    low: int
    high: int

    @classmethod
    def of(cls, key: bytes) -> "DigestKey":
        """The key in 16 bytes; draw them after the restore, so that nothing placed can depend on them."""
        if len(key) != 16:
            raise InputError(Code.MALFORMED, f"a page-digest key has 16 bytes, not {len(key)}", fix="draw 16 random bytes")
        return cls(int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little"))


def page_table(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.void]:
    """The page table as the kernel reads it; offsets and sizes in bytes."""
    table = np.empty(len(starts), PAGE_ROW)
    table["start"], table["bytes"] = starts, sizes
    return table


def check_pages(pages: NDArray[np.void], size: int) -> None:
    """Refuse a page table with a page outside the first `size` bytes."""
    outside = (pages["start"] > size) | (pages["bytes"] > size - np.minimum(pages["start"], np.uint64(size)))
    if outside.any():
        page = int(np.flatnonzero(outside)[0])
        raise InputError(Code.MALFORMED, f"page {page} leaves the {size} bytes it is read from", fix="digest pages of this very buffer")


def page_digests(data: NDArray[np.uint8], pages: NDArray[np.void], key: DigestKey) -> Digests:
    """The digests of the pages that a page table names in `data`. An `InputError` if a page leaves it."""
    check_pages(pages, data.size)
    digests = np.zeros((len(pages), 2), np.uint64)
    for size in np.unique(pages["bytes"]):
        chosen = np.flatnonzero(pages["bytes"] == size)
        keys = [_keys(seed, -(-int(size) // 4)) for seed in (key.low, key.high)]
        for index in chosen:
            start = int(pages["start"][index])
            digests[index] = _digest(data[start : start + int(size)], keys)
    return digests


def _keys(seed: int, words: int) -> NDArray[np.uint64]:
    """Key 0 for the length, then one for each word: splitmix64 of a counter, made odd."""
    x = np.arange(1, words + 2, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray((x ^ (x >> np.uint64(31))) | np.uint64(1))


def _digest(page: NDArray[np.uint8], keys: list[NDArray[np.uint64]]) -> list[int]:
    padded = np.concatenate((page, np.zeros(-page.size % 4, np.uint8))) if page.size % 4 else np.ascontiguousarray(page)
    words = padded.view("<u4")
    # einsum widens the words to 64 bits while it multiplies: several times faster than a product that is summed afterwards
    return [(int(key[0]) * page.size + int(np.einsum("w,w->", words, key[1:], dtype=np.uint64))) % 2**64 for key in keys]
