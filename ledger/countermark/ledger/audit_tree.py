"""Checks of the tree and of everything that was signed over it: head, tiles, checkpoints, the anchor, notes held by others."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, NamedTuple

from countermark.attestations.codes import Code
from countermark.attestations.errors import CountermarkError
from countermark.ledger.anchor import Anchor
from countermark.ledger.audit_report import Findings
from countermark.ledger.chains import EMPTY, extend_notes
from countermark.ledger.merkle import Frontier
from countermark.ledger.note import Checkpoint, VerifierKey, open_checkpoint
from countermark.ledger.snapshot import Snapshot
from countermark.ledger.tiles import TILE_BYTES, TILE_WIDTH, tile_root

_HEAD: Final = "SELECT id, size, root, frontier, note, admitted_ms, notes_chain FROM head"


@dataclass(frozen=True, slots=True)
class HeadRow:
    """The stored head."""

    id: Any
    size: Any
    root: Any
    frontier: Any
    note: Any
    admitted_ms: Any
    notes_chain: Any


class Roots:
    """The tree over the leaf hashes that were computed: its full tiles, and its roots at the sizes that were asked for in advance."""

    def __init__(self, hashes: Sequence[bytes], sizes: Iterable[int]) -> None:
        self.tiles = _full_tiles(hashes)
        self._roots: dict[int, bytes] = {}
        wanted = sorted({size for size in sizes if 0 <= size <= len(hashes)})
        frontier = Frontier()
        for size in wanted:
            frontier = self._grown(frontier, hashes, size)
            self._roots[size] = frontier.root()
        self.frontier = self._grown(frontier, hashes, len(hashes))

    def at(self, size: int) -> bytes | None:
        """The root at a size; none beyond the tree."""
        return self._roots.get(size)

    def _grown(self, frontier: Frontier, hashes: Sequence[bytes], size: int) -> Frontier:
        """The frontier with the leaves up to `size`; whole tiles by their roots."""
        while frontier.size < size:
            tile, offset = divmod(frontier.size, TILE_WIDTH)
            if not offset and frontier.size + TILE_WIDTH <= size:
                frontier = frontier.push(self.tiles[0][tile].root, TILE_WIDTH)
            else:
                frontier = frontier.push(hashes[frontier.size])
        return frontier


class _Tile(NamedTuple):
    """A full tile as the entries call for it."""

    hashes: bytes
    root: bytes


def _full_tiles(hashes: Sequence[bytes]) -> list[list[_Tile]]:
    """The full tiles of each level that has any."""
    levels, row = [], b"".join(hashes)
    while len(row) >= TILE_BYTES:
        tiles = (row[start : start + TILE_BYTES] for start in range(0, len(row) - TILE_BYTES + 1, TILE_BYTES))
        levels.append([_Tile(tile, tile_root(tile)) for tile in tiles])
        row = b"".join(tile.root for tile in levels[-1])
    return levels


def read_head(ledger: Snapshot, findings: Findings) -> HeadRow | None:
    """The one row of table `head`."""
    rows = ledger.rows(_HEAD)
    heads = [HeadRow(*row) for row in rows if row[0] == 1]
    if len(rows) != 1 or not heads:
        findings.add(Code.TAMPERED, "head", f"table head has {len(rows)} rows, {len(heads)} of them with id 1", required="one")
    return heads[0] if heads else None


def check_head(head: HeadRow, roots: Roots, key: VerifierKey, admitted_ms: int, findings: Findings) -> bool:
    """The head is what its note says, and what the entries hash to. Whether the entries do."""
    signed = opened(head.note, key, findings, "head", "the head's note")
    frontier = roots.frontier
    agrees = bool(frontier.root() == head.root and frontier.size == head.size)
    for good, observed in (
        (signed is None or (signed.size, signed.root) == (head.size, head.root), "size and root are not those of the note"),
        (frontier.size == head.size, f"there are {frontier.size} entries, and the head says {head.size}"),
        (frontier.root() == head.root, "the entries do not hash to the root"),
        (signed is None or signed.root == frontier.root(), "the entries do not hash to the root that was signed"),
        (head.frontier == frontier.encode(), "the frontier is not that of the entries"),
        (head.admitted_ms == admitted_ms, "the time is not that of the newest entry"),
    ):
        if not good:
            findings.add(Code.TAMPERED, "head", observed)
    return agrees


def check_tiles(ledger: Snapshot, roots: Roots, findings: Findings) -> None:
    """Each full tile is stored as the entries call for, and no other."""
    stored = {(row[0], row[1]): row[2:] for row in ledger.stream("SELECT level, idx, hashes, root FROM tile")}
    for level, tiles in enumerate(roots.tiles):
        for index, tile in enumerate(tiles):
            _check_tile(level, index, stored.pop((level, index), None), tile, findings)
    for level, index in stored:
        findings.add(Code.TAMPERED, "tiles", f"tile {level}/{index} is not full at this size, or not a tile")


def _check_tile(level: int, index: int, stored: tuple[Any, ...] | None, wanted: _Tile, findings: Findings) -> None:
    name, width = f"tile {level}/{index}", TILE_WIDTH ** (level + 1)
    covered = range(index * width, (index + 1) * width)
    if stored is None:
        findings.extend(Code.INCOMPLETE, "tiles", f"{name} is missing", covered)
        return
    hashes, stored_root = stored
    if not isinstance(hashes, bytes) or len(hashes) != TILE_BYTES:
        findings.extend(Code.MALFORMED, "tiles", f"{name} is not {TILE_WIDTH} hashes", covered)
    elif hashes != wanted.hashes:
        findings.extend(Code.TAMPERED, "tiles", f"{name} does not hold the hashes of the entries", covered)
    if stored_root != wanted.root:
        findings.extend(Code.TAMPERED, "tiles", f"the root of {name} is wrong", covered)


def checkpoint_sizes(ledger: Snapshot) -> list[int]:
    """The sizes that notes were signed for."""
    return [size for (size,) in ledger.rows("SELECT size FROM checkpoint") if isinstance(size, int)]


def check_checkpoints(ledger: Snapshot, head: HeadRow | None, roots: Roots, key: VerifierKey, intact: bool, findings: Findings) -> None:
    """Each note ever signed is here, verifies, and is about the tree as it was at its size."""
    chain, note = EMPTY, None
    for size, digest, root, note in ledger.stream("SELECT size, note_sha256, root, note FROM checkpoint ORDER BY size, note_sha256"):
        name = f"the checkpoint at {size}"
        encoded = note.encode("utf-8", "surrogateescape") if isinstance(note, str) else b""
        chain = extend_notes(chain, encoded)
        signed = opened(note, key, findings, "checkpoints", name)
        if digest != sha256(encoded).digest() or (signed and (signed.size, signed.root) != (size, root)):
            findings.add(Code.TAMPERED, "checkpoints", f"{name} is not what its note says")
        if signed and roots.at(signed.size) != signed.root:
            code = Code.SPLIT_VIEW if intact else Code.TAMPERED
            findings.extend(code, "checkpoints", f"{name} was signed over another root than the entries had", range(signed.size))
    if head and (chain != head.notes_chain or note != head.note):
        findings.add(Code.TAMPERED, "checkpoints", "the checkpoints are not all those that were signed")


def opened(note: object, key: VerifierKey, findings: Findings, checker: str, name: str) -> Checkpoint | None:
    """The checkpoint in a stored note; a finding if the log did not sign it."""
    if not isinstance(note, str):
        findings.add(Code.TAMPERED, checker, f"{name} is {type(note).__name__}, not text")
        return None
    try:
        return open_checkpoint(note, key)
    except CountermarkError as error:
        findings.add(Code.TAMPERED, checker, f"{name} does not verify: {error.message}")
        return None


def check_growth_since(held: Checkpoint, size: int, roots: Roots, intact: bool, findings: Findings, checker: str) -> bool:
    """Whether the ledger continues a checkpoint that is held outside it. The entries named are those that are gone, or may be others."""
    if held.size > size:
        observed = f"the ledger has {size} entries; a checkpoint held outside it says {held.size}"
        findings.extend(Code.ROLLBACK, checker, observed, range(size, held.size))
    elif roots.at(held.size) != held.root:
        code, found = Code.SPLIT_VIEW if intact else Code.TAMPERED, roots.at(held.size)
        observed = f"at {held.size} entries the ledger has the root {found.hex() if found else 'none'}"
        findings.extend(code, checker, observed, range(held.size), required=f"{held.root.hex()}, as a checkpoint held outside it says")
    return held.size <= size and roots.at(held.size) == held.root


def check_anchor_note(anchor: Anchor, key: VerifierKey, findings: Findings) -> bool:
    """Whether the log signed the anchor; one that it did not sign accuses nobody."""
    try:
        anchor.check_note(key)
    except CountermarkError as error:
        findings.add(Code.MALFORMED, "anchor", error.message)
        return False
    return True
