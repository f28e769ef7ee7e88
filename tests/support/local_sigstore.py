"""A whole sigstore instance of the tests' own, offline: certificates, timestamps, a log, and the trust root that names them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from local_certificates import CertificateAuthority, spki
from local_log import Log, b64
from local_timestamps import TimestampAuthority

from countermark.attestations.envelope import PAYLOAD_TYPE, pae

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
SAN = "https://code.example.test/acme/engine/ci.yml@refs/heads/main"
ISSUER = "https://token.example.test"
SOURCE_DIGEST = "1.3.6.1.4.1.57264.1.13"
MEDIA_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"

SigningKey = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
Json = dict[str, Any]


def p256() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def sign(key: SigningKey, data: bytes) -> bytes:
    """A signature over data: Ed25519, or ECDSA with the hash of the curve's size."""
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return key.sign(data)
    return key.sign(data, ec.ECDSA(hashes.SHA384() if key.curve.key_size == 384 else hashes.SHA256()))


@dataclass(slots=True)
class LocalSigstore:
    """The instance; everything it signs is of the hour `NOW`."""

    log: Log = field(default_factory=Log)
    certificates: CertificateAuthority = field(
        default_factory=lambda: CertificateAuthority(NOW - timedelta(days=9), NOW + timedelta(days=9))
    )
    timestamps: TimestampAuthority = field(default_factory=lambda: TimestampAuthority(NOW - timedelta(days=9), NOW + timedelta(days=9)))

    def trusted_root(self) -> Json:
        """The instance's `trusted_root.json`."""
        start = (NOW - timedelta(days=9)).isoformat().replace("+00:00", "Z")
        return {
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [_instance(self.log.key.public_key(), self.log.id, start)],
            "certificateAuthorities": [_authority(start, self.certificates.intermediate, self.certificates.root)],
            "ctlogs": [_instance(self.certificates.transparency_key.public_key(), None, start)],
            "timestampAuthorities": [_authority(start, self.timestamps.certificate, self.timestamps.root)],
        }

    def root_bytes(self) -> bytes:
        return json.dumps(self.trusted_root()).encode()

    def sign(
        self,
        payload: bytes,
        *,
        key: SigningKey | None = None,
        san: str = SAN,
        issuer: str = ISSUER,
        sct: bool = True,
        more: Mapping[str, str] = {},
        payload_type: str = PAYLOAD_TYPE,
        stamped: timedelta | None = timedelta(seconds=5),
        promised: timedelta | None = None,
        embed: bool = True,
    ) -> Json:
        """A keyless bundle; `stamped` and `promised` are when, after the certificate was issued, its times are from."""
        key = key or p256()
        name = x509.RFC822Name(san) if "://" not in san else x509.UniformResourceIdentifier(san)
        certificate = self.certificates.issue(key.public_key(), [name], issuer, NOW, sct=sct, more=more)
        signature = sign(key, pae(payload_type, payload))
        material: Json = {"certificate": {"rawBytes": b64(certificate.public_bytes(Encoding.DER))}}
        if promised is None:
            verifier: Json = {"x509Certificate": material["certificate"], "keyDetails": _details(key)}
            entry = self.log.append(hashedrekord(payload_type, payload, signature, verifier, key))
        else:
            entry = self.log.append(dsse(payload, signature, certificate.public_bytes(Encoding.PEM)), promised=NOW + promised)
        return self._bundle(material, [entry], payload, payload_type, signature, stamped, embed=embed)

    def sign_with_key(
        self, payload: bytes, key: SigningKey, *, logged: str = "", stamped: timedelta | None = None, hint: str = "whose?"
    ) -> Json:
        """A managed-key bundle; `logged` is the kind of its log entry, dsse or hashedrekord, if it has one."""
        signature = sign(key, pae(PAYLOAD_TYPE, payload))
        public = key.public_key()
        entries: list[Json] = []
        if logged == "dsse":
            pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
            entries = [self.log.append(dsse(payload, signature, pem), promised=NOW)]
        elif logged:
            verifier: Json = {"publicKey": {"rawBytes": b64(spki(public))}, "keyDetails": _details(key)}
            entries = [self.log.append(hashedrekord(PAYLOAD_TYPE, payload, signature, verifier, key))]
        return self._bundle({"publicKey": {"hint": hint}}, entries, payload, PAYLOAD_TYPE, signature, stamped)

    def sign_file(self, data: bytes, *, key: SigningKey | None = None, managed: bool = False) -> Json:
        """A bundle over a file, keyless or by a managed key, with a log entry as Rekor v2 gives it."""
        key = key or p256()
        signature, hashed = sign(key, data), {"algorithm": "SHA2_256", "digest": b64(sha256(data).digest())}
        material: Json = {"publicKey": {"hint": "whose?"}}
        verifier: Json = {"publicKey": {"rawBytes": b64(spki(key.public_key()))}, "keyDetails": _details(key)}
        if not managed:
            name = x509.UniformResourceIdentifier(SAN)
            certificate = self.certificates.issue(key.public_key(), [name], ISSUER, NOW, sct=True, more={})
            material = {"certificate": {"rawBytes": b64(certificate.public_bytes(Encoding.DER))}}
            verifier = {"x509Certificate": material["certificate"], "keyDetails": _details(key)}
        spec = {"data": hashed, "signature": {"content": b64(signature), "verifier": verifier}}
        body = {"kind": "hashedrekord", "apiVersion": "0.0.2", "spec": {"hashedRekordV002": spec}}
        token = b64(self.timestamps.timestamp(signature, NOW + timedelta(seconds=5)))
        material |= {
            "tlogEntries": [self.log.append(body)],
            "timestampVerificationData": {"rfc3161Timestamps": [{"signedTimestamp": token}]},
        }
        signed = {"messageDigest": hashed, "signature": b64(signature)}
        return {"mediaType": MEDIA_TYPE, "verificationMaterial": material, "messageSignature": signed}

    def _bundle(
        self,
        material: Json,
        entries: list[Json],
        payload: bytes,
        payload_type: str,
        signature: bytes,
        stamped: timedelta | None,
        *,
        embed: bool = True,
    ) -> Json:
        if stamped is not None:
            token = b64(self.timestamps.timestamp(signature, NOW + stamped, embed=embed))
            material["timestampVerificationData"] = {"rfc3161Timestamps": [{"signedTimestamp": token}]}
        envelope = {"payload": b64(payload), "payloadType": payload_type, "signatures": [{"sig": b64(signature), "keyid": ""}]}
        return {"mediaType": MEDIA_TYPE, "verificationMaterial": {**material, "tlogEntries": entries}, "dsseEnvelope": envelope}


def hashedrekord(payload_type: str, payload: bytes, signature: bytes, verifier: Json, key: SigningKey) -> Json:
    """The body of a Rekor v2 entry over a DSSE envelope."""
    large = isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.key_size == 384
    hashed = hashes.Hash(hashes.SHA384() if large else hashes.SHA256())
    hashed.update(pae(payload_type, payload))
    data = {"algorithm": "SHA2_384" if large else "SHA2_256", "digest": b64(hashed.finalize())}
    spec = {"data": data, "signature": {"content": b64(signature), "verifier": verifier}}
    return {"kind": "hashedrekord", "apiVersion": "0.0.2", "spec": {"hashedRekordV002": spec}}


def dsse(payload: bytes, signature: bytes, pem: bytes) -> Json:
    """The body of a Rekor v1 entry over a DSSE envelope."""
    digests = {
        "envelopeHash": {"algorithm": "sha256", "value": "0" * 64},
        "payloadHash": {"algorithm": "sha256", "value": sha256(payload).hexdigest()},
    }
    spec = {**digests, "signatures": [{"signature": b64(signature), "verifier": b64(pem)}]}
    return {"kind": "dsse", "apiVersion": "0.0.1", "spec": spec}


def _details(key: SigningKey) -> str:
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return "PKIX_ED25519"
    return "PKIX_ECDSA_P384_SHA_384" if key.curve.key_size == 384 else "PKIX_ECDSA_P256_SHA_256"


def _instance(key: ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey, log_id: bytes | None, start: str) -> Json:
    kind = "PKIX_ED25519" if isinstance(key, ed25519.Ed25519PublicKey) else "PKIX_ECDSA_P256_SHA_256"
    return {
        "baseUrl": "https://log.example.test",
        "hashAlgorithm": "SHA2_256",
        "publicKey": {"rawBytes": b64(spki(key)), "keyDetails": kind, "validFor": {"start": start}},
        "logId": {"keyId": b64(log_id or sha256(spki(key)).digest())},
    }


def _authority(start: str, *chain: x509.Certificate) -> Json:
    certificates = [{"rawBytes": b64(certificate.public_bytes(Encoding.DER))} for certificate in chain]
    return {
        "subject": {"organization": "example.test", "commonName": "tests"},
        "uri": "https://example.test",
        "certChain": {"certificates": certificates},
        "validFor": {"start": start},
    }
