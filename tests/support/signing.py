"""Keys and envelopes for the tests of this folder; signed with the cryptography package alone."""

import base64
import json
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from countermark.attestations.envelope import Envelope, pae
from countermark.attestations.keys import PublicKey

MEDIA = "application/vnd.in-toto+json"


def statement(**changes: Any) -> dict[str, Any]:
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "image", "digest": {"sha256": "ab" * 32}}],
        "predicateType": "https://example.com/anything/v1",
        "predicate": {"n": 1},
    } | changes


def public(key: Ed25519PrivateKey) -> PublicKey:
    return PublicKey.from_pem(pem(key), "test key")


def pem(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def envelope(payload: bytes | dict[str, Any], *keys: Ed25519PrivateKey, media: str = MEDIA) -> Envelope:
    return Envelope.parse(json.dumps(envelope_json(payload, *keys, media=media)).encode(), "test")


def envelope_json(payload: bytes | dict[str, Any], *keys: Ed25519PrivateKey, media: str = MEDIA) -> dict[str, Any]:
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    signatures = [{"keyid": "", "sig": base64.b64encode(key.sign(pae(media, body))).decode()} for key in keys]
    return {"payload": base64.b64encode(body).decode(), "payloadType": media, "signatures": signatures}
