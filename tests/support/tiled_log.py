"""A reader of static tiled logs, written from the specifications alone and with nothing of the product.

C2SP signed-note, tlog-checkpoint, tlog-tiles and tlog-proof; RFC 6962 section 2.1. It raises `ValueError` for whatever is not as they
have it.
"""

import base64
import hashlib
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def open_note(data: bytes, vkey: str) -> list[str]:
    """The lines of a note's text, if the key of type 0x01 signed it."""
    text, _, signatures = data.decode().rpartition("\n\n")
    name, key_id, encoded = vkey.split("+", 2)
    key = base64.b64decode(encoded)
    if key[0] != 1 or hashlib.sha256(f"{name}\n".encode() + key).digest()[:4].hex() != key_id:
        raise ValueError("the verifier key is not one")
    good = False
    for line in signatures.removesuffix("\n").split("\n"):
        dash, signer, blob = line.split(" ")
        signature = base64.b64decode(blob, validate=True)
        if dash != "—":
            raise ValueError("no signature line")
        if signer == name and signature[:4].hex() == key_id:
            try:
                Ed25519PublicKey.from_public_bytes(key[1:]).verify(signature[4:], f"{text}\n".encode())
            except InvalidSignature:
                raise ValueError("bad signature") from None
            good = True
    if not good:
        raise ValueError("not signed by this key")
    return text.split("\n")


def open_checkpoint(data: bytes, vkey: str) -> tuple[int, bytes]:
    """Size and root of a checkpoint of the log that is named like its key."""
    origin, size, root = open_note(data, vkey)
    if origin != vkey.split("+")[0] or str(int(size)) != size:
        raise ValueError("another log, or no size")
    return int(size), base64.b64decode(root, validate=True)


def mth(hashes: list[bytes]) -> bytes:
    """RFC 6962 section 2.1, the Merkle Tree Hash over leaf hashes, by its recursion."""
    if not hashes:
        return hashlib.sha256(b"").digest()
    if len(hashes) == 1:
        return hashes[0]
    k = 1
    while k * 2 < len(hashes):
        k *= 2
    return hashlib.sha256(b"\x01" + mth(hashes[:k]) + mth(hashes[k:])).digest()


def tile_name(n: int, width: int) -> str:
    """The `<N>[.p/<W>]` of a path."""
    text = f"{n:03d}" if n < 1000 else "/".join([*(f"x{part:03d}" for part in _groups(n // 1000)), f"{n % 1000:03d}"])
    return text if width == 256 else f"{text}.p/{width}"


def _groups(n: int) -> list[int]:
    return [n] if n < 1000 else [*_groups(n // 1000), n % 1000]


def read_log(folder: Path, vkey: str) -> list[bytes]:
    """All entries of a static log, once they and every tile of the tree lead to the signed checkpoint."""
    size, root = open_checkpoint((folder / "checkpoint").read_bytes(), vkey)
    entries: list[bytes] = []
    for n in range((size + 255) // 256):
        entries += _bundle((folder / "tile" / "entries" / tile_name(n, min(256, size - 256 * n))).read_bytes())
    hashes = [hashlib.sha256(b"\x00" + entry).digest() for entry in entries]
    if len(entries) != size or mth(hashes) != root:
        raise ValueError("the entries are not those of the checkpoint")
    level, row = 0, hashes
    while row:
        for n in range((len(row) + 255) // 256):
            part = row[256 * n : 256 * n + 256]
            if (folder / "tile" / str(level) / tile_name(n, len(part))).read_bytes() != b"".join(part):
                raise ValueError("a tile does not hold the hashes of the tree")
        level, row = level + 1, [mth(row[at : at + 256]) for at in range(0, len(row) - len(row) % 256, 256)]
    return entries


def _bundle(data: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(data):
        length = int.from_bytes(data[at : at + 2], "big")
        found.append(data[at + 2 : at + 2 + length])
        at += 2 + length
    if at != len(data):
        raise ValueError("bytes that belong to no entry")
    return found


def check_proof(data: bytes, vkey: str) -> tuple[int, bytes]:
    """The index that a `.tlog-proof` is about, and its extra bytes, which here are the entry itself."""
    head, _, note = data.partition(b"\n\n")
    first, extra, index_line, *path = head.decode().split("\n")
    if first != "c2sp.org/tlog-proof@v1" or not extra.startswith("extra ") or not index_line.startswith("index "):
        raise ValueError("no proof")
    index, entry = int(index_line[6:]), base64.b64decode(extra[6:], validate=True)
    size, root = open_checkpoint(note, vkey)
    _include(index, size, hashlib.sha256(b"\x00" + entry).digest(), [base64.b64decode(line, validate=True) for line in path], root)
    return index, entry


def _include(index: int, size: int, node: bytes, path: list[bytes], root: bytes) -> None:
    """RFC 9162 section 2.1.3.2."""
    fn, sn = index, size - 1
    if index >= size:
        raise ValueError("no such entry")
    for p in path:
        if sn == 0:
            raise ValueError("too many hashes")
        if fn & 1 or fn == sn:
            node = hashlib.sha256(b"\x01" + p + node).digest()
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            node = hashlib.sha256(b"\x01" + node + p).digest()
        fn, sn = fn >> 1, sn >> 1
    if sn or node != root:
        raise ValueError("the proof does not lead to the root")
