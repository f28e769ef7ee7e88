"""Public keys that verify, signers that sign.

Both call the cryptography package directly, so that the read path of the gate imports nothing else. Keys behind a URI (PKCS#11 tokens,
key services) go through securesystemslib; its own ML-DSA signatures follow TUF's TAP 21 and not DSSE, so local keys do not.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import Self, TypeAlias

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, mldsa, padding, rsa

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.documents import exists, read_file
from countermark.attestations.errors import CannotTellError, InputError, Location, RefusedError

PASSWORD_VARIABLE = "COUNTERMARK_PASSWORD"

MAX_KEY_FILE = 64 * 1024

_SCHEME = re.compile(r"[a-z][a-z0-9]+:")

_P = 2**255 - 19
# y coordinates of the points of order 1, 2, 4 and 8 (RFC 7748 curve25519, Edwards form): anyone can make a signature that
# OpenSSL accepts for such a key.
_ORDER_8 = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
_SMALL_ORDER_Y = frozenset({0, 1, _P - 1, _ORDER_8, _P - _ORDER_8})


class Algorithm(IntEnum):
    """Signature algorithms, numbered as in a ledger leaf. RSA is verified on import only; we never sign with it."""

    ED25519 = 1
    ECDSA_P256_SHA256 = 2
    ECDSA_P384_SHA384 = 3
    ML_DSA_65 = 4
    RSA_PKCS1V15_SHA256 = 16
    RSA_PSS_SHA256 = 17


@dataclass(frozen=True)
class PublicKey:
    """A public key, identified by the SHA-256 of its DER SubjectPublicKeyInfo and by nothing else."""

    spki: bytes
    source: str = field(default="-", compare=False)

    @classmethod
    def from_pem(cls, data: bytes, source: str) -> Self:
        """Read a PEM or DER public key; `InputError` for anything else, and for keys that prove nothing."""
        try:
            key = serialization.load_pem_public_key(data) if b"-----BEGIN" in data else serialization.load_der_public_key(data)
        except (ValueError, UnsupportedAlgorithm):
            raise InputError(
                Code.UNREADABLE, "this is not a public key in PEM or DER", at=Location(source), fix="give the .pub file"
            ) from None
        made = cls(key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo), source)
        _ = made.algorithm
        return made

    def __reduce__(self) -> "tuple[type[PublicKey], tuple[bytes, str]]":
        """For another process: what a library made of the bytes stays here."""
        return PublicKey, (self.spki, self.source)

    @cached_property
    def fingerprint(self) -> Digest:
        """The key's identity."""
        return Digest.of(DigestKind.SPKI, self.spki)

    @cached_property
    def algorithm(self) -> Algorithm:
        """The one algorithm that the key is used with; an RSA key is read as PKCS #1 v1.5."""
        return self._loaded[0]

    @cached_property
    def _loaded(self) -> tuple[Algorithm, Callable[[bytes, bytes], None]]:
        try:
            key = serialization.load_der_public_key(self.spki)
        except (ValueError, UnsupportedAlgorithm):
            raise InputError(Code.UNREADABLE, "this is not a public key", at=Location(self.source), fix="give the .pub file") from None
        match key:
            case ed25519.Ed25519PublicKey():
                refuse_weak_ed25519(key.public_bytes_raw(), self.source)
                return Algorithm.ED25519, key.verify
            case ec.EllipticCurvePublicKey(curve=ec.SECP256R1()):
                return Algorithm.ECDSA_P256_SHA256, lambda sig, data: key.verify(sig, data, ec.ECDSA(hashes.SHA256()))
            case ec.EllipticCurvePublicKey(curve=ec.SECP384R1()):
                return Algorithm.ECDSA_P384_SHA384, lambda sig, data: key.verify(sig, data, ec.ECDSA(hashes.SHA384()))
            case mldsa.MLDSA65PublicKey():
                return Algorithm.ML_DSA_65, key.verify
            case rsa.RSAPublicKey() if key.key_size >= 2048:
                return Algorithm.RSA_PKCS1V15_SHA256, lambda sig, data: key.verify(sig, data, padding.PKCS1v15(), hashes.SHA256())
            case _:
                raise InputError(
                    Code.UNSUPPORTED,
                    "keys of this type are not accepted",
                    at=Location(self.source),
                    fix="use ed25519, P-256, P-384, ML-DSA-65, or RSA of 2048 bits or more",
                )

    def verify(self, data: bytes, signature: bytes) -> Algorithm:
        """The algorithm under which `signature` over `data` holds; `RefusedError` SIG_INVALID when it does not."""
        algorithm, check = self._loaded
        try:
            check(signature, data)
        except (InvalidSignature, ValueError):
            if algorithm is Algorithm.RSA_PKCS1V15_SHA256:
                return self._verify_pss(data, signature)
            raise RefusedError(Code.SIG_INVALID, f"the signature is not by {self.fingerprint} over these bytes") from None
        return algorithm

    def _verify_pss(self, data: bytes, signature: bytes) -> Algorithm:
        """RSA-PSS with salt length = hash length only: a free salt length accepts signatures that Wycheproof calls invalid."""
        key = serialization.load_der_public_key(self.spki)
        assert isinstance(key, rsa.RSAPublicKey)
        scheme = padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.DIGEST_LENGTH)
        try:
            key.verify(signature, data, scheme, hashes.SHA256())
        except InvalidSignature:
            raise RefusedError(Code.SIG_INVALID, f"the signature is not by {self.fingerprint} over these bytes") from None
        return Algorithm.RSA_PSS_SHA256

    def to_pem(self) -> bytes:
        """The key as PEM SubjectPublicKeyInfo."""
        key = serialization.load_der_public_key(self.spki)
        return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def refuse_weak_ed25519(public: bytes, source: str = "-") -> None:
    """`InputError` for a non-canonical or small-order Ed25519 key: for those, anyone can make a signature that verifies."""
    y = int.from_bytes(public, "little") & ((1 << 255) - 1)
    if y >= _P or y in _SMALL_ORDER_Y:
        raise InputError(Code.UNSUPPORTED, "anyone can sign for this ed25519 key", at=Location(source), fix="make a new key")


def is_key_uri(text: str) -> bool:
    """Whether this names a key behind a URI, and no file."""
    return bool(_SCHEME.match(text)) and not exists(Path(text))


PrivateKey: TypeAlias = ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | mldsa.MLDSA65PrivateKey


class Signer:
    """Signs bytes with one key, local or behind a URI."""

    def __init__(self, sign: Callable[[bytes], bytes], public: PublicKey) -> None:
        if public.algorithm >= Algorithm.RSA_PKCS1V15_SHA256:
            raise InputError(Code.UNSUPPORTED, "we do not sign with RSA", at=Location(public.source), fix="use an ed25519 key")
        self._sign = sign
        self.public = public

    @classmethod
    def load(cls, uri: str, password: bytes | None = None) -> Self:
        """A signer from a PEM file (PKCS #8, encrypted or not) or a securesystemslib URI such as `hsm:` or `awskms:`.

        The password of an encrypted PEM, or the PIN of a token, is `password` or the variable COUNTERMARK_PASSWORD. Raises `InputError`
        for a file that is no private key and `CannotTellError` for a key service that is not reachable or not installed.
        """
        if is_key_uri(uri):
            from countermark.attestations.key_uri import opened

            return cls(*opened(uri, password))
        return cls.from_pem(read_key_file(Path(uri)), uri, password)

    @classmethod
    def from_pem(cls, data: bytes, source: str, password: bytes | None = None) -> Self:
        """A signer from the bytes of a PEM private key."""
        private = load_private(data, source, password)
        return cls(_signing(private), PublicKey(_spki(private), source))

    def sign(self, data: bytes) -> bytes:
        """The signature over `data` by the key's one algorithm; ECDSA in DER."""
        return self._sign(data)


def load_private(data: bytes, source: str, password: bytes | None = None) -> PrivateKey:
    """The private key of a PEM text; the password is as for `Signer.load`."""
    secret = password if password is not None else os.environ.get(PASSWORD_VARIABLE, "").encode() or None
    try:
        private = serialization.load_pem_private_key(data, secret if b"ENCRYPTED" in data else None)
    except TypeError:
        fix = f"set {PASSWORD_VARIABLE} to its password"
        raise CannotTellError(Code.UNREADABLE, "the key is encrypted", at=Location(source), fix=fix) from None
    except (ValueError, UnsupportedAlgorithm):
        fix = "give a PEM private key and, if it is encrypted, its right password"
        raise InputError(Code.UNREADABLE, "this is not a private key that can be opened", at=Location(source), fix=fix) from None
    if not isinstance(private, PrivateKey):
        fix = "use ed25519, P-256, P-384 or ML-DSA-65"
        raise InputError(Code.UNSUPPORTED, "we do not sign with keys of this type", at=Location(source), fix=fix)
    return private


def generate_pem(algorithm: Algorithm = Algorithm.ED25519, password: bytes | None = None) -> tuple[bytes, PublicKey]:
    """A new private key as PKCS #8 PEM, encrypted when there is a password, and its public half."""
    private = _generate(algorithm)
    protection = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    pem = private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection)
    return pem, PublicKey(_spki(private))


def _generate(algorithm: Algorithm) -> PrivateKey:
    match algorithm:
        case Algorithm.ED25519:
            return ed25519.Ed25519PrivateKey.generate()
        case Algorithm.ECDSA_P256_SHA256:
            return ec.generate_private_key(ec.SECP256R1())
        case Algorithm.ECDSA_P384_SHA384:
            return ec.generate_private_key(ec.SECP384R1())
        case Algorithm.ML_DSA_65:
            return mldsa.MLDSA65PrivateKey.generate()
        case _:
            raise InputError(Code.UNSUPPORTED, f"{algorithm.name} keys are not made here", fix="use ed25519")


def _signing(private: PrivateKey) -> Callable[[bytes], bytes]:
    match private:
        case ec.EllipticCurvePrivateKey(curve=ec.SECP256R1()):
            return lambda data: private.sign(data, ec.ECDSA(hashes.SHA256()))
        case ec.EllipticCurvePrivateKey():
            return lambda data: private.sign(data, ec.ECDSA(hashes.SHA384()))
        case _:
            return private.sign


def _spki(private: PrivateKey) -> bytes:
    return private.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def read_key_file(path: Path) -> bytes:
    """The bytes of a key file of at most 64 KiB; `InputError` when it cannot be read, or is larger."""
    return read_file(path, limit=MAX_KEY_FILE)
