"""The read-back digest: what it must notice, and its definition written down a second time, slowly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countermark.attestations.errors import InputError
from countermark.cuda_restore.page_digest import PAGE_ROW, DigestKey, page_digests, page_table

KEY = DigestKey.of(bytes(range(16)))
MASK = 2**64 - 1


def splitmix64(seed: int, index: int) -> int:
    x = (seed + 0x9E3779B97F4A7C15 * (index + 1)) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return (x ^ (x >> 31)) | 1


def slow_digest(page: bytes, seed: int) -> int:
    padded = page + bytes(-len(page) % 4)
    words = [int.from_bytes(padded[i : i + 4], "little") for i in range(0, len(padded), 4)]
    return (splitmix64(seed, 0) * len(page) + sum(splitmix64(seed, i + 1) * word for i, word in enumerate(words))) & MASK


def digest(page: bytes, key: DigestKey = KEY) -> tuple[int, int]:
    low, high = page_digests(np.frombuffer(page, np.uint8), page_table(np.array([0]), np.array([len(page)])), key)[0].tolist()
    return low, high


@given(st.binary(max_size=200))
def test_numpy_agrees_with_the_definition(page: bytes) -> None:
    assert digest(page) == (slow_digest(page, KEY.low), slow_digest(page, KEY.high))


@given(st.binary(min_size=1, max_size=200), st.data())
def test_one_flipped_bit_always_shows(page: bytes, data: st.DataObject) -> None:
    bit = data.draw(st.integers(0, 8 * len(page) - 1))
    flipped = bytearray(page)
    flipped[bit // 8] ^= 1 << bit % 8
    assert all(a != b for a, b in zip(digest(page), digest(bytes(flipped)), strict=True))


def test_order_length_and_zeros_matter() -> None:
    seen = {digest(page) for page in (b"", b"\0", b"\0\0", bytes(4), bytes(8), b"abcd", b"cdab", b"abcd\0", b"efghabcd", b"abcdefgh")}
    assert len(seen) == 10


def test_another_key_gives_another_digest() -> None:
    assert digest(b"page") != digest(b"page", DigestKey.of(bytes(16)))


def test_pages_of_several_sizes_keep_their_rows() -> None:
    data = np.arange(64, dtype=np.uint8)
    pages = page_table(np.array([32, 0, 5]), np.array([32, 16, 3]))
    assert PAGE_ROW.itemsize == 16
    expected = [digest(data[s : s + n].tobytes()) for s, n in ((32, 32), (0, 16), (5, 3))]
    assert [tuple(row) for row in page_digests(data, pages, KEY).tolist()] == expected


def test_a_page_outside_the_buffer_is_refused() -> None:
    for start, size in ((60, 5), (65, 0), (2**62, 1)):
        with pytest.raises(InputError, match="page 0 leaves the 64 bytes"):
            page_digests(np.zeros(64, np.uint8), page_table(np.array([start]), np.array([size])), KEY)


def test_a_key_has_16_bytes() -> None:
    with pytest.raises(InputError, match="16 bytes, not 8"):
        DigestKey.of(bytes(8))
