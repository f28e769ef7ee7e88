"""Signatures over files: what a sigstore bundle with a message signature signs, and the file or digest that is held against it.

Source of the format: sigstore protobuf-specs, `MessageSignature` of `sigstore_common.proto`.
"""

from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Final, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.serialization import load_der_public_key

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.documents import exists, read_file
from countermark.attestations.errors import CannotTellError, InputError, Location, RefusedError
from countermark.attestations.keys import PublicKey

MAX_ARTIFACT: Final = 1 << 30
"""Bytes of a file that is read whole, for keys that sign no hash of it."""

_DIGEST: Final = "sha256:"


@dataclass(frozen=True, slots=True)
class FileSignature:
    """A signature over a file, and the SHA-256 that the bundle states for it, if it does: a hint, never evidence."""

    signature: bytes
    stated: bytes | None


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file by its SHA-256; `path` is none where only the digest is at hand."""

    digest: Digest
    path: Path | None = None

    @classmethod
    def of(cls, text: str) -> Self:
        """A file by its path, or by `sha256:HEX64` where there is no such file. `InputError` when it cannot be read."""
        path = Path(text)
        if text.startswith(_DIGEST) and not exists(path):
            return cls(Digest.parse(f"{DigestKind.FILE}:{text}", at=Location("--artifact")))
        try:
            with path.open("rb") as file:
                return cls(Digest(DigestKind.FILE, file_digest(file, "sha256").hexdigest()), path)
        except OSError as error:
            why = error.strerror or "it cannot be read"
            raise InputError(Code.UNREADABLE, why, at=Location(text), fix="give the file that was signed, or its sha256:HEX") from None

    def check(self, key: PublicKey, signature: bytes, source: str) -> None:
        """`RefusedError` SIG_INVALID unless the key signed this file; `CannotTellError` for a key that needs more than the digest."""
        public = load_der_public_key(key.spki)
        if isinstance(public, ec.EllipticCurvePublicKey) and isinstance(public.curve, ec.SECP256R1):
            try:
                public.verify(signature, self.digest.raw, ec.ECDSA(Prehashed(hashes.SHA256())))
            except InvalidSignature:
                raise RefusedError(
                    Code.SIG_INVALID, "the signature is not over this file by this key", at=Location(source), fix="give the file as signed"
                ) from None
        elif self.path is None:
            message = f"a {key.algorithm.name} signature is not over a SHA-256 of the file"
            raise CannotTellError(Code.SIG_UNVERIFIABLE, message, at=Location(source), fix="give the file itself with --artifact")
        else:
            key.verify(read_file(self.path, limit=MAX_ARTIFACT), signature)
