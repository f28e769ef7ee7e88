"""A certificate authority of the tests' own, with signing certificates as Fulcio makes them: identity, issuer, embedded SCT."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256

from cryptography import x509
from cryptography.hazmat import asn1
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID

LeafKey = ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey

_ISSUER_RAW, _ISSUER = "1.3.6.1.4.1.57264.1.1", "1.3.6.1.4.1.57264.1.8"
_SCT_LIST = "1.3.6.1.4.1.11129.2.4.2"
_SCT_V1, _CERTIFICATE_TIMESTAMP, _PRECERTIFICATE, _SHA256, _ECDSA = 0, 0, 1, 4, 3


def spki(key: ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey) -> bytes:
    """A public key in DER."""
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def usage(*, digital_signature: bool = False, sign: bool = False) -> x509.KeyUsage:
    """A key usage of signing data, or of signing certificates and revocation lists."""
    return x509.KeyUsage(digital_signature, False, False, False, False, sign, sign, False, False)


def authority(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: "tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None",
    start: datetime,
    end: datetime,
) -> x509.Certificate:
    """A root, or an intermediate that may issue signing certificates only."""
    subject = x509.Name(
        [x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, "example.test"), x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]
    )
    signing = issuer[1] if issuer else key
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[0].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0 if issuer else None), critical=True)
        .add_extension(usage(sign=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False)
    )
    if issuer:
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False)
    return builder.sign(signing, hashes.SHA256())


@dataclass(slots=True)
class CertificateAuthority:
    """Root, intermediate and certificate-transparency key; valid from `start` to `end`."""

    start: datetime
    end: datetime
    root_key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    transparency_key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    root: x509.Certificate = field(init=False)
    intermediate: x509.Certificate = field(init=False)

    def __post_init__(self) -> None:
        self.root = authority("root", self.root_key, None, self.start, self.end)
        self.intermediate = authority("intermediate", self.key, (self.root, self.root_key), self.start, self.end)

    def issue(
        self,
        key: LeafKey,
        names: "list[x509.GeneralName]",
        issuer: str,
        at: datetime,
        *,
        minutes: int = 10,
        sct: bool = True,
        more: Mapping[str, str] = {},
    ) -> x509.Certificate:
        """A signing certificate valid for `minutes` from `at`; `more` are text extensions by dotted OID."""
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([]))
            .issuer_name(self.intermediate.subject)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(at)
            .not_valid_after(at + timedelta(minutes=minutes))
            .add_extension(usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=True)
        )
        builder = _with(builder, _ISSUER_RAW, issuer.encode())
        for dotted, text in {_ISSUER: issuer, **more}.items():
            builder = _with(builder, dotted, asn1.encode_der(text))
        return self._with_sct(builder, at) if sct else builder.sign(self.key, hashes.SHA256())

    def _with_sct(self, builder: x509.CertificateBuilder, at: datetime) -> x509.Certificate:
        """RFC 6962, 3.2 and 3.3: the log signs the certificate as it is without the extension that then holds its signature."""
        body = builder.sign(self.key, hashes.SHA256()).tbs_certificate_bytes
        milliseconds = int(at.timestamp() * 1000)
        head = struct.pack("!BBQH", _SCT_V1, _CERTIFICATE_TIMESTAMP, milliseconds, _PRECERTIFICATE)
        signed = head + sha256(spki(self.key.public_key())).digest() + len(body).to_bytes(3, "big") + body + bytes(2)
        signature = self.transparency_key.sign(signed, ec.ECDSA(hashes.SHA256()))
        timestamp = (
            bytes([_SCT_V1])
            + sha256(spki(self.transparency_key.public_key())).digest()
            + struct.pack("!QH", milliseconds, 0)
            + struct.pack("!BBH", _SHA256, _ECDSA, len(signature))
            + signature
        )
        listed = struct.pack("!HH", len(timestamp) + 2, len(timestamp)) + timestamp
        return _with(builder, _SCT_LIST, asn1.encode_der(listed)).sign(self.key, hashes.SHA256())


def _with(builder: x509.CertificateBuilder, dotted: str, value: bytes) -> x509.CertificateBuilder:
    return builder.add_extension(x509.UnrecognizedExtension(x509.ObjectIdentifier(dotted), value), critical=False)
