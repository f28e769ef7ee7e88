#!/usr/bin/env python3
"""Verify a static export of a countermark ledger, without countermark.

    python3 -I verify.py DIR --log-key VKEY [--key SIGNER.pub ...] [--checkpoint NOTE ...] [--hash-only] [--json]

An auditor should not have to run the audited party's program with the audited party's keys. This file needs Python 3.11 and the package
`cryptography`, and nothing else; it imports nothing of ours and takes no key from the export. Read it before you trust it. Get
it, its SHA-256 and the log's verifier key from somewhere that the log's operator cannot change afterwards.

What an export is (C2SP tlog-tiles, with payloads):

    SCHEMA                      which version of this layout it is
    checkpoint                  the signed head: origin, size and root over all entries
    tile/L/N[.p/W]              the Merkle tree, 256 hashes a file
    tile/entries/N[.p/W]        the leaves, each behind its length as a big-endian u16
    payload/AA/SHA256           the bytes that a leaf names: what was signed, and sigstore bundles

What is checked, in this order: the checkpoint's signature; each leaf's form, its place in time, and the chain of notices; each payload
by its digest and its signatures; each tile; the root; the checkpoints that you hold; and that no file is left that nothing vouches for.
What is not checked: what the payloads mean. `countermark verify export` also works out which entries must be notices.

Exit codes, as everywhere in countermark: 0 all of it holds; 1 not signed by whom you trust; 2 usage; 3 malformed; 4 cannot tell,
something is missing; 6 tampering; 70 a fault of this program. When several apply, the first of 70, 6, 3, 4, 1, 0.
"""

import argparse
import base64
import hashlib
import json
import os
import re
import stat
import struct
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, mldsa, padding, rsa

VERSION = 1
SCHEMAS = (b"https://countermark.dev/schema/export/v1\n", b"https://countermark.dev/schema/export/v1\nwithout payloads\n")
EXITS = {"TAMPERED": 6, "SPLIT_VIEW": 6, "ROLLBACK": 6, "MALFORMED": 3, "UNTRUSTED": 1}  # any other finding: 4, cannot tell
ORDER = (70, 6, 3, 4, 1, 0)
WIDTH = 256
LIMIT = 1 << 30  # no file of an export is read beyond this many bytes
ZERO = bytes(32)
EMPTY_ROOT = hashlib.sha256(b"").digest()
KINDS = range(1, 7)
GENESIS = "application/vnd.countermark.genesis+json"


class BadError(Exception):
    """Why a part cannot be believed: a code of the closed list, and what was seen."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class Report:
    """What was found. The same thing at several entries is told once, with all of them."""

    seen: dict[tuple[str, str, bool], list[int]] = field(default_factory=dict)

    def add(self, code: str, message: str, entry: int | None = None, *, blocks: bool = True) -> None:
        entries = self.seen.setdefault((code, message, blocks), [])
        if entry is not None:
            entries.append(entry)

    def exit(self, evaluated: int, of: int) -> int:
        """The first that applies of the blocking findings; without any, a yes if everything was evaluated."""
        codes = {EXITS.get(code, 4) for code, _, blocks in self.seen if blocks} or {0 if evaluated == of else 4}
        return next(code for code in ORDER if code in codes)


# --- Files. An export may come from a stranger: no link is followed, and nothing but a regular file is read.


def read(folder: Path, name: str, limit: int = LIMIT) -> bytes | None:
    """The bytes of a file, none if there is no such file."""
    try:
        descriptor = os.open(folder / name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BadError("MALFORMED", f"{name}: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise BadError("MALFORMED", f"{name}: it is no file")
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise BadError("MALFORMED", f"{name}: it is longer than any such file")
    return data


def name_of(kind: str, index: int) -> str:
    """The path of a full tile or bundle: the number in groups of three digits, all but the last marked with an x."""
    groups = [f"{index % 1000:03d}"]
    while index := index // 1000:
        groups.append(f"x{index % 1000:03d}")
    return "/".join([kind, *reversed(groups)])


# --- Notes and keys (C2SP signed-note, tlog-checkpoint). Strict: what two programs read differently is as good as forged.


class LogKey(NamedTuple):
    """A verifier key of type 0x01: NAME+HEX8+BASE64(0x01 || 32 bytes)."""

    name: str
    key_id: bytes
    public: bytes


def unbase64(text: str, what: str) -> bytes:
    """The bytes whose one standard encoding this is."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        raise BadError("MALFORMED", f"{what} is not base64") from None
    if base64.b64encode(data).decode() != text:
        raise BadError("MALFORMED", f"{what} is not in canonical base64")
    return data


def refuse_weak(public: bytes) -> None:
    """OpenSSL accepts made-up signatures under the points of small order, so such a key proves nothing."""
    prime, eighth = 2**255 - 19, 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
    y = int.from_bytes(public, "little") & ((1 << 255) - 1)
    if len(public) != 32 or y >= prime or y in (0, 1, prime - 1, eighth, prime - eighth):
        raise BadError("UNTRUSTED", "anyone can sign for this ed25519 key")


def parse_log_key(text: str) -> LogKey:
    """The key of `--log-key`."""
    found = re.fullmatch(r"([^+\s]+)\+([0-9a-f]{8})\+(\S+)", text)
    if not found:
        raise BadError("MALFORMED", "--log-key is not of the form NAME+HEX8+BASE64")
    name, hex_id, encoded = found.groups()
    data = unbase64(encoded, "the log key")
    if data[:1] != b"\x01" or hashlib.sha256(f"{name}\n".encode() + data).digest()[:4].hex() != hex_id:
        raise BadError("MALFORMED", "--log-key is no ed25519 key, or its key ID is not its own")
    refuse_weak(data[1:])
    return LogKey(name, bytes.fromhex(hex_id), data[1:])


def open_checkpoint(note: bytes, key: LogKey) -> tuple[int, bytes]:
    """Size and root of a checkpoint that this log signed. A bad signature in the log's name rejects the whole note."""
    if len(note) > 65_536:
        raise BadError("MALFORMED", "the checkpoint is longer than any note")
    try:
        text, empty_line, rest = note.decode().rpartition("\n\n")
    except UnicodeDecodeError:
        raise BadError("MALFORMED", "the checkpoint is not UTF-8") from None
    lines = rest.split("\n")
    if not empty_line or lines.pop() or not lines or len(lines) > 100:
        raise BadError("MALFORMED", "the checkpoint is no signed note")
    origin, size, root = parse_head(text)
    signatures = [signature for name, key_id, signature in map(parse_line, lines) if (name, key_id) == (key.name, key.key_id)]
    for signature in signatures:
        try:
            ed25519.Ed25519PublicKey.from_public_bytes(key.public).verify(signature, f"{text}\n".encode())
        except InvalidSignature:
            raise BadError("UNTRUSTED", "the checkpoint bears a bad signature in the log's name") from None
    if not signatures:
        raise BadError("UNTRUSTED", f"the checkpoint is not signed by {key.name}+{key.key_id.hex()}")
    if origin != key.name:
        raise BadError("UNTRUSTED", f"the checkpoint is about the log {origin!r}")
    return size, root


def parse_line(line: str) -> tuple[str, bytes, bytes]:
    """A signature line: key name, key ID, signature."""
    fields = line.split(" ")
    if len(fields) != 3 or fields[0] != "\u2014":
        raise BadError("MALFORMED", "the checkpoint has a line that is no signature")
    blob = unbase64(fields[2], "a signature")
    if len(blob) <= 4:
        raise BadError("MALFORMED", "the checkpoint has a line with a key ID and no signature")
    return check_name(fields[1]), blob[:4], blob[4:]


def check_name(name: str) -> str:
    """A key or log name: no spaces, plus signs or control characters."""
    if not name or re.search(r"[+\s\x00-\x1f\ud800-\udfff]", name):
        raise BadError("MALFORMED", "the checkpoint has a name that no key can have")
    return name


def parse_head(text: str) -> tuple[str, int, bytes]:
    """The three lines that were signed: origin, size, root."""
    body = text.split("\n")
    if len(body) != 3 or not re.fullmatch(r"0|[1-9][0-9]{0,18}", body[1]):
        raise BadError("MALFORMED", "the checkpoint is not origin, size and root")
    if int(body[1]) >= 2**63:
        raise BadError("MALFORMED", "the checkpoint is of more entries than any log")
    root = unbase64(body[2], "the root")
    if len(root) != 32 or (body[1] == "0" and root != EMPTY_ROOT):
        raise BadError("MALFORMED", "that cannot be the root of a log")
    return check_name(body[0]), int(body[1]), root


Verify = Callable[[bytes, bytes], None]


def load_signer(path: Path) -> tuple[bytes, dict[int, Verify]]:
    """A signer's public key in PEM: its SHA-256, by which leaves name it, and how each algorithm that it may stand for is verified."""
    try:
        key = serialization.load_pem_public_key(path.read_bytes())
    except (OSError, ValueError, UnsupportedAlgorithm) as error:
        raise BadError("MALFORMED", f"{path}: no public key in PEM: {error}") from None
    spki = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(spki).digest(), algorithms(key, path)


def algorithms(key: object, path: Path) -> dict[int, Verify]:
    """The algorithm numbers of leaves: 1 ed25519, 2 P-256, 3 P-384, 4 ML-DSA-65, 16 RSA PKCS #1 v1.5, 17 RSA-PSS."""
    match key:
        case ed25519.Ed25519PublicKey():
            refuse_weak(key.public_bytes_raw())
            return {1: key.verify}
        case ec.EllipticCurvePublicKey(curve=ec.SECP256R1()):
            return {2: lambda signature, data: key.verify(signature, data, ec.ECDSA(hashes.SHA256()))}
        case ec.EllipticCurvePublicKey(curve=ec.SECP384R1()):
            return {3: lambda signature, data: key.verify(signature, data, ec.ECDSA(hashes.SHA384()))}
        case mldsa.MLDSA65PublicKey():
            return {4: key.verify}
        case rsa.RSAPublicKey() if key.key_size >= 2048:
            pss = padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.DIGEST_LENGTH)
            return {
                16: lambda signature, data: key.verify(signature, data, padding.PKCS1v15(), hashes.SHA256()),
                17: lambda signature, data: key.verify(signature, data, pss, hashes.SHA256()),
            }
        case _:
            raise BadError("UNSUPPORTED", f"{path}: keys of this type are not accepted")


# --- The leaf: u8 version | u8 kind | u8 flags | u64 admitted_ms | prev_notice[32] | u8 length, payload_type | u64 payload_len
#     | payload_sha256[32] | bundle_sha256[32] | u8 count, then for each signature u8 algorithm | key_sha256[32] | u16 length, bytes


class Signature(NamedTuple):
    algorithm: int
    key: bytes
    value: bytes


class Leaf(NamedTuple):
    kind: int
    notice: bool
    admitted_ms: int
    prev_notice: bytes
    payload_type: str
    payload_len: int
    payload: bytes
    bundle: bytes
    signatures: tuple[Signature, ...]


def parse_leaf(data: bytes) -> Leaf:
    """The leaf in its one canonical form: signatures strictly sorted, nothing behind them. What is not known is never skipped."""
    try:
        version, kind, flags, admitted_ms, prev_notice, length = struct.unpack_from(">BBBQ32sB", data)
        payload_type = data[44 : 44 + length].decode()
        at = 44 + length
        payload_len, payload, bundle, count = struct.unpack_from(">Q32s32sB", data, at)
        at += 73
        signatures = []
        for _ in range(count):
            algorithm, key, size = struct.unpack_from(">B32sH", data, at)
            at += 35
            signatures.append(Signature(algorithm, key, data[at : at + size]))
            at += size
            if not size or at > len(data):
                raise BadError("MALFORMED", "a signature of the leaf is empty, or cut off")
    except (struct.error, UnicodeDecodeError):
        raise BadError("MALFORMED", "the leaf ends too early, or its payload type is not UTF-8") from None
    if version != VERSION or kind not in KINDS or flags > 1 or any(item.algorithm not in (1, 2, 3, 4, 16, 17) for item in signatures):
        raise BadError("UNSUPPORTED", "the leaf has a version, kind, flag or algorithm that is not known here")
    in_order = all(first < second for first, second in pairwise(signatures))
    if at != len(data) or not length or not 1 <= count <= 16 or not in_order or max(admitted_ms, payload_len) >= 2**63:
        raise BadError("MALFORMED", "the leaf is not in its canonical form")
    return Leaf(kind, bool(flags), admitted_ms, prev_notice, payload_type, payload_len, payload, bundle, tuple(signatures))


def pae(payload_type: str, payload: bytes) -> bytes:
    """What a signer signed: the pre-authentication encoding of DSSE."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


# --- The tree (RFC 6962 section 2.1), held as the hashes of the tiles that are not full yet.


def node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


class Tree:
    """Grows by leaf hashes, and gives each tile as it becomes full."""

    def __init__(self) -> None:
        self.size = 0
        self.levels: list[list[bytes]] = [[]]

    def push(self, leaf_hash: bytes) -> Iterator[tuple[int, int, list[bytes]]]:
        self.size += 1
        self.levels[0].append(leaf_hash)
        level = 0
        while len(self.levels[level]) == WIDTH:
            full = self.levels[level]
            self.levels[level] = []
            if level + 1 == len(self.levels):
                self.levels.append([])
            self.levels[level + 1].append(perfect_root(full))
            level += 1
            yield level - 1, (self.size >> 8 * level) - 1, full

    def partial(self) -> Iterator[tuple[int, int, list[bytes]]]:
        for level, row in enumerate(self.levels):
            if row:
                yield level, self.size >> 8 * (level + 1), row

    def root(self) -> bytes:
        """The perfect subtrees of the right edge, joined from the smallest up."""
        peaks: list[bytes] = []
        for row in reversed(self.levels):
            at = 0
            for bit in range(7, -1, -1):
                if len(row) >> bit & 1:
                    peaks.append(perfect_root(row[at : at + (1 << bit)]))
                    at += 1 << bit
        if not peaks:
            return EMPTY_ROOT
        root = peaks.pop()
        while peaks:
            root = node(peaks.pop(), root)
        return root


def perfect_root(row: Sequence[bytes]) -> bytes:
    """The root over a power of two of neighbouring hashes."""
    while len(row) > 1:
        row = [node(row[at], row[at + 1]) for at in range(0, len(row), 2)]
    return row[0]


def split_bundle(data: bytes, count: int) -> list[bytes]:
    """The leaves of an entry bundle."""
    leaves, at = [], 0
    while at < len(data):
        length = int.from_bytes(data[at : at + 2], "big")
        leaves.append(data[at + 2 : at + 2 + length])
        at += 2 + length
    if at != len(data) or len(leaves) != count:
        raise BadError("MALFORMED", f"it does not hold {count} entries")
    return leaves


# --- The audit.


class Audit:
    def __init__(self, folder: Path, key: LogKey, signers: dict[bytes, dict[int, Verify]], *, hash_only: bool) -> None:
        self.folder = folder
        self.key = key
        self.signers = signers
        self.hash_only = hash_only
        self.report = Report()
        self.size = 0
        self.evaluated = 0
        self.tree = Tree()
        self.whole = True  # every leaf hash so far is known
        self.roots: dict[int, bytes] = {0: EMPTY_ROOT}
        self.current: dict[str, str] = {}  # full tile or bundle -> the file that stands for it
        self.vouched = {"SCHEMA", "checkpoint"}
        self.admitted_ms = 0
        self.last_notice: bytes | None = ZERO
        self.withheld: set[bytes] = set()
        self.missing: dict[bytes, list[int]] = {}
        self.unread: set[int] = set()
        self.seen: set[tuple[object, ...]] = set()

    def run(self, held: Sequence[tuple[str, bytes]]) -> int:
        """Check all of it; the exit code."""
        self.check_schema()
        root = self.open_head()
        if root is None:
            return self.report.exit(0, 1)
        if not self.hash_only and not self.signers:
            self.report.add("INCOMPLETE", "no --key is given, so no signature of an entry was verified")
        notes = list(self.open_held(held))
        wanted = {size for _, size, _ in notes} | {self.size}
        for first in range(0, self.size, WIDTH):
            self.check_bundle(first, min(first + WIDTH, self.size), wanted)
        if self.whole:
            self.check_tiles(self.tree.partial())
        self.tell_missing()
        self.check_roots(root, notes)
        self.check_others()
        return self.report.exit(self.evaluated, self.size)

    def check_schema(self) -> None:
        found = self.load("SCHEMA", 256)
        if found is None:
            self.report.add("INCOMPLETE", "SCHEMA is missing")
        elif found not in SCHEMAS:
            self.report.add("UNSUPPORTED", "SCHEMA names no layout that is known here")

    def open_head(self) -> bytes | None:
        note = self.load("checkpoint", 65_536)
        if note is None:
            self.report.add("INCOMPLETE", "checkpoint is missing or cannot be read: nothing is published here")
            return None
        try:
            self.size, root = open_checkpoint(note, self.key)
        except BadError as bad:
            self.report.add(bad.code, f"checkpoint: {bad}")
            return None
        return root

    def open_held(self, held: Sequence[tuple[str, bytes]]) -> Iterator[tuple[str, int, bytes]]:
        for name, note in held:
            try:
                yield name, *open_checkpoint(note, self.key)
            except BadError as bad:
                self.report.add(bad.code, f"{name}: {bad}")

    def load(self, name: str, limit: int = LIMIT) -> bytes | None:
        """The bytes of a file, none if there is no such file or it cannot be read, which is then a finding."""
        try:
            return read(self.folder, name, limit)
        except BadError as bad:
            self.report.add(bad.code, str(bad))
            return None

    def check_bundle(self, first: int, stop: int, wanted: set[int]) -> None:
        """Up to 256 entries; without their bundle, their leaf hashes are taken from the tile of level 0."""
        index, count = first // WIDTH, stop - first
        name, data = self.read_current(name_of("tile/entries", index), count)
        leaves: list[bytes] = []
        if data is None:
            self.report.add("INCOMPLETE", f"{name} is missing")
        else:
            try:
                leaves = split_bundle(data, count if ".p/" in name else WIDTH)[:count]
            except BadError as bad:
                self.report.add(bad.code, f"{name}: {bad}")
        if leaves:
            for number, leaf in enumerate(leaves, first):
                hashed = hashlib.sha256(b"\x00" + leaf).digest()
                self.grow(hashed, wanted)
                self.check_entry(number, leaf, hashed)
            return
        self.last_notice = None
        _, tile = self.read_current(name_of("tile/0", index), count)
        known = [(tile or b"")[at : at + 32] for at in range(0, 32 * count, 32)]
        self.whole = self.whole and all(len(hashed) == 32 for hashed in known)
        for hashed in known:
            self.grow(hashed, wanted)

    def read_current(self, full: str, count: int) -> tuple[str, bytes | None]:
        """A partial file, or the full one that has replaced it (C2SP tlog-tiles)."""
        names = [full] if count == WIDTH else [f"{full}.p/{count}", full]
        for name in names:
            data = self.load(name)
            if data is not None:
                self.vouched.add(name)
                self.current[full] = name
                return name, data
        return names[0], None

    def grow(self, hashed: bytes, wanted: set[int]) -> None:
        if self.whole:
            self.check_tiles(self.tree.push(hashed))
            if self.tree.size in wanted:
                self.roots[self.tree.size] = self.tree.root()

    def check_tiles(self, tiles: Iterator[tuple[int, int, list[bytes]]]) -> None:
        for level, index, row in tiles:
            name, data = self.read_current(name_of(f"tile/{level}", index), len(row))
            right = b"".join(row)
            if data is None:
                self.report.add("INCOMPLETE", f"{name} is missing")
            elif not data.startswith(right) or len(data) != (len(right) if ".p/" in name else 32 * WIDTH):
                self.report.add("TAMPERED", f"{name} does not hold the hashes of the entries")

    def check_entry(self, index: int, data: bytes, hashed: bytes) -> None:
        if self.hash_only and index:
            self.evaluated += 1
            return
        try:
            leaf = parse_leaf(data)
        except BadError as bad:
            self.report.add(bad.code, str(bad), index)
            return
        self.check_order(index, leaf, hashed)
        payload = self.check_blob(index, leaf.payload)
        if leaf.bundle != ZERO and not self.hash_only:
            self.check_blob(index, leaf.bundle)
        if index == 0 and payload is not None:
            self.check_genesis(leaf, payload)
        if self.hash_only:
            self.evaluated += 1
        elif payload is None:
            self.unread.add(index)
        else:
            self.check_payload(index, leaf, payload)
            self.evaluated += 1

    def check_order(self, index: int, leaf: Leaf, hashed: bytes) -> None:
        """Time does not run backwards, and each leaf names the newest notice before it."""
        if leaf.admitted_ms < self.admitted_ms:
            self.report.add("CLOCK", "the entry was admitted before its predecessor", index)
        self.admitted_ms = leaf.admitted_ms
        if self.last_notice is not None and leaf.prev_notice != self.last_notice:
            self.report.add("TAMPERED", "the leaf does not name the newest notice before it", index)
        self.last_notice = hashed if leaf.notice else leaf.prev_notice
        said = (leaf.kind, leaf.payload_type, leaf.payload, *((signature.algorithm, signature.key) for signature in leaf.signatures))
        if said in self.seen:
            self.report.add("DUPLICATE", "the entry repeats an earlier one", index)
        self.seen.add(said)

    def check_genesis(self, leaf: Leaf, payload: bytes) -> None:
        """Entry 0 says what this log is; it must be the log whose key you brought along."""
        said = parse_object(payload)
        key = base64.b64encode(b"\x01" + self.key.public).decode()
        ours = (GENESIS, self.key.name, f"{self.key.name}+{self.key.key_id.hex()}+{key}")
        if (leaf.payload_type, said.get("origin"), said.get("log_vkey")) != ours:
            self.report.add("TAMPERED", "entry 0 names another log or key", 0)

    def check_blob(self, index: int, digest: bytes) -> bytes | None:
        """The bytes that a leaf names by their SHA-256."""
        name = f"payload/{digest.hex()[:2]}/{digest.hex()}"
        self.vouched.add(name)
        try:
            data = read(self.folder, name)
        except BadError as bad:
            self.report.add(bad.code, str(bad), index)
            return None
        if data is None:
            self.missing.setdefault(digest, []).append(index)
        elif hashlib.sha256(data).digest() != digest:
            self.report.add("TAMPERED", "the payload or bundle is not what was signed", index)
            return None
        return data

    def check_payload(self, index: int, leaf: Leaf, payload: bytes) -> None:
        if len(payload) != leaf.payload_len:
            self.report.add("TAMPERED", "the size of the payload is not what was admitted", index)
        if index and leaf.payload_type == GENESIS:
            self.report.add("TAMPERED", "entry 0, and no other, is the genesis", index)
        if leaf.kind == 6:
            self.report.add("ROLLBACK", "the log was restored here, and newer entries of the one before are lost", index)
        if leaf.kind == 2:
            self.report.add("UNSUPPORTED", "key events are not judged: a key that was taken away is believed", index, blocks=False)
        if leaf.kind == 4:
            found = re.fullmatch(r"payload:sha256:([0-9a-f]{64})", str(parse_object(payload).get("payload")))
            if found:
                self.withheld.add(bytes.fromhex(found[1]))
        if self.signers:
            signed = pae(leaf.payload_type, payload)
            for signature in leaf.signatures:
                self.check_signature(index, signature, signed)

    def check_signature(self, index: int, signature: Signature, signed: bytes) -> None:
        known = self.signers.get(signature.key)
        if known is None:
            self.report.add("UNTRUSTED", f"signed by a key that you did not give: {signature.key.hex()}", index)
            return
        try:
            if signature.algorithm not in known:
                raise InvalidSignature
            known[signature.algorithm](signature.value, signed)
        except (InvalidSignature, ValueError):
            self.report.add("UNTRUSTED", "a signature does not hold", index)

    def tell_missing(self) -> None:
        """A payload that a withhold notice (kind 4) names was erased on purpose; its leaf still stands."""
        for digest, entries in self.missing.items():
            self.evaluated += len(self.unread.intersection(entries)) if digest in self.withheld else 0
            for entry in entries:
                if digest in self.withheld:
                    self.report.add("WITHHELD", "the payload was withheld", entry, blocks=False)
                else:
                    self.report.add("INCOMPLETE", "the payload or bundle is missing", entry)

    def check_roots(self, root: bytes, held: Sequence[tuple[str, int, bytes]]) -> None:
        if not self.whole:
            self.report.add("INCOMPLETE", "the root cannot be worked out without the missing entries")
        intact = self.whole and self.roots.get(self.size) == root
        if self.whole and not intact:
            self.report.add("TAMPERED", "the entries do not hash to the root that was signed")
        for name, size, then in held:
            if size > self.size:
                self.report.add("ROLLBACK", f"the export has {self.size} entries, and {name} says {size}")
            elif self.whole and self.roots.get(size) != then:
                self.report.add("SPLIT_VIEW" if intact else "TAMPERED", f"at {size} entries the root is not that of {name}")

    def check_others(self) -> None:
        """A partial file of a smaller head must be the beginning of the one that stands now; anything else is only named."""
        for path, folders, files in os.walk(self.folder):
            links = [name for name in folders if (Path(path) / name).is_symlink()]
            for name in sorted([*files, *links]):
                self.check_other((Path(path) / name).relative_to(self.folder).as_posix())

    def check_other(self, name: str) -> None:
        full, _, width = name.partition(".p/")
        current = self.current.get(full)
        if name in self.vouched or (self.hash_only and name.startswith("payload/")):
            return
        if current is None or not re.fullmatch(r"[1-9][0-9]{0,2}", width) or int(width) >= WIDTH:
            self.report.add("MALFORMED", f"{name} belongs to nothing that the checkpoint covers", blocks=False)
            return
        part, whole = (self.load(name) or b"" for name in (name, current))
        try:
            good = len(split_bundle(part, int(width))) if full.startswith("tile/entries/") else len(part) == 32 * int(width)
        except BadError:
            good = False
        if not good or not whole.startswith(part):
            self.report.add("TAMPERED", f"{name} is not the beginning of {current}")


def parse_object(payload: bytes) -> dict[str, object]:
    """A JSON object without repeated members, empty for anything else."""

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        return dict(pairs) if len(dict(pairs)) == len(pairs) else {}

    try:
        value = json.loads(payload, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


# --- The command.


def spans(entries: Sequence[int]) -> str:
    """`entries 3, 5-9`, or nothing."""
    found: list[list[int]] = []
    for entry in sorted(set(entries)):
        if found and found[-1][1] + 1 == entry:
            found[-1][1] = entry
        else:
            found.append([entry, entry])
    text = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in found)
    return f" [entries {text}]" if text else ""


def tell(audit: Audit, code: int, *, as_json: bool) -> None:
    """Every finding, then the answer on one line."""
    findings = [
        {"code": name, "observed": message, "entries": sorted(set(entries)), "blocks": blocks}
        for (name, message, blocks), entries in audit.report.seen.items()
    ]
    if as_json:
        answer = {"exit": code, "origin": audit.key.name, "size": audit.size, "evaluated": audit.evaluated, "findings": findings}
        sys.stdout.write(json.dumps(answer, indent=2) + "\n")
        return
    for (name, message, blocks), entries in audit.report.seen.items():
        sys.stdout.write(f"{'x' if blocks else '!'} {name}: {message}{spans(entries)}\n".encode("ascii", "backslashreplace").decode())
    word = {0: "OK", 1: "FAIL", 3: "INVALID", 4: "CANNOT_TELL", 6: "TAMPERED"}[code]
    counted = f"evaluated {audit.evaluated} of {audit.size}"
    sys.stdout.write(f"{word}  {counted}, log {audit.key.name} at {audit.size}, exit {code}\n".encode("ascii", "backslashreplace").decode())


def main(arguments: Sequence[str]) -> int:
    """Run the command; its exit code."""
    parser = argparse.ArgumentParser(prog="verify.py", description="Verify a static export of a countermark ledger.")
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--log-key", metavar="VKEY", help="the log's verifier key, or a file with it; never one from the export")
    parser.add_argument("--key", action="append", default=[], type=Path, metavar="FILE", help="a signer's public key in PEM; repeatable")
    parser.add_argument("--checkpoint", action="append", default=[], type=Path, metavar="NOTE", help="a checkpoint that you hold")
    parser.add_argument("--hash-only", action="store_true", help="leaves, tiles and root alone")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    try:
        if not given.log_key:
            raise BadError("UNTRUSTED", "give --log-key: nothing can be believed without it")
        if not given.folder.is_dir():
            raise BadError("MALFORMED", f"{given.folder} is no folder")
        text = given.log_key if given.log_key.count("+") >= 2 else Path(given.log_key).read_text().strip()
        signers = dict(map(load_signer, given.key))
        audit = Audit(given.folder, parse_log_key(text), signers, hash_only=given.hash_only)
        held = [(str(path), path.read_bytes()[:65_537]) for path in given.checkpoint]
    except (BadError, OSError, UnicodeDecodeError) as error:
        sys.stderr.write(f"verify.py: {error}\n")
        return 3 if given.log_key else 4
    code = audit.run(held)
    tell(audit, code, as_json=given.json)
    return code


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        os._exit(141)
    except Exception:  # noqa: BLE001  # the border: Python would exit with 1, which is a verdict
        traceback.print_exc()
        sys.exit(70)
