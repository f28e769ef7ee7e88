"""Running hashes: one over the derived rows of each 256 entries, one over all notes.

Most derived rows can be worked out again from the payload, but not the signatures that did not verify, nor anything of an entry whose
payload was withheld. The hash runs along the entries of a tile, so that an append costs one step:

    digest after entry i = SHA-256(digest before ‖ the rows of entry i, framed)       32 zero bytes before the first entry of a tile

Framing: for each table of `schema.DERIVED` in order, u32 number of rows; for each row, u8 number of cells; for each cell a type byte
(0 NULL, 1 integer, 2 text, 3 bytes) and, but for NULL, u32 length and content, integers in decimal.
"""

import struct
from collections.abc import Sequence
from hashlib import sha256
from typing import Final, TypeAlias

from countermark.ledger.merkle import HASH_BYTES
from countermark.ledger.tiles import TILE_WIDTH

Cell: TypeAlias = int | str | bytes | None
Row: TypeAlias = tuple[Cell, ...]
EntryRows: TypeAlias = Sequence[Sequence[Row]]
"""For each table of `schema.DERIVED`, the rows of one entry in order, without the entry's index."""

EMPTY: Final = bytes(HASH_BYTES)

_DOMAIN: Final = b"countermark-index-v1\n"
_U32: Final = struct.Struct(">I")
_BYTES: Final = tuple(bytes((number,)) for number in range(256))


def extend_rows(digest: bytes, rows: EntryRows) -> bytes:
    """The digest after one more entry."""
    parts = [_DOMAIN, digest]
    for table in rows:
        parts.append(_U32.pack(len(table)))
        for row in table:
            parts.append(_BYTES[len(row)])
            for cell in row:
                _frame(parts, cell)
    return sha256(b"".join(parts)).digest()


def extend_notes(digest: bytes, note: bytes) -> bytes:
    """The digest over all signed notes after one more, in the order of signing, so that none can go missing."""
    return sha256(digest + note).digest()


def tile_of(index: int) -> int:
    """The tile of `index_digest` that covers an entry."""
    return index // TILE_WIDTH


def begins_tile(index: int) -> bool:
    """Whether an entry is the first of its tile."""
    return index % TILE_WIDTH == 0


def _frame(parts: list[bytes], cell: Cell) -> None:
    if cell is None:
        parts.append(b"\0")
        return
    if isinstance(cell, bytes):
        kind, data = b"\3", cell
    elif isinstance(cell, str):
        kind, data = b"\2", cell.encode("utf-8", "surrogateescape")
    else:
        kind, data = b"\1", str(cell).encode()
    parts += (kind, _U32.pack(len(data)), data)
