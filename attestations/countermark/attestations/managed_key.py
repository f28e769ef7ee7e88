"""Log entries of bundles that were signed with a managed key.

The sigstore library reads no bundle without a certificate. Its check of an inclusion proof, checkpoint and promise needs none, so that
it is used as it is (the one private part of the library that we call, with a test that breaks when it changes); what the entry says of
what was signed and of the key is compared here. Sources: Rekor's `dsse` and
`hashedrekord` 0.0.1 schemas; rekor-tiles, hashedrekord 0.0.2 over a DSSE envelope or a file.
"""

import base64
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from countermark.attestations import jsontext
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.envelope import Envelope
from countermark.attestations.errors import Location, RefusedError
from countermark.attestations.failing_closed import failing_closed
from countermark.attestations.keys import Algorithm, PublicKey
from countermark.attestations.located import JsonValue
from countermark.attestations.sigstore_trust import SigstoreRoot

if TYPE_CHECKING:
    from sigstore_models.rekor.v1 import TransparencyLogEntry

_KEY_DETAILS = {
    Algorithm.ECDSA_P256_SHA256: ("PKIX_ECDSA_P256_SHA_256", "SHA2_256", hashlib.sha256),
    Algorithm.ECDSA_P384_SHA384: ("PKIX_ECDSA_P384_SHA_384", "SHA2_384", hashlib.sha384),
}


def check_logged(entry: "TransparencyLogEntry", root: SigstoreRoot, source: str) -> None:
    """`RefusedError` unless a log of the root holds the entry: inclusion proof, checkpoint, and promise where there is one."""
    from sigstore._internal.trust import KeyringPurpose
    from sigstore.models import TransparencyLogEntry as LibraryEntry

    with failing_closed("sigstore", source):
        LibraryEntry(entry)._verify(root.library.rekor_keyring(KeyringPurpose.VERIFY))  # noqa: SLF001  # it has no public form


@dataclass(frozen=True, slots=True)
class Logged:
    """What a log entry must be about: the envelope or file that was signed, the signature, and the key; `source` is for errors."""

    signed: Envelope | Digest
    signature: bytes
    key: PublicKey
    source: str

    def refused(self, message: str) -> RefusedError:
        """The bundle, refused for its log entry."""
        at = Location(self.source, pointer="/verificationMaterial/tlogEntries/0/canonicalizedBody")
        return RefusedError(Code.SIG_INVALID, message, at=at, fix="give the bundle as its signer made it")


def check_entry_body(entry: "TransparencyLogEntry", logged: Logged) -> None:
    """`RefusedError` unless the entry is about what was signed, this signature and this key."""
    kind = (entry.kind_version.kind, entry.kind_version.version)
    body = jsontext.loads(entry.canonicalized_body, f"{logged.source} (log entry)")
    signed = logged.signed
    if kind == ("dsse", "0.0.1") and isinstance(signed, Envelope):
        expected, body = _dsse(signed, logged.key), _without_envelope_hash(body)
    elif kind == ("hashedrekord", "0.0.1") and isinstance(signed, Digest):
        expected = _hashedrekord_v1(signed, logged)
    elif kind == ("hashedrekord", "0.0.2"):
        expected = _hashedrekord(logged)
    else:
        raise logged.refused(f"log entries of kind {'/'.join(kind)} are not read for managed keys")
    if body != expected:
        raise logged.refused("the log entry is about something else that was signed, another signature or key")


def _without_envelope_hash(body: JsonValue) -> JsonValue:
    """The entry without the hash of the envelope's JSON text, which no canonical form gives back; the rest says all that it says."""
    spec = body.get("spec") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(spec, dict):
        return body
    return {**body, "spec": {name: child for name, child in spec.items() if name != "envelopeHash"}}


def _dsse(envelope: Envelope, key: PublicKey) -> JsonValue:
    payload_hash: JsonValue = {"algorithm": "sha256", "value": hashlib.sha256(envelope.payload).hexdigest()}
    signature: JsonValue = {"signature": _text(envelope.signatures[0].sig), "verifier": _text(key.to_pem())}
    return {"kind": "dsse", "apiVersion": "0.0.1", "spec": {"payloadHash": payload_hash, "signatures": [signature]}}


def _hashedrekord_v1(file: Digest, logged: Logged) -> JsonValue:
    signature: JsonValue = {"content": _text(logged.signature), "publicKey": {"content": _text(logged.key.to_pem())}}
    spec: JsonValue = {"data": {"hash": {"algorithm": "sha256", "value": file.hex}}, "signature": signature}
    return {"kind": "hashedrekord", "apiVersion": "0.0.1", "spec": spec}


def _hashedrekord(logged: Logged) -> JsonValue:
    key, signed = logged.key, logged.signed
    if key.algorithm not in _KEY_DETAILS or (isinstance(signed, Digest) and key.algorithm is not Algorithm.ECDSA_P256_SHA256):
        raise logged.refused(f"a log entry of this kind holds no {key.algorithm.name} signature")
    details, name, prehash = _KEY_DETAILS[key.algorithm]
    hashed = signed.raw if isinstance(signed, Digest) else prehash(signed.pae()).digest()
    verifier: JsonValue = {"publicKey": {"rawBytes": _text(key.spki)}, "keyDetails": details}
    spec: JsonValue = {
        "data": {"algorithm": name, "digest": _text(hashed)},
        "signature": {"content": _text(logged.signature), "verifier": verifier},
    }
    return {"kind": "hashedrekord", "apiVersion": "0.0.2", "spec": {"hashedRekordV002": spec}}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
