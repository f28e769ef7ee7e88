"""Texts with one bit flipped, and the places of a text that are exempt by name."""

import base64
import random
from collections.abc import Callable, Iterable, Iterator

import pytest

BITS = 8
SHARES = [60, pytest.param(None, marks=pytest.mark.slow)]
"""How many flips of a text are tried: some in the normal suite, every bit of every byte in the extended one."""


def flips(data: bytes, share: int | None) -> Iterator[tuple[int, bytes]]:
    """Copies of `data` with one bit flipped, each with the place of its byte: `share` of them at random, or all."""
    every = range(len(data) * BITS)
    for number in every if share is None else random.Random(7).sample(every, min(share, len(every))):
        at, bit = divmod(number, BITS)
        yield at, data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def spans(data: bytes, *texts: str | bytes) -> set[int]:
    """The places of every occurrence of these texts, each of which must occur."""
    found: set[int] = set()
    for text in (text.encode() if isinstance(text, str) else text for text in texts):
        starts = [at for at in range(len(data)) if data.startswith(text, at)]
        assert starts, text
        found |= {at + offset for at in starts for offset in range(len(text))}
    return found


def inside(data: bytes, encoded: str, part: bytes | None, *places: int) -> set[int]:
    """The places in `data` of the base64 digits that hold these bytes of `encoded`: of the last `part` in it those at `places`, or all."""
    plain, start = base64.b64decode(encoded), data.index(encoded.encode())
    first = plain.rindex(part) if part is not None else 0
    wanted = places or range(len(part if part is not None else plain))
    return {start + digit for at in wanted for digit in ((first + at) * 4 // 3, (first + at) * 4 // 3 + 1)}


def passed(data: bytes, share: int | None, passes: Callable[[bytes], bool], always: Iterable[int] = ()) -> set[int]:
    """The places at which some flip passes. The places of `always` are tried in any case, with each bit."""
    tried = {at for at, changed in flips(data, share) if passes(changed)}
    certain = ((at, data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]) for at in always for bit in range(BITS))
    return tried | {at for at, changed in certain if passes(changed)}
