"""Cosignatures: a witness says that, when it signed, this was the largest consistent head it had seen of a log (C2SP tlog-cosignature).

A cosignature is a line of the log's own note. Its signature is u64 POSIX seconds (big-endian) || the bytes that the key made over

* Ed25519 (type 0x04): `cosignature/v1\\n` `time SECONDS\\n` and the text of the checkpoint;
* ML-DSA-44 (type 0x06): the structure `cosigned_message`, which also commits to the witness's name.

The type is part of the key ID, so that a plain signature over a note cannot be passed off as a cosignature, nor the reverse.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self, TypeAlias

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PrivateKey, MLDSA44PublicKey

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, RefusedError
from countermark.attestations.keys import refuse_weak_ed25519
from countermark.ledger.note import Checkpoint
from countermark.ledger.signed_note import SignatureLine, SignedNote, WrittenKey, check_name, key_id, malformed

ED25519_COSIGNATURE: Final = 0x04
ML_DSA_44_COSIGNATURE: Final = 0x06
MAX_TIME_S: Final = 2**63 - 1

_PUBLIC_BYTES: Final = {ED25519_COSIGNATURE: 32, ML_DSA_44_COSIGNATURE: 1312}
_SIGNATURE_BYTES: Final = {ED25519_COSIGNATURE: 64, ML_DSA_44_COSIGNATURE: 2420}
_TIME: Final = struct.Struct(">Q")
TIME_BYTES: Final = _TIME.size
"""The bytes of a cosignature before what the key made: seconds since 1970, big-endian."""
_RANGE: Final = struct.Struct(">QQ")
_MAX_NAME_BYTES: Final = 255

WitnessPrivateKey: TypeAlias = Ed25519PrivateKey | MLDSA44PrivateKey


@dataclass(frozen=True, slots=True)
class CosignerKey:
    """The public half of a witness's key; `type` is 0x04 or 0x06. Written as a verifier key.

    `InputError` MALFORMED for a wrong length or key ID, UNSUPPORTED for another type or a key under which anyone can sign.
    """

    name: str
    key_id: bytes
    type: int
    public: bytes

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.type not in _PUBLIC_BYTES:
            message = f"the verifier key of {self.name!r} is of type 0x{self.type:02x}"
            raise InputError(Code.UNSUPPORTED, message, fix="use a witness key of type 0x04 (ed25519) or 0x06 (ML-DSA-44)")
        if len(self.public) != _PUBLIC_BYTES[self.type]:
            raise malformed(f"a witness key of type 0x{self.type:02x} is {_PUBLIC_BYTES[self.type]} bytes, not {len(self.public)}")
        if self.key_id != key_id(self.name, self.type, self.public):
            raise malformed(f"the key ID {self.key_id.hex()} is not that of the key {self.name}")
        if self.type == ED25519_COSIGNATURE:
            refuse_weak_ed25519(self.public, self.name)

    @classmethod
    def of(cls, name: str, key_type: int, public: bytes) -> Self:
        """The key of a witness by its name and public key bytes."""
        return cls(name, key_id(check_name(name), key_type, public), key_type, public)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the written form."""
        written = WrittenKey.parse(text)
        return cls(written.name, written.key_id, written.type, written.public)

    def __str__(self) -> str:
        return str(WrittenKey(self.name, self.key_id, self.type, self.public))

    def cosignatures(self, note: SignedNote) -> Iterator["Cosignature"]:
        """Each cosignature in this key's name. `InputError` MALFORMED for one that is none, `RefusedError` for one that does not
        hold.

        A note that a known key is made to vouch for falsely is rejected whole (C2SP signed-note).
        """
        checkpoint = Checkpoint.parse(note.text)
        for line in note.by(self.name, self.key_id):
            yield self._checked(checkpoint, line)

    def _checked(self, checkpoint: Checkpoint, line: SignatureLine) -> "Cosignature":
        if len(line.signature) != _TIME.size + _SIGNATURE_BYTES[self.type]:
            raise malformed(f"the cosignature of {self.name} is {len(line.signature)} bytes long")
        (time_s,) = _TIME.unpack_from(line.signature)
        if time_s > MAX_TIME_S:
            raise malformed(f"the cosignature of {self.name} names a time beyond 2**63 - 1")
        try:
            self._verify(cosigned_message(self.type, self.name, time_s, checkpoint), line.signature[_TIME.size :])
        except InvalidSignature:
            message = f"the checkpoint bears a bad cosignature in the name of {self.name}+{self.key_id.hex()}"
            raise RefusedError(Code.UNTRUSTED, message, fix="get the cosignature again from the witness") from None
        return Cosignature(self, time_s, line)

    def _verify(self, message: bytes, signature: bytes) -> None:
        if self.type == ED25519_COSIGNATURE:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, message)
        else:
            MLDSA44PublicKey.from_public_bytes(self.public).verify(signature, message)


@dataclass(frozen=True, slots=True)
class Cosignature:
    """A cosignature that holds; `time_s` is when it was made, in POSIX seconds as the witness claims."""

    key: CosignerKey
    time_s: int
    line: SignatureLine


class Cosigner:
    """Holds a witness's private key. Whoever calls `sign` has seen to it that the checkpoint continues all that it signed before."""

    def __init__(self, name: str, private: WitnessPrivateKey) -> None:
        key_type = ED25519_COSIGNATURE if isinstance(private, Ed25519PrivateKey) else ML_DSA_44_COSIGNATURE
        self.vkey = CosignerKey.of(name, key_type, private.public_key().public_bytes_raw())
        self._private = private

    def sign(self, checkpoint: Checkpoint, time_s: int) -> SignatureLine:
        """The cosignature line over a checkpoint. `InputError` MALFORMED for a name or time that the message cannot hold."""
        if not 0 < time_s <= MAX_TIME_S:
            raise malformed(f"{time_s} is no time of a cosignature")
        message = cosigned_message(self.vkey.type, self.vkey.name, time_s, checkpoint)
        return SignatureLine(self.vkey.name, self.vkey.key_id, _TIME.pack(time_s) + self._private.sign(message))


def cosigned_message(key_type: int, name: str, time_s: int, checkpoint: Checkpoint) -> bytes:
    """The bytes that a witness signs, for either type of key."""
    if key_type == ED25519_COSIGNATURE:
        return f"cosignature/v1\ntime {time_s}\n{checkpoint.body()}".encode()
    whole_tree = _RANGE.pack(0, checkpoint.size)
    return b"subtree/v1\n\0" + _short(name) + _TIME.pack(time_s) + _short(checkpoint.origin) + whole_tree + checkpoint.root


def _short(text: str) -> bytes:
    data = text.encode()
    if not 1 <= len(data) <= _MAX_NAME_BYTES:
        raise malformed(f"a name of {len(data)} bytes does not fit into an ML-DSA-44 cosignature")
    return bytes((len(data),)) + data
