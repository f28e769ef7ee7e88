"""Checkpoints: the signed statement "this log had this many entries and this root" (C2SP tlog-checkpoint in a signed-note).

    example.com/log            the origin, which is also the name of the log's key
    20852163                   the size, in decimal
    CsUYapGGPo4dkMgI...        the root hash, in base64
                               an empty line
    — example.com/log Az3g...  one line a signature: key name, base64(key ID || signature)

Everything here is strict, because a note that two programs read differently is as good as a forged one: Python's `int` takes `007`,
`+7` and `1_0`, and its base64 decoder takes several texts for the same bytes. Only Ed25519 (type 0x01) is known. Lines by other keys,
those of witnesses for instance, must have the right form and are otherwise ignored; a bad signature under the log's own key rejects
the whole note, whatever else is on it.
"""

import base64
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, RefusedError
from countermark.attestations.keys import refuse_weak_ed25519
from countermark.ledger.merkle import EMPTY_ROOT, HASH_BYTES

MAX_NOTE_BYTES = 65_536
MAX_SIGNATURE_LINES = 100
"""The specification asks readers to accept 16 at least."""
MAX_TREE_SIZE = 2**63 - 1

_ED25519 = b"\x01"
_KEY_ID_BYTES = 4
_PUBLIC_BYTES = 32
_EM_DASH = "\N{EM DASH}"

_DECIMAL = re.compile(r"(?:0|[1-9][0-9]{0,18})\Z")
_NOT_IN_NAME = re.compile(r"[+\x00-\x1f\ud800-\udfff]")
_HEX_KEY_ID = re.compile(r"[0-9a-f]{8}\Z")


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """The public half of a log key, written as `<name>+<key ID in hex>+<base64(0x01 || public key)>`.

    The key ID is SHA-256(name || 0x0a || 0x01 || public key)[:4]: a look-up aid that anyone can collide, never an identity.
    `InputError` MALFORMED for a key ID that is not this key's, and UNSUPPORTED for a public key under which anyone can sign (OpenSSL
    accepts made-up signatures for the points of small order).
    """

    name: str
    key_id: bytes
    public: bytes

    def __post_init__(self) -> None:
        _check_name(self.name)
        if len(self.public) != _PUBLIC_BYTES:
            raise _malformed(f"an ed25519 public key is {_PUBLIC_BYTES} bytes, not {len(self.public)}")
        if self.key_id != _key_id(self.name, self.public):
            raise _malformed(f"the key ID {self.key_id.hex()} is not that of the key {self.name}")
        refuse_weak_ed25519(self.public, self.name)

    @classmethod
    def of(cls, name: str, public: bytes) -> Self:
        """The verifier key of a name and a 32-byte Ed25519 public key."""
        _check_name(name)
        return cls(name, _key_id(name, public), public)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the written form, exactly as `str` writes it. `InputError` MALFORMED, or UNSUPPORTED for a key of another type."""
        name, _, rest = text.partition("+")
        hex_id, _, encoded = rest.partition("+")
        if not _HEX_KEY_ID.match(hex_id) or not encoded:
            raise _malformed(f"{text!r} is not a verifier key of the form NAME+HEX8+BASE64")
        data = _decode_base64(encoded, "the key of a verifier key")
        if data[:1] != _ED25519:
            raise InputError(Code.UNSUPPORTED, f"the verifier key of {name!r} is not of type ed25519 (0x01)", fix="use an ed25519 log key")
        return cls(name, bytes.fromhex(hex_id), data[1:])

    def __str__(self) -> str:
        return f"{self.name}+{self.key_id.hex()}+{_encode_base64(_ED25519 + self.public)}"

    def verify(self, text: bytes, signature: bytes) -> bool:
        """Whether `signature` is this key's over the text of a note."""
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, text)
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The head of a log at one size: the log's origin, the number of entries, and the root hash (32 bytes) over them.

    `InputError` MALFORMED for values that no checkpoint can have, such as a root for no entries that is not the hash of nothing.
    """

    origin: str
    size: int
    root: bytes

    def __post_init__(self) -> None:
        _check_name(self.origin)
        if not 0 <= self.size <= MAX_TREE_SIZE:
            raise _malformed(f"a checkpoint cannot be of {self.size} entries")
        if len(self.root) != HASH_BYTES or (self.size == 0 and self.root != EMPTY_ROOT):
            raise _malformed(f"{self.root.hex()!r} cannot be the root of {self.size} entries")

    def body(self) -> str:
        """The text that is signed: three lines, each with its newline."""
        return f"{self.origin}\n{self.size}\n{_encode_base64(self.root)}\n"


class CheckpointSigner:
    """Holds a log's private key. Its name is the log's origin."""

    def __init__(self, name: str, private: Ed25519PrivateKey) -> None:
        self.vkey = VerifierKey.of(name, private.public_key().public_bytes_raw())
        self._private = private

    def sign(self, checkpoint: Checkpoint) -> str:
        """The checkpoint as a note. Whoever calls this promises never to sign one that is inconsistent with it.

        `RefusedError` UNTRUSTED for another log's origin.
        """
        if checkpoint.origin != self.vkey.name:
            raise _foreign_origin(checkpoint.origin, self.vkey)
        body = checkpoint.body()
        signature = self._private.sign(body.encode())
        return f"{body}\n{_EM_DASH} {self.vkey.name} {_encode_base64(self.vkey.key_id + signature)}\n"


def open_checkpoint(note: str | bytes, key: VerifierKey) -> Checkpoint:
    """The checkpoint in a note, if the log that owns `key` signed it.

    `InputError` MALFORMED if the note is not of the form above; `RefusedError` UNTRUSTED if a line in this key's name does not verify,
    if there is no such line, or if the note is about another log. It is never tampering of the log: anyone can spoil a note. Extension
    lines are refused: nothing in a log vouches for them.
    """
    text, lines = _split(_read_text(note))
    checkpoint = _parse_body(text)
    signatures = [line.signature for line in lines if (line.name, line.key_id) == (key.name, key.key_id)]
    if not all(key.verify(text.encode(), signature) for signature in signatures):
        raise RefusedError(
            Code.UNTRUSTED,
            f"the checkpoint bears a bad signature in the name of {key.name}+{key.key_id.hex()}",
            fix="get the checkpoint again from the log; if it fails again, somebody altered it",
        )
    if not signatures:
        raise RefusedError(
            Code.UNTRUSTED,
            f"the checkpoint is not signed by {key.name}+{key.key_id.hex()}",
            fix="give the verifier key of the log that made this checkpoint",
        )
    if checkpoint.origin != key.name:
        raise _foreign_origin(checkpoint.origin, key)
    return checkpoint


class _SignatureLine(NamedTuple):
    name: str
    key_id: bytes
    signature: bytes


def _read_text(note: str | bytes) -> str:
    """The note as text: UTF-8, and not too long to look at. Control characters have no place in any part of the form read below."""
    if len(note) > MAX_NOTE_BYTES:
        raise _malformed(f"a note of {len(note)} bytes is longer than {MAX_NOTE_BYTES}")
    try:
        return (note.encode() if isinstance(note, str) else note).decode()
    except UnicodeError:
        raise _malformed("the note is not UTF-8") from None


def _split(note: str) -> tuple[str, list[_SignatureLine]]:
    """The signed text, with its last newline, and the signature lines; the last empty line of the note parts them."""
    text, empty_line, rest = note.rpartition("\n\n")
    lines = rest.split("\n")
    if not empty_line or lines.pop() or not lines:
        raise _malformed("a note is a text, an empty line, and signature lines that each end in a newline")
    if len(lines) > MAX_SIGNATURE_LINES:
        raise _malformed(f"a note with {len(lines)} signatures has more than {MAX_SIGNATURE_LINES}")
    return text + "\n", [_parse_line(line) for line in lines]


def _parse_line(line: str) -> _SignatureLine:
    fields = line.split(" ")
    if len(fields) != 3 or fields[0] != _EM_DASH:
        raise _malformed("a signature line is an em dash (U+2014), a key name and a signature, parted by one space each")
    data = _decode_base64(fields[2], "a signature")
    if len(data) <= _KEY_ID_BYTES:
        raise _malformed("a signature line holds a key ID and no signature")
    return _SignatureLine(_check_name(fields[1]), data[:_KEY_ID_BYTES], data[_KEY_ID_BYTES:])


def _parse_body(text: str) -> Checkpoint:
    lines = text.split("\n")
    if len(lines) != 4:
        raise _malformed("a checkpoint is three lines: origin, size, root")
    origin, size, root, _ = lines
    if not _DECIMAL.match(size):
        raise _malformed(f"{size!r} is not a tree size in decimal without leading zeros")
    return Checkpoint(origin, int(size), _decode_base64(root, "the root"))


def _check_name(name: str) -> str:
    """A name without spaces and plus signs, which part the fields of a line and of a verifier key, and that a note can hold."""
    if not name or _NOT_IN_NAME.search(name) or any(character.isspace() for character in name):
        raise _malformed(f"{name!r} cannot be the name of a log or key: spaces, plus signs and control characters are not allowed")
    return name


def _key_id(name: str, public: bytes) -> bytes:
    return sha256(name.encode() + b"\n" + _ED25519 + public).digest()[:_KEY_ID_BYTES]


def _encode_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decode_base64(text: str, what: str) -> bytes:
    """The bytes whose one standard encoding is `text`: padded, and with zeros in the bits that the last digit has to spare."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        raise _malformed(f"{what} is not base64") from None
    if _encode_base64(data) != text:
        raise _malformed(f"{what} is not in canonical base64")
    return data


def _malformed(message: str) -> InputError:
    return InputError(Code.MALFORMED, message, fix="give the file as the log wrote it, unedited")


def _foreign_origin(origin: str, key: VerifierKey) -> RefusedError:
    return RefusedError(
        Code.UNTRUSTED,
        f"the checkpoint is about the log {origin!r}, and the key is that of {key.name!r}",
        fix="give the verifier key of the log that made this checkpoint",
    )
