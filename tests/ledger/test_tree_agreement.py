"""Recursion, frontier, tiles and proofs are four ways to one tree: they agree at every size, and no altered proof passes at any.

The recursion is RFC 9162 section 2.1 as it stands there. What each way does by itself is tested beside it (`test_merkle`, `test_tiles`).
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from random import Random

import pytest

from countermark.attestations.errors import CountermarkError
from countermark.ledger.merkle import Frontier, check_consistency, check_inclusion, consistency_proof, inclusion_proof, root_at
from countermark.ledger.tiles import TileReader, tile_root, tiles_completed

LARGEST = 70_000
EDGES = (1, 2, 3, 4, 5, 7, 8, 9, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 1030)
Proof = Sequence[bytes]


def leaf(index: int) -> bytes:
    return sha256(b"leaf %d" % index).digest()


@cache
def recursion(start: int, stop: int) -> bytes:
    """MTH over leaf(start) to leaf(stop - 1)."""
    if stop - start == 1:
        return leaf(start)
    cut = start + (1 << (stop - start - 1).bit_length() - 1)
    return sha256(b"\x01" + recursion(start, cut) + recursion(cut, stop)).digest()


def path(index: int, start: int, stop: int) -> list[bytes]:
    """PATH of section 2.1.3.1."""
    if stop - start == 1:
        return []
    cut = start + (1 << (stop - start - 1).bit_length() - 1)
    return [*path(index, start, cut), recursion(cut, stop)] if index < cut else [*path(index, cut, stop), recursion(start, cut)]


@cache
def tiles(size: int) -> dict[tuple[int, int], bytes]:
    """The full tiles of a tree, filled as an appender fills them."""
    full: dict[tuple[int, int], bytes] = {}
    for level, index in tiles_completed(0, size):
        row = range(index * 256, index * 256 + 256)
        full[level, index] = b"".join(tile_root(full[level - 1, n]) if level else leaf(n) for n in row)
    return full


def reader(size: int) -> TileReader:
    full = tiles(LARGEST if size > 1030 else 1030)
    return TileReader(size, lambda level, index: full[level, index], lambda start, stop: [leaf(n) for n in range(start, stop)])


def frontiers(sizes: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    """The root at each of these sizes in order, of one frontier that grows."""
    frontier = Frontier()
    for size in sizes:
        while frontier.size < size:
            frontier = frontier.push(leaf(frontier.size))
        yield size, frontier.root()


def altered(proof: Proof, random: Random) -> Iterator[Proof]:
    """Each hash with one bit changed, dropped, doubled and cut short; two neighbours exchanged; one more at either end."""
    for at, hashed in enumerate(proof):
        flipped = (int.from_bytes(hashed) ^ 1 << random.randrange(256)).to_bytes(32)
        for instead in ([flipped], [], [hashed, hashed], [hashed[:-1]]):
            yield [*proof[:at], *instead, *proof[at + 1 :]]
        if at:
            yield [*proof[: at - 1], hashed, proof[at - 1], *proof[at + 1 :]]
    yield [*proof, bytes(32)]
    yield [bytes(32), *proof]


def agree(sizes: Sequence[int], random: Random) -> None:
    """All ways give one root at each size, and one proof for some places and some earlier sizes, of which no alteration passes."""
    for size, root in frontiers(sizes):
        read = reader(size)
        assert root == recursion(0, size) == root_at(size, read)
        for index in {0, size - 1, random.randrange(size)}:
            proof = inclusion_proof(index, size, read)
            assert list(proof) == path(index, 0, size)
            check_inclusion(index, size, leaf(index), proof, root)
            for wrong in altered(proof, random):
                with pytest.raises(CountermarkError):
                    check_inclusion(index, size, leaf(index), wrong, root)
            for other in {index - 1, index + 1, size - 1 - index} - {index}:
                with pytest.raises(CountermarkError):
                    check_inclusion(other, size, leaf(index), proof, root)
        for old in {1, size - 1, random.randrange(1, size + 1)} - {0}:
            grows(old, size, read, random)


def grows(old: int, size: int, read: TileReader, random: Random) -> None:
    proof, old_root, root = consistency_proof(old, size, read), recursion(0, old), recursion(0, size)
    check_consistency(old, size, old_root, root, proof)
    for wrong in altered(proof, random):
        with pytest.raises(CountermarkError):
            check_consistency(old, size, old_root, root, wrong)
    for bad in (sha256(old_root).digest(), bytes(32)):
        with pytest.raises(CountermarkError):
            check_consistency(old, size, bad, root, proof)
        with pytest.raises(CountermarkError):
            check_consistency(old, size, old_root, bad, proof)


def test_all_ways_agree_at_the_edges() -> None:
    agree(EDGES, Random(6962))


@pytest.mark.slow
def test_all_ways_agree_at_every_size_up_to_1030() -> None:
    agree(range(1, 1031), Random(9162))


@pytest.mark.slow
def test_all_ways_agree_at_sizes_up_to_70000() -> None:
    random = Random(20261202)
    agree(sorted({*random.sample(range(1031, LARGEST), 60), 65_535, 65_536, 65_537, LARGEST}), random)


@pytest.mark.slow
def test_every_pair_of_sizes_up_to_256() -> None:
    """Both proofs of every (m, n), as the study asks."""
    random = Random(256)
    for size in range(1, 257):
        read, root = reader(size), recursion(0, size)
        for number in range(size):
            proof = inclusion_proof(number, size, read)
            assert list(proof) == path(number, 0, size)
            check_inclusion(number, size, leaf(number), proof, root)
            for wrong in altered(proof, random):
                with pytest.raises(CountermarkError):
                    check_inclusion(number, size, leaf(number), wrong, root)
            grows(number + 1, size, read, random)
