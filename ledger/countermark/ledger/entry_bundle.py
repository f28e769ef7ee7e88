"""Entry bundles: up to 256 leaves, each behind its length as a big-endian u16 (C2SP tlog-tiles)."""

import struct
from collections.abc import Iterable
from typing import Final

from countermark.ledger.leaf import MAX_LEAF_BYTES
from countermark.ledger.signed_note import malformed
from countermark.ledger.tiles import TILE_WIDTH

MAX_BUNDLE_BYTES: Final = TILE_WIDTH * (2 + MAX_LEAF_BYTES)

_LENGTH: Final = struct.Struct(">H")


def encode_bundle(leaves: Iterable[bytes]) -> bytes:
    """The bytes of a bundle."""
    return b"".join(part for leaf in leaves for part in (_LENGTH.pack(len(leaf)), leaf))


def decode_bundle(data: bytes, count: int) -> list[bytes]:
    """The `count` leaves of a bundle. `InputError` MALFORMED for any other number of them, or bytes that belong to none."""
    leaves, at = [], 0
    while at < len(data):
        if at + _LENGTH.size > len(data):
            raise malformed("an entry bundle ends within a length")
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        leaves.append(data[at : at + length])
        at += length
    if at != len(data) or len(leaves) != count:
        raise malformed(f"an entry bundle holds {len(leaves)} entries of {len(data)} bytes where {count} entries belong")
    return leaves
