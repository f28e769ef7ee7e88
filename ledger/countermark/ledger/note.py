"""Checkpoints: the signed statement "this log had this many entries and this root" (C2SP tlog-checkpoint in a signed-note).

    example.com/log            the origin, which is also the name of the log's key
    20852163                   the size, in decimal
    CsUYapGGPo4dkMgI...        the root hash, in base64
                               an empty line
    — example.com/log Az3g...  one line a signature

A log key is Ed25519 (type 0x01). Lines by other keys, those of witnesses for instance, must have the right form and are otherwise
ignored here (`cosignature` reads them); a bad signature under the log's own key rejects the whole note, whatever else is on it.
"""

from dataclasses import dataclass
from typing import Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, RefusedError
from countermark.attestations.keys import refuse_weak_ed25519
from countermark.ledger.merkle import EMPTY_ROOT, HASH_BYTES
from countermark.ledger.signed_note import (
    SignatureLine,
    SignedNote,
    WrittenKey,
    check_name,
    decode_base64,
    encode_base64,
    key_id,
    malformed,
    read_decimal,
)

MAX_TREE_SIZE = 2**63 - 1
ED25519_TYPE = 0x01
"""The signature type of a note that an Ed25519 key signed."""

_PUBLIC_BYTES = 32


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """The public half of a log key, written as `<name>+<key ID in hex>+<base64(0x01 || public key)>`.

    `InputError` MALFORMED for a key ID that is not this key's, and UNSUPPORTED for a public key under which anyone can sign (OpenSSL
    accepts made-up signatures for the points of small order).
    """

    name: str
    key_id: bytes
    public: bytes

    def __post_init__(self) -> None:
        check_name(self.name)
        if len(self.public) != _PUBLIC_BYTES:
            raise malformed(f"an ed25519 public key is {_PUBLIC_BYTES} bytes, not {len(self.public)}")
        if self.key_id != key_id(self.name, ED25519_TYPE, self.public):
            raise malformed(f"the key ID {self.key_id.hex()} is not that of the key {self.name}")
        refuse_weak_ed25519(self.public, self.name)

    @classmethod
    def of(cls, name: str, public: bytes) -> Self:
        """The verifier key of a name and a 32-byte Ed25519 public key."""
        return cls(name, key_id(check_name(name), ED25519_TYPE, public), public)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the written form, exactly as `str` writes it. `InputError` MALFORMED, or UNSUPPORTED for a key of another type."""
        written = WrittenKey.parse(text)
        if written.type != ED25519_TYPE:
            message = f"the verifier key of {written.name!r} is not of type ed25519 (0x01)"
            raise InputError(Code.UNSUPPORTED, message, fix="use an ed25519 log key")
        return cls(written.name, written.key_id, written.public)

    def __str__(self) -> str:
        return str(WrittenKey(self.name, self.key_id, ED25519_TYPE, self.public))

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
        check_name(self.origin)
        if not 0 <= self.size <= MAX_TREE_SIZE:
            raise malformed(f"a checkpoint cannot be of {self.size} entries")
        if len(self.root) != HASH_BYTES or (self.size == 0 and self.root != EMPTY_ROOT):
            raise malformed(f"{self.root.hex()!r} cannot be the root of {self.size} entries")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text of a note. Extension lines are refused: nothing in a log vouches for them."""
        lines = text.split("\n")
        if len(lines) != 4 or lines[3]:
            raise malformed("a checkpoint is three lines: origin, size, root")
        origin, size, root, _ = lines
        return cls(origin, read_decimal(size, "a tree size"), decode_base64(root, "the root"))

    def body(self) -> str:
        """The text that is signed: three lines, each with its newline."""
        return f"{self.origin}\n{self.size}\n{encode_base64(self.root)}\n"


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
        return str(SignedNote(body, (SignatureLine(self.vkey.name, self.vkey.key_id, self._private.sign(body.encode())),)))


def open_checkpoint(note: str | bytes, key: VerifierKey) -> Checkpoint:
    """The checkpoint in a note, if the log that owns `key` signed it.

    `InputError` MALFORMED if the note is not of the form above; `RefusedError` UNTRUSTED if a line in this key's name does not verify,
    if there is no such line, or if the note is about another log. It is never tampering of the log: anyone can spoil a note.
    """
    return check_signed(SignedNote.parse(note), key)


def check_signed(note: SignedNote, key: VerifierKey) -> Checkpoint:
    """See `open_checkpoint`, for a note that is taken apart already."""
    checkpoint = Checkpoint.parse(note.text)
    signatures = [line.signature for line in note.by(key.name, key.key_id)]
    if not all(key.verify(note.text.encode(), signature) for signature in signatures):
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


def _foreign_origin(origin: str, key: VerifierKey) -> RefusedError:
    return RefusedError(
        Code.UNTRUSTED,
        f"the checkpoint is about the log {origin!r}, and the key is that of {key.name!r}",
        fix="give the verifier key of the log that made this checkpoint",
    )
