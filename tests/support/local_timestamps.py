"""An RFC 3161 timestamp authority of the tests' own: certificates, and tokens in the DER that the standard prescribes."""

import secrets
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256

from cryptography import x509
from cryptography.hazmat import asn1
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID
from local_certificates import authority, usage

_SEQUENCE, _SET, _EXPLICIT_0 = 0x30, 0x31, 0xA0
_SIGNED_DATA, _TST_INFO = "1.2.840.113549.1.7.2", "1.2.840.113549.1.9.16.1.4"
_CONTENT_TYPE, _MESSAGE_DIGEST, _CERTIFICATE = "1.2.840.113549.1.9.3", "1.2.840.113549.1.9.4", "1.2.840.113549.1.9.16.2.47"
_SHA256, _ECDSA_SHA256, _POLICY = "2.16.840.1.101.3.4.2.1", "1.2.840.10045.4.3.2", "1.3.6.1.4.1.57264.2"


def tlv(tag: int, *parts: bytes) -> bytes:
    """A DER value of the given parts."""
    body = b"".join(parts)
    size = len(body).to_bytes((len(body).bit_length() + 7) // 8 or 1, "big")
    return bytes([tag]) + (size if len(body) < 0x80 else bytes([0x80 | len(size)]) + size) + body


def sequence(*parts: bytes) -> bytes:
    return tlv(_SEQUENCE, *parts)


def oid(dotted: str) -> bytes:
    return asn1.encode_der(x509.ObjectIdentifier(dotted))


@dataclass(slots=True)
class TimestampAuthority:
    """A root, a signing certificate, and tokens by it. `start` and `end` bound its signing certificate."""

    start: datetime
    end: datetime
    root_key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    root: x509.Certificate = field(init=False)
    certificate: x509.Certificate = field(init=False)

    def __post_init__(self) -> None:
        self.root = authority("timestamp root", self.root_key, None, self.start, self.end)
        self.certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "timestamps")]))
            .issuer_name(self.root.subject)
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self.start)
            .not_valid_after(self.end)
            .add_extension(usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING]), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.root_key.public_key()), critical=False)
            .sign(self.root_key, hashes.SHA256())
        )

    def timestamp(self, message: bytes, at: datetime, *, embed: bool = True) -> bytes:
        """A granted `TimeStampResp` over `message`; the certificate goes along or not."""
        info = self._info(message, at)
        attributes = sorted(
            sequence(oid(name), tlv(_SET, value))
            for name, value in (
                (_CONTENT_TYPE, oid(_TST_INFO)),
                (_MESSAGE_DIGEST, asn1.encode_der(sha256(info).digest())),
                (_CERTIFICATE, sequence(sequence(sequence(asn1.encode_der(sha256(self._der()).digest()))))),
            )
        )
        signature = self.key.sign(tlv(_SET, *attributes), ec.ECDSA(hashes.SHA256()))
        signer = sequence(
            asn1.encode_der(1),
            sequence(self.certificate.issuer.public_bytes(), asn1.encode_der(self.certificate.serial_number)),
            sequence(oid(_SHA256)),
            tlv(_EXPLICIT_0, *attributes),
            sequence(oid(_ECDSA_SHA256)),
            asn1.encode_der(signature),
        )
        signed = sequence(
            asn1.encode_der(3),
            tlv(_SET, sequence(oid(_SHA256))),
            sequence(oid(_TST_INFO), tlv(_EXPLICIT_0, asn1.encode_der(info))),
            tlv(_EXPLICIT_0, self._der()) if embed else b"",
            tlv(_SET, signer),
        )
        return sequence(sequence(asn1.encode_der(0)), sequence(oid(_SIGNED_DATA), tlv(_EXPLICIT_0, signed)))

    def _info(self, message: bytes, at: datetime) -> bytes:
        return sequence(
            asn1.encode_der(1),
            oid(_POLICY),
            sequence(sequence(oid(_SHA256)), asn1.encode_der(sha256(message).digest())),
            asn1.encode_der(secrets.randbits(63)),
            asn1.encode_der(asn1.GeneralizedTime(at)),
            sequence(asn1.encode_der(1)),
        )

    def _der(self) -> bytes:
        return self.certificate.public_bytes(Encoding.DER)
