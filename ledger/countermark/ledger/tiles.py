"""The tree as tiles of 256 hashes (C2SP tlog-tiles).

A tile is a row of up to 256 neighbouring hashes, and the hashes of level n are the roots of the *full* tiles of level n - 1; level 0
holds leaf hashes. So tile level n is tree level 8n, and the seven tree levels between two tile levels are worked out when asked for.

Only full tiles are stored, because only they never change. What lies right of the last full tile of each level is derived: at level
0 from the leaf hashes of the entries, above from the full tiles below.
"""

from collections.abc import Callable, Iterator, Sequence

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError
from countermark.ledger.merkle import HASH_BYTES, node_hash

TILE_HEIGHT = 8
TILE_WIDTH = 1 << TILE_HEIGHT
TILE_BYTES = TILE_WIDTH * HASH_BYTES
_LAST_LEVEL = 63


def tile_root(hashes: bytes) -> bytes:
    """The root over the 256 hashes (8,192 bytes) of a full tile; `InputError` MALFORMED for any other length.

    A partial tile has no root: hashing one into the level above is what the specification forbids.
    """
    left, right = tile_rows(split_tile(hashes))[-1]
    return node_hash(left, right)


def split_tile(hashes: bytes) -> list[bytes]:
    """The 256 hashes of a full tile; `InputError` MALFORMED for any other length than 8,192 bytes."""
    if len(hashes) != TILE_BYTES:
        raise _malformed(f"a full tile is {TILE_BYTES} bytes, not {len(hashes)}")
    return [hashes[at : at + HASH_BYTES] for at in range(0, TILE_BYTES, HASH_BYTES)]


def tiles_completed(before: int, after: int) -> Iterator[tuple[int, int]]:
    """(level, index) of the tiles that become full when a tree grows from `before` to `after` leaves, lower levels first."""
    if not 0 <= before <= after:
        raise _malformed(f"a tree cannot grow from {before} to {after} entries")
    level = 0
    while (full := after >> TILE_HEIGHT * (level + 1)) > 0:
        for index in range(before >> TILE_HEIGHT * (level + 1), full):
            yield level, index
        level += 1


def partial_tiles(size: int) -> Iterator[tuple[int, int, int]]:
    """(level, index, width) of the partial tiles of a tree, lowest level first; a level without remainder has none."""
    level = 0
    while (hashes := size >> TILE_HEIGHT * level) > 0:
        index, width = divmod(hashes, TILE_WIDTH)
        if width:
            yield level, index, width
        level += 1


def tile_path(level: int, index: int, width: int | None = None) -> str:
    """The path of a tile below the log's prefix, such as `tile/1/x001/x234/067` or, 17 hashes wide, `tile/2/000.p/17`."""
    if not 0 <= level <= _LAST_LEVEL:
        raise _malformed(f"there is no tile level {level}")
    return f"tile/{level}/{_index_path(index, width)}"


def entries_path(index: int, width: int | None = None) -> str:
    """The path of the bundle of the entries whose leaf hashes are tile `index` of level 0."""
    return f"tile/entries/{_index_path(index, width)}"


class TileReader:
    """A `HashReader` over full tiles and the leaf hashes of the right edge.

    A tile is read once and hashed once, so that a reader serves one proof, or a batch of proofs of one tree, at a few look-ups each. It
    believes what it is given: a wrong hash makes a proof that fails, never one that passes.
    """

    def __init__(
        self,
        size: int,
        load_tile: Callable[[int, int], bytes],
        load_leaves: Callable[[int, int], Sequence[bytes]],
        load_roots: Callable[[int, int, int], Sequence[bytes]] | None = None,
    ) -> None:
        """Read a tree of `size` leaves.

        `load_tile(level, index)` gives the 8,192 bytes of a full tile, `load_leaves(start, stop)` the leaf hashes of the level-0
        tile that is not yet full. `load_roots(level, start, stop)`, where there is one, gives the stored roots of full tiles; without
        it each root is worked out from its tile, which costs a tile read and 255 hashes.
        """
        self._size = size
        self._load_tile = load_tile
        self._load_leaves = load_leaves
        self._load_roots = load_roots or self._roots_from_tiles
        self._tiles: dict[tuple[int, int], list[list[bytes]]] = {}

    def node(self, level: int, index: int) -> bytes:
        """See `HashReader.node`. `InputError` MALFORMED for a subtree that is not within the tree."""
        if level < 0 or index < 0 or (index + 1) << level > self._size:
            raise _malformed(f"a tree of {self._size} entries has no full subtree {index} at level {level}")
        tile_level, height = divmod(level, TILE_HEIGHT)
        tile, offset = divmod(index << height, TILE_WIDTH)
        if (tile_level, tile) not in self._tiles:
            self._tiles[tile_level, tile] = tile_rows(self._hashes(tile_level, tile))
        return self._tiles[tile_level, tile][height][offset >> height]

    def _hashes(self, tile_level: int, tile: int) -> Sequence[bytes]:
        """The hashes of a tile, as many as there are."""
        there = self._size >> TILE_HEIGHT * tile_level
        start, stop = tile * TILE_WIDTH, min((tile + 1) * TILE_WIDTH, there)
        if stop - start == TILE_WIDTH:
            return split_tile(self._load_tile(tile_level, tile))
        found = self._load_roots(tile_level - 1, start, stop) if tile_level else self._load_leaves(start, stop)
        return self._checked(found, stop - start)

    def _roots_from_tiles(self, level: int, start: int, stop: int) -> list[bytes]:
        return [tile_root(self._load_tile(level, index)) for index in range(start, stop)]

    @staticmethod
    def _checked(hashes: Sequence[bytes], count: int) -> Sequence[bytes]:
        if len(hashes) != count or any(len(value) != HASH_BYTES for value in hashes):
            raise _malformed(f"the store gave {len(hashes)} values where the tree has {count} hashes of {HASH_BYTES} bytes")
        return hashes


def tile_rows(hashes: Sequence[bytes]) -> list[list[bytes]]:
    """The hashes of a tile and, above them, those of each perfect subtree within it: row h is h levels up; a full tile has no row 8."""
    rows = [list(hashes)]
    while len(rows) < TILE_HEIGHT:
        row = rows[-1]
        rows.append(list(map(node_hash, row[::2], row[1::2])))
    return rows


def _index_path(index: int, width: int | None) -> str:
    """A tile number in groups of three digits, all but the last marked with x, so that a path is never both file and folder."""
    if index < 0 or (width is not None and not 0 < width < TILE_WIDTH):
        raise _malformed(f"there is no tile {index} of width {width}")
    groups = [f"{index % 1000:03d}"]
    while index := index // 1000:
        groups.append(f"x{index % 1000:03d}")
    suffix = "" if width is None else f".p/{width}"
    return "/".join(reversed(groups)) + suffix


def _malformed(message: str) -> InputError:
    return InputError(Code.MALFORMED, message, fix="run `countermark verify ledger` to see which part of the ledger is damaged")
