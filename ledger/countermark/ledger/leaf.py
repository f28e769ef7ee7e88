"""The leaf: what the tree commits to for each entry, in the one binary form of version 1 (big-endian, lengths before texts).

    u8 version = 1 | u8 kind | u8 flags | u64 admitted_ms | prev_notice[32] | u8 length, payload_type | u64 payload_len
    | payload_sha256[32] | bundle_sha256[32] | u8 count, then per signature: u8 algorithm | key_sha256[32] | u16 length, signature

A leaf is under 64 KiB, so that it is an entry of a C2SP tlog-tiles bundle as it stands. There is exactly one byte string for each
leaf: signatures are strictly sorted, unused flag bits are zero, nothing follows the last signature. A version, kind, flag or algorithm
that is not listed here is refused and never skipped, because skipping is how an old reader is shown less than a new one.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from hashlib import sha256
from itertools import pairwise
from typing import Any, NamedTuple, Self, TypeVar

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError
from countermark.attestations.keys import Algorithm
from countermark.ledger.merkle import HASH_BYTES
from countermark.ledger.travelling import Travelling

LEAF_VERSION = 1
NO_HASH = bytes(HASH_BYTES)
"""What stands for "none" in `prev_notice` and `bundle_sha256`."""
MAX_LEAF_BYTES = 65_535
MAX_SIGNATURES = 16

_NOTICE_FLAG = 0x01
_MAX_INTEGER = 2**63 - 1
_MAX_TYPE_BYTES = 255
_MAX_SIGNATURE_BYTES = 65_535
_DEDUP_DOMAIN = b"countermark-dedup-v1\n"

_HEAD = struct.Struct(f">BBBQ{HASH_BYTES}sB")
_PAYLOAD = struct.Struct(f">Q{HASH_BYTES}s{HASH_BYTES}sB")
_SIGNATURE = struct.Struct(f">B{HASH_BYTES}sH")


class EntryKind(IntEnum):
    """What an entry is about."""

    ATTESTATION = 1
    KEY_EVENT = 2
    POLICY = 3
    WITHHOLD = 4
    IMPORT_MARKER = 5
    INCARNATION = 6


@dataclass(frozen=True, slots=True, order=True)
class LeafSignature(Travelling):
    """A signature that verified when the entry was admitted. The order of these is the order in a leaf.

    `algorithm` is an `Algorithm` of the attestations, `key_sha256` the SHA-256 of the key's SubjectPublicKeyInfo, and `signature` is
    raw, or DER for ECDSA. `InputError` UNSUPPORTED for another algorithm, MALFORMED for a wrong length.
    """

    algorithm: int
    key_sha256: bytes
    signature: bytes

    def __post_init__(self) -> None:
        _known(Algorithm, self.algorithm, "signature algorithm")
        _check_hash("key_sha256", self.key_sha256)
        if not 1 <= len(self.signature) <= _MAX_SIGNATURE_BYTES:
            raise _malformed(f"a signature is 1 to {_MAX_SIGNATURE_BYTES} bytes long, not {len(self.signature)}")

    def encode(self) -> bytes:
        """The bytes of this signature in a leaf."""
        return _SIGNATURE.pack(self.algorithm, self.key_sha256, len(self.signature)) + self.signature


@dataclass(frozen=True, slots=True)
class Leaf:
    """One leaf. A leaf that cannot be written down cannot be made: `InputError` MALFORMED or UNSUPPORTED says why.

    `admitted_ms` is milliseconds since 1970 UTC as the ledger claims it; `prev_notice` the leaf hash of the newest notice before this
    entry; `payload_sha256` and `payload_len` are of the bytes that were signed; `bundle_sha256` is of a sigstore bundle as received.
    Integers stay below 2**63, which every store and language can hold.
    """

    kind: EntryKind
    notice: bool
    admitted_ms: int
    prev_notice: bytes
    payload_type: str
    payload_len: int
    payload_sha256: bytes
    bundle_sha256: bytes
    signatures: tuple[LeafSignature, ...]

    def __post_init__(self) -> None:
        _known(EntryKind, self.kind, "entry kind")
        for name, number in (("admitted_ms", self.admitted_ms), ("payload_len", self.payload_len)):
            if not 0 <= number <= _MAX_INTEGER:
                raise _malformed(f"{name} {number} is not from 0 to 2**63 - 1")
        _check_hash("prev_notice", self.prev_notice)
        _check_hash("payload_sha256", self.payload_sha256)
        _check_hash("bundle_sha256", self.bundle_sha256)
        if not 1 <= len(_utf8(self.payload_type)) <= _MAX_TYPE_BYTES:
            raise _malformed(f"a payload type is 1 to {_MAX_TYPE_BYTES} bytes long")
        _check_signatures(self.signatures)
        fixed = _HEAD.size + _PAYLOAD.size + _SIGNATURE.size * len(self.signatures)
        if fixed + len(_utf8(self.payload_type)) + sum(len(item.signature) for item in self.signatures) > MAX_LEAF_BYTES:
            raise _malformed(f"a leaf is at most {MAX_LEAF_BYTES} bytes long")

    def encode(self) -> bytes:
        """The one byte string for this leaf."""
        payload_type = _utf8(self.payload_type)
        flags = _NOTICE_FLAG if self.notice else 0
        return b"".join(
            (
                _HEAD.pack(LEAF_VERSION, self.kind, flags, self.admitted_ms, self.prev_notice, len(payload_type)),
                payload_type,
                _PAYLOAD.pack(self.payload_len, self.payload_sha256, self.bundle_sha256, len(self.signatures)),
                *(signature.encode() for signature in self.signatures),
            )
        )

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """The leaf that `data` is the encoding of.

        `InputError` UNSUPPORTED for a version, kind, flag or algorithm that is not known here, MALFORMED for anything else that
        `encode` would not have written.
        """
        if len(data) > MAX_LEAF_BYTES:
            raise _malformed(f"a leaf is at most {MAX_LEAF_BYTES} bytes long, not {len(data)}")
        if data and data[0] != LEAF_VERSION:
            raise _unsupported("leaf version", data[0])
        cursor = _Cursor(data)
        _, kind, flags, admitted_ms, prev_notice, type_bytes = cursor.unpack(_HEAD)
        if flags & ~_NOTICE_FLAG:
            raise _unsupported("leaf flags", flags)
        payload_type = _text(cursor.take(type_bytes))
        payload_len, payload_sha256, bundle_sha256, count = cursor.unpack(_PAYLOAD)
        leaf = cls(
            kind=_known(EntryKind, kind, "entry kind"),
            notice=bool(flags & _NOTICE_FLAG),
            admitted_ms=admitted_ms,
            prev_notice=prev_notice,
            payload_type=payload_type,
            payload_len=payload_len,
            payload_sha256=payload_sha256,
            bundle_sha256=bundle_sha256,
            signatures=tuple(_read_signature(cursor) for _ in range(count)),
        )
        # Whatever the reader above might overlook, such as bytes after the end: only the canonical form is a leaf.
        if leaf.encode() != data:
            raise _malformed("a leaf is not in its canonical form")
        return leaf

    @property
    def dedup(self) -> bytes:
        """What makes a second admission of the same statement a duplicate: the payload and who signed it with which algorithm.

        Not the signatures, which an ECDSA key makes anew each time. The payload type carries its length as it does in the leaf:
        without it, a longer type could take over the bytes of the digest and key that follow.
        """
        payload_type = _utf8(self.payload_type)
        signers = sorted({(signature.algorithm, signature.key_sha256) for signature in self.signatures})
        fields = (_DEDUP_DOMAIN, bytes((self.kind, len(payload_type))), payload_type, self.payload_sha256)
        return sha256(b"".join(fields) + b"".join(bytes((algorithm,)) + key for algorithm, key in signers)).digest()


class Links(NamedTuple):
    """What a leaf says of its place in the log."""

    notice: bool
    admitted_ms: int
    prev_notice: bytes


def links_of(data: bytes) -> Links:
    """The links of the leaf that `data` was decoded as before; nothing is checked."""
    _, _, flags, admitted_ms, prev_notice, _ = _HEAD.unpack_from(data)
    return Links(bool(flags & _NOTICE_FLAG), admitted_ms, prev_notice)


def blobs_named(data: bytes) -> tuple[bytes, bytes]:
    """The digests of payload and bundle, if `data` is a leaf; nothing is checked, and what is too short for them names none."""
    start = _HEAD.size + data[_HEAD.size - 1] if len(data) >= _HEAD.size else 0
    if not start or len(data) < start + _PAYLOAD.size:
        return NO_HASH, NO_HASH
    _, payload_sha256, bundle_sha256, _ = _PAYLOAD.unpack_from(data, start)
    return payload_sha256, bundle_sha256


class _Cursor:
    """Reads forward over bytes and refuses to read past their end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        if len(taken) != count:
            raise _malformed(f"a leaf of {len(self._data)} bytes ends too early")
        self._at += count
        return taken

    def unpack(self, layout: struct.Struct) -> tuple[Any, ...]:
        return layout.unpack(self.take(layout.size))


def _read_signature(cursor: _Cursor) -> LeafSignature:
    algorithm, key_sha256, length = cursor.unpack(_SIGNATURE)
    return LeafSignature(algorithm, key_sha256, cursor.take(length))


def _check_signatures(signatures: tuple[LeafSignature, ...]) -> None:
    if not 1 <= len(signatures) <= MAX_SIGNATURES:
        raise _malformed(f"a leaf holds 1 to {MAX_SIGNATURES} signatures, not {len(signatures)}")
    if any(first >= second for first, second in pairwise(signatures)):
        raise _malformed("the signatures of a leaf are not strictly sorted by algorithm, key and signature")


def _check_hash(name: str, value: bytes) -> None:
    if len(value) != HASH_BYTES:
        raise _malformed(f"{name} is {len(value)} bytes long, not {HASH_BYTES}")


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise _malformed("a payload type holds a lone surrogate, which UTF-8 cannot express") from None


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise _malformed("a payload type is not UTF-8") from None


_Listed = TypeVar("_Listed", bound=IntEnum)


def _known(listed: type[_Listed], value: int, what: str) -> _Listed:
    if type(value) is listed:
        return value
    try:
        return listed(value)
    except ValueError:
        raise _unsupported(what, value) from None


def _unsupported(what: str, value: int) -> InputError:
    return InputError(Code.UNSUPPORTED, f"{what} {value} is not known to this version", fix="use a newer countermark")


def _malformed(message: str) -> InputError:
    return InputError(Code.MALFORMED, message, fix="run `countermark verify ledger` to see which entries are damaged")
