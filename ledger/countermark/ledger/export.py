"""Writing a ledger as a static tiled log: files that any web server can serve, and anybody can verify without us.

Everything is worked out from the stored leaves, and is published only if it leads to the root that the log signed. The checkpoint is
written last, so a reader finds either the export of before or the whole one of now; a run that was ended begins where it must and
compares what it finds. A file that a published checkpoint covers never changes again.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from countermark.attestations.codes import Code
from countermark.attestations.errors import CannotTellError, CountermarkError, Location, TamperError
from countermark.ledger.derive import withheld
from countermark.ledger.entry_bundle import encode_bundle
from countermark.ledger.export_files import CHECKPOINT, SCHEMA_TEXT, SCHEMA_TEXT_BARE, ExportFolder, payload_path
from countermark.ledger.leaf import NO_HASH, EntryKind, Leaf
from countermark.ledger.merkle import leaf_hash
from countermark.ledger.note import Checkpoint, VerifierKey, open_checkpoint
from countermark.ledger.read import LedgerReader
from countermark.ledger.right_edge import RightEdge, Tile
from countermark.ledger.signed_note import MAX_NOTE_BYTES
from countermark.ledger.tiles import TILE_HEIGHT, TILE_WIDTH, entries_path, tile_path

Progress = Callable[[int, int], None]

_ENTRIES: Final = (
    "SELECT e.idx, e.leaf, p.data FROM entry AS e LEFT JOIN payload AS p ON p.sha256 = e.payload_sha256 "
    "WHERE e.idx >= ? AND e.idx < ? ORDER BY e.idx"
)
_LEAVES: Final = "SELECT idx, leaf, NULL FROM entry WHERE idx >= ? AND idx < ? ORDER BY idx"


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export did: the head that it published, the size published before, and how many files it wrote."""

    checkpoint: Checkpoint
    before: int
    written: int
    withheld: int


def export(
    reader: LedgerReader, folder: Path, note: str | None = None, progress: Progress | None = None, *, payloads: bool = True
) -> Exported:
    """Bring the export in `folder` up to the reader's head, and publish it.

    `note` is the head's note with cosignatures, where there are any. Without `payloads`, hashes and leaves are exported alone. Raises
    `TamperError` (ROLLBACK or SPLIT_VIEW when more, or something else, has been published; TAMPERED), `CannotTellError`, `InputError`.
    """
    with ExportFolder.claimed(folder, SCHEMA_TEXT if payloads else SCHEMA_TEXT_BARE) as claimed:
        return _Export(reader, claimed, payloads, progress).run(note or reader.head.note)


class _Export:
    def __init__(self, reader: LedgerReader, folder: ExportFolder, payloads: bool, progress: Progress | None) -> None:
        self._reader = reader
        self._folder = folder
        self._payloads = payloads
        self._progress = progress
        self._size = reader.head.size
        self._before = 0
        self._written = 0
        self._withheld = 0
        self._erased = _erased(reader) if payloads else frozenset()

    def run(self, note: str) -> Exported:
        self._before = self._published()
        for digest in self._erased:
            self._folder.remove(payload_path(digest))
        start = self._before - self._before % TILE_WIDTH
        edge = RightEdge.at(start, self._reader.tree(self._size))
        for first in range(start, self._size, TILE_WIDTH):
            self._bundle(edge, first, min(first + TILE_WIDTH, self._size))
            if self._progress:
                self._progress(min(first + TILE_WIDTH, self._size), self._size)
        for tile in edge.partial():
            self._tile(tile)
        if edge.root() != self._reader.head.root:
            raise self._reader.tampered("the entries do not hash to the root that was signed")
        self._folder.publish(note)
        head = self._reader.head
        return Exported(Checkpoint(head.origin, head.size, head.root), self._before, self._written, self._withheld)

    def _published(self) -> int:
        """How many entries the checkpoint in the folder covers, once the ledger is known to continue it."""
        note = self._folder.read(CHECKPOINT, MAX_NOTE_BYTES)
        if note is None:
            return 0
        at = Location(str(self._folder.folder / CHECKPOINT))
        try:
            old = open_checkpoint(note, VerifierKey.parse(self._reader.genesis.log_vkey))
        except CountermarkError as error:
            raise type(error)(error.code, error.message, at=at, fix="export into a new folder") from None
        fix = "keep this checkpoint and the ledger: together they show what was taken back"
        if old.size > self._size:
            message = f"{old.size} entries have been published, and the ledger has {self._size}"
            raise TamperError(Code.ROLLBACK, message, at=at, fix=fix)
        if self._reader.root_at(old.size) != old.root:
            message = f"at {old.size} entries the ledger has another root than the one that was published"
            raise TamperError(Code.SPLIT_VIEW, message, at=at, fix=fix)
        return old.size

    def _bundle(self, edge: RightEdge, first: int, stop: int) -> None:
        leaves = []
        for leaf, data in self._stored(first, stop):
            leaves.append(leaf)
            for tile in edge.push(leaf_hash(leaf)):
                self._tile(tile)
            if self._payloads:
                self._payload(first + len(leaves) - 1, leaf, data)
        width = None if stop - first == TILE_WIDTH else stop - first
        self._put(entries_path(first // TILE_WIDTH, width), encode_bundle(leaves), published=stop <= self._before)

    def _stored(self, first: int, stop: int) -> Iterator[tuple[bytes, object]]:
        """The leaves of the entries first..stop-1, each with what is stored as its payload."""
        expected = first
        for index, leaf, data in self._reader.stream(_ENTRIES if self._payloads else _LEAVES, first, stop):
            if index != expected or not isinstance(leaf, bytes):
                break
            yield leaf, data
            expected += 1
        if expected != stop:
            raise self._reader.tampered(f"entry {expected} is missing or no leaf")

    def _payload(self, index: int, encoded: bytes, data: object) -> None:
        try:
            leaf = Leaf.decode(encoded)
        except CountermarkError as error:
            raise self._reader.tampered(f"entry {index} cannot be read: {error.message}") from None
        published = index < self._before
        if leaf.payload_sha256 in self._erased:
            self._withheld += 1
        else:
            good = isinstance(data, bytes) and sha256(data).digest() == leaf.payload_sha256
            self._blob(leaf.payload_sha256, data if good and isinstance(data, bytes) else None, published=published)
        if leaf.bundle_sha256 != NO_HASH:
            self._blob(leaf.bundle_sha256, None, published=published)

    def _blob(self, digest: bytes, data: bytes | None, *, published: bool) -> None:
        data = self._reader.payload(digest) if data is None else data
        self._put(payload_path(digest), data, published=published)

    def _tile(self, tile: Tile) -> None:
        covered = (tile.index * TILE_WIDTH + (tile.width or TILE_WIDTH)) << TILE_HEIGHT * tile.level
        self._put(tile_path(tile.level, tile.index, tile.width), tile.hashes, published=covered <= self._before)

    def _put(self, name: str, data: bytes, *, published: bool) -> None:
        self._written += self._folder.put(name, data, published=published)


def _erased(reader: LedgerReader) -> frozenset[bytes]:
    """The payloads that are not here and that a withhold notice says were erased on purpose."""
    notices = [index for (index,) in reader.rows("SELECT idx FROM entry WHERE kind = ? ORDER BY idx", int(EntryKind.WITHHOLD))]
    named = {withheld(entry.leaf.kind, entry.payload) for entry in map(reader.entry, notices)} - {None}
    gone = set()
    for digest in named:
        try:
            reader.payload(digest or b"")
        except CannotTellError:
            gone.add(digest or b"")
    return frozenset(gone)
