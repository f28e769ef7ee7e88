"""What the certificate of a keyless signature says: whose it is, and the key it is for.

Source of the extensions: Fulcio's `oid-info.md`. Reading a certificate verifies nothing.
"""

from dataclasses import dataclass
from typing import Self

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat import asn1
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.attestations.keys import PublicKey
from countermark.attestations.trust import Identity

_ISSUER_RAW = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
_OTHER_NAME = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.7")
_ISSUER = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.8")
_SOURCE_DIGEST = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.13")
_UNREADABLE = (
    ValueError,
    UnsupportedAlgorithm,
    x509.InvalidVersion,
    x509.ExtensionNotFound,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)


@dataclass(frozen=True, slots=True)
class Leaf:
    """The identity that a signing certificate states, its key, and the commit of the workflow that signed, where it was one."""

    identity: Identity
    key: PublicKey
    commit: str | None = None

    @classmethod
    def parse(cls, der: bytes, source: str) -> Self:
        """Read a certificate with exactly one subject alternative name and an issuer; `InputError` otherwise."""
        try:
            certificate = x509.load_der_x509_certificate(der)
            extensions = certificate.extensions
            names = _names(extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
            issuer = _text(extensions, _ISSUER) or _raw_issuer(extensions)
            commit = _text(extensions, _SOURCE_DIGEST)
            spki = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        except _UNREADABLE:
            raise _error(source, "this is not a certificate of a keyless signer") from None
        if len(names) != 1:
            raise _error(source, f"the certificate states {len(names)} identities, where it must state one")
        key = PublicKey(spki, source)
        _ = key.algorithm
        return cls(Identity(names[0], issuer), key, commit)


def _names(extension: x509.SubjectAlternativeName) -> list[str]:
    texts = [name.value for name in extension if isinstance(name, x509.RFC822Name | x509.UniformResourceIdentifier)]
    others = [name for name in extension if isinstance(name, x509.OtherName) and name.type_id == _OTHER_NAME]
    texts.extend(asn1.decode_der(str, name.value) for name in others)
    return texts if len(texts) == len(extension) else []


def _text(extensions: x509.Extensions, oid: x509.ObjectIdentifier) -> str | None:
    """A text extension, which holds a DER string."""
    values = [extension.value for extension in extensions if extension.oid == oid]
    return next((asn1.decode_der(str, value.value) for value in values if isinstance(value, x509.UnrecognizedExtension)), None)


def _raw_issuer(extensions: x509.Extensions) -> str:
    """The issuer as older certificates alone state it: bare text."""
    value = extensions.get_extension_for_oid(_ISSUER_RAW).value
    if not isinstance(value, x509.UnrecognizedExtension):
        raise ValueError("the issuer is no text")
    return value.value.decode()


def _error(source: str, message: str) -> InputError:
    at = Location(source, pointer="/verificationMaterial/certificate/rawBytes")
    return InputError(Code.SCHEMA_INVALID, message, at=at, fix="give the bundle as its signer made it")
