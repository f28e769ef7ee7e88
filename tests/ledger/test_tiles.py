"""Tiles against the frontier, and the arithmetic of C2SP tlog-tiles."""

import json
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError
from countermark.ledger.merkle import (
    Frontier,
    check_consistency,
    check_inclusion,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    root_at,
)
from countermark.ledger.tiles import TILE_BYTES, TileReader, entries_path, partial_tiles, split_tile, tile_path, tile_root, tiles_completed

TESSERA = json.loads((Path(__file__).parents[1] / "data" / "c2sp" / "tessera_log.json").read_text())


def leaf(index: int) -> bytes:
    return sha256(b"%d" % index).digest()


class Log:
    """Full tiles, their roots and all leaf hashes of one log, filled as an appender does it, and what was asked of it."""

    def __init__(self) -> None:
        self.leaves: list[bytes] = []
        self.tiles: dict[tuple[int, int], bytes] = {}
        self.roots: dict[tuple[int, int], bytes] = {}
        self.asked: list[tuple[int, int]] = []

    def append(self, hashed: bytes) -> None:
        size = len(self.leaves)
        self.leaves.append(hashed)
        for level, index in tiles_completed(size, size + 1):
            row = range(index * 256, index * 256 + 256)
            self.tiles[level, index] = b"".join(self.roots[level - 1, n] if level else self.leaves[n] for n in row)
            self.roots[level, index] = tile_root(self.tiles[level, index])

    def load_tile(self, level: int, index: int) -> bytes:
        self.asked.append((level, index))
        return self.tiles[level, index]

    def load_leaves(self, start: int, stop: int) -> list[bytes]:
        return self.leaves[start:stop]

    def load_roots(self, level: int, start: int, stop: int) -> list[bytes]:
        return [self.roots[level, index] for index in range(start, stop)]

    def reader(self, size: int, *, stored_roots: bool = False) -> TileReader:
        return TileReader(size, self.load_tile, self.load_leaves, self.load_roots if stored_roots else None)


@cache
def log_of(size: int) -> Log:
    log = Log()
    for index in range(size):
        log.append(leaf(index))
    return log


def test_tiles_and_frontier_agree_up_to_1030() -> None:
    log, frontier = Log(), Frontier()
    for size in range(1, 1031):
        log.append(leaf(size))
        frontier = frontier.push(leaf(size))
        for stored_roots in (False, True):
            assert root_at(size, log.reader(size, stored_roots=stored_roots)) == frontier.root()


@pytest.mark.slow
def test_tiles_frontier_and_proofs_agree_up_to_70000() -> None:
    random = Random(6962)
    sizes = sorted({*random.sample(range(1, 70_001), 40), 256, 65_535, 65_536, 65_537, 70_000})
    log, frontier, roots = log_of(70_000), Frontier(), dict[int, bytes]()
    for index in range(70_000):
        frontier = frontier.push(leaf(index))
        if index + 1 in sizes:
            roots[index + 1] = frontier.root()
    for size in sizes:
        read = log.reader(size)
        assert root_at(size, read) == roots[size] == root_at(size, log.reader(70_000)) == root_at(size, log.reader(size, stored_roots=True))
        index = random.randrange(size)
        check_inclusion(index, size, leaf(index), inclusion_proof(index, size, read), roots[size])
        check_consistency(size, 70_000, roots[size], roots[70_000], consistency_proof(size, 70_000, log.reader(70_000)))


def test_proofs_from_tiles_check() -> None:
    sizes = (1, 255, 256, 257, 600, 1000)
    roots = {size: root_at(size, log_of(1000).reader(size)) for size in sizes}
    for size in sizes:
        read = log_of(1000).reader(size)
        for index in {0, size // 2, size - 1}:
            check_inclusion(index, size, leaf(index), inclusion_proof(index, size, read), roots[size])
        for old in sizes:
            if old <= size:
                check_consistency(old, size, roots[old], roots[size], consistency_proof(old, size, read))


def test_stored_roots_spare_the_tiles() -> None:
    log = log_of(1000)
    log.asked.clear()
    with_roots = inclusion_proof(999, 1000, log.reader(1000, stored_roots=True))
    assert log.asked == []
    assert inclusion_proof(999, 1000, log.reader(1000)) == with_roots
    assert sorted(log.asked) == [(0, 0), (0, 1), (0, 2)]


def test_a_tile_is_loaded_once() -> None:
    log = log_of(1000)
    log.asked.clear()
    inclusion_proof(3, 1000, log.reader(1000, stored_roots=True))
    assert log.asked == [(0, 0)]


def test_the_tiles_of_the_specification_example() -> None:
    """Size 70,000: 273 full tiles and one of width 112 at level 0, one full and one of width 17 at level 1, one of width 1 at level 2."""
    full = list(tiles_completed(0, 70_000))
    assert full == [(0, index) for index in range(273)] + [(1, 0)]
    assert list(partial_tiles(70_000)) == [(0, 273, 112), (1, 1, 17), (2, 0, 1)]
    assert list(tiles_completed(0, 256)) == [(0, 0)]
    assert list(partial_tiles(256)) == [(1, 0, 1)]
    assert list(partial_tiles(0)) == []


@given(st.integers(0, 200_000), st.integers(0, 1_000), st.integers(0, 70_000))
def test_growth_in_steps_completes_the_same_tiles(start: int, first: int, second: int) -> None:
    steps = [*tiles_completed(start, start + first), *tiles_completed(start + first, start + first + second)]
    assert sorted(steps) == sorted(tiles_completed(start, start + first + second))
    assert all((index + 1) << 8 * (level + 1) <= start + first + second for level, index in steps)


@pytest.mark.parametrize(("before", "after"), [(-1, 5), (5, 4), (-2, -1)])
def test_a_tree_cannot_shrink(before: int, after: int) -> None:
    with pytest.raises(InputError):
        list(tiles_completed(before, after))


@pytest.mark.parametrize("length", [0, 32, TILE_BYTES - 32, TILE_BYTES - 1, TILE_BYTES + 32])
def test_only_a_full_tile_has_a_root(length: int) -> None:
    """Tamper cases 19 and 21: a tile of another length, such as a partial one, is never hashed."""
    for reads_tile in (tile_root, split_tile):
        with pytest.raises(InputError) as caught:
            reads_tile(bytes(length))
        assert caught.value.code is Code.MALFORMED


def test_a_damaged_store_is_refused_or_gives_another_root() -> None:
    log = log_of(600)
    good = root_at(600, log.reader(600))
    short_tile = TileReader(600, lambda level, index: log.tiles[level, index][:-32], log.load_leaves)
    few_leaves = TileReader(600, log.load_tile, lambda start, stop: log.leaves[start : stop - 1])
    cut_leaf = TileReader(600, log.load_tile, lambda start, stop: [h[:31] for h in log.leaves[start:stop]])
    few_roots = TileReader(600, log.load_tile, log.load_leaves, lambda level, start, stop: [])
    for damaged in (short_tile, few_leaves, cut_leaf, few_roots):
        with pytest.raises(InputError) as caught:
            root_at(600, damaged)
        assert caught.value.code is Code.MALFORMED
    altered = TileReader(600, lambda level, index: bytes(32) + log.tiles[level, index][32:], log.load_leaves)
    assert root_at(600, altered) != good


@pytest.mark.parametrize(("level", "index"), [(0, 600), (3, 75), (8, 2), (9, 1), (16, 0), (-1, 0), (0, -1)])
def test_no_node_outside_the_tree(level: int, index: int) -> None:
    with pytest.raises(InputError):
        log_of(600).reader(600).node(level, index)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (tile_path(0, 0), "tile/0/000"),
        (tile_path(1, 1234067), "tile/1/x001/x234/067"),
        (tile_path(2, 999, 17), "tile/2/999.p/17"),
        (tile_path(63, 1000, 255), "tile/63/x001/000.p/255"),
        (entries_path(1_000_000_000), "tile/entries/x001/x000/x000/000"),
        (entries_path(273, 112), "tile/entries/273.p/112"),
    ],
)
def test_paths(path: str, expected: str) -> None:
    assert path == expected


@pytest.mark.parametrize(("level", "index", "width"), [(-1, 0, None), (64, 0, None), (0, -1, None), (0, 0, 0), (0, 0, 256), (0, 0, -3)])
def test_no_path_for_what_cannot_be(level: int, index: int, width: int | None) -> None:
    with pytest.raises(InputError):
        tile_path(level, index, width)


def test_a_log_written_by_another_program() -> None:
    """The entries of a Tessera log hash to its level-0 tile."""
    hashed = [leaf_hash(bytes.fromhex(entry)).hex() for entry in TESSERA["entries_hex"]]
    assert hashed == TESSERA["leaf_hashes_hex"]
    assert list(partial_tiles(len(hashed))) == [(0, 0, 15)]
