"""The tree as it grows, held as the tiles that are not full yet: what an export is written from, and checked with.

For each tile level the hashes of its last, partial tile; that is at most 255 hashes a level, whatever the size of the tree.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from countermark.ledger.merkle import HASH_BYTES, HashReader, root_at
from countermark.ledger.tiles import TILE_HEIGHT, TILE_WIDTH, tile_root, tile_rows


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile with its place; `width` is none for a full one."""

    level: int
    index: int
    width: int | None
    hashes: bytes


class RightEdge:
    """The partial tiles of a tree that leaf hashes are added to. It can be read as a `HashReader`, as far as the root calls for."""

    def __init__(self) -> None:
        self.size = 0
        self._levels: list[list[bytes]] = [[]]

    @classmethod
    def at(cls, size: int, read: HashReader) -> "RightEdge":
        """The edge of a tree of `size` leaves whose hashes are known."""
        edge = cls()
        edge.size = size
        edge._levels = []
        level = 0
        while level == 0 or size >> TILE_HEIGHT * level:
            count = size >> TILE_HEIGHT * level
            first = count - count % TILE_WIDTH
            edge._levels.append([read.node(TILE_HEIGHT * level, index) for index in range(first, count)])
            level += 1
        return edge

    def push(self, hashed: bytes) -> Iterator[Tile]:
        """Add a leaf hash; the tiles that become full with it, lowest first."""
        self.size += 1
        self._levels[0].append(hashed)
        level = 0
        while len(self._levels[level]) == TILE_WIDTH:
            hashes = b"".join(self._levels[level])
            self._levels[level] = []
            if level + 1 == len(self._levels):
                self._levels.append([])
            self._levels[level + 1].append(tile_root(hashes))
            yield Tile(level, (self.size >> TILE_HEIGHT * (level + 1)) - 1, None, hashes)
            level += 1

    def partial(self) -> Iterator[Tile]:
        """The partial tiles, lowest first; a level without remainder has none."""
        for level, hashes in enumerate(self._levels):
            if hashes:
                yield Tile(level, self.size >> TILE_HEIGHT * (level + 1), len(hashes), b"".join(hashes))

    def root(self) -> bytes:
        """The root of the tree so far."""
        return root_at(self.size, self)

    def node(self, level: int, index: int) -> bytes:
        """See `HashReader.node`; for the perfect subtrees whose roots make up the root of the tree."""
        tile_level, height = divmod(level, TILE_HEIGHT)
        offset = (index << height) % TILE_WIDTH
        return tile_rows(self._levels[tile_level])[height][offset >> height]


def split_hashes(data: bytes) -> list[bytes]:
    """The hashes of a tile of any width."""
    return [data[at : at + HASH_BYTES] for at in range(0, len(data), HASH_BYTES)]
