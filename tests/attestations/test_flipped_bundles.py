"""One flipped bit anywhere in the text of a bundle with a statement: never a pass, but in a closed list of texts that nothing reads."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from bundles import STATEMENT, encoded, expecting, instance, modern, promised, root_of
from flips import SHARES, inside, passed, spans
from local_certificates import spki
from local_sigstore import Json, LocalSigstore, p256

from countermark.attestations.bundle_trust import BundleTrust
from countermark.attestations.bundle_verifier import BundleVerifier
from countermark.attestations.errors import CountermarkError
from countermark.attestations.keys import PublicKey
from countermark.attestations.verifier import KeyTrust

# A changed serial number may be negative, of which cryptography warns before the certificate is refused.
pytestmark = pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning")

KEYID = "whose?"
VERSION = b";version=0."
HINT = "look-up aid"
UTF8_STRING = 0x0C
SIGNATURE_ALGORITHM = bytes.fromhex("06082a8648ce3d040302")
"""As a timestamp's SignerInfo names it; see `test_bundle_bytes`."""

Made = tuple[Json, BundleVerifier]


def _older(bundle: Json, minor: int) -> Json:
    """As a bundle of version 0.1 or 0.2 says it: with a chain of certificates."""
    material = {**bundle["verificationMaterial"]}
    if "certificate" in material:
        material["x509CertificateChain"] = {"certificates": [material.pop("certificate")]}
    media = f"application/vnd.dev.sigstore.bundle+json;version=0.{minor}"
    return {**bundle, "mediaType": media, "verificationMaterial": material}


def _managed(sigstore: LocalSigstore, logged: str, **changes: Any) -> Made:
    private = p256()
    verifier = BundleVerifier(root_of(sigstore), BundleTrust(keys=KeyTrust((PublicKey(spki(private.public_key())),))))
    return sigstore.sign_with_key(STATEMENT, private, logged=logged, hint=HINT, **changes), verifier


def _managed_older(minor: int, **changes: Any) -> Made:
    bundle, verifier = _managed(instance(), "dsse", **changes)
    return _older(bundle, minor), verifier


MADE: dict[str, Callable[[], Made]] = {
    "keyless 0.1": lambda: (_older(promised(), 1), expecting(instance())),
    "keyless 0.2": lambda: (_older(promised(stamped=timedelta(seconds=4)), 2), expecting(instance())),
    "keyless 0.3": lambda: (modern().sign(STATEMENT), expecting(modern())),
    "key 0.1": lambda: _managed_older(1),
    "key 0.2": lambda: _managed_older(2, stamped=timedelta(seconds=1)),
    "key 0.3": lambda: _managed(modern(), "hashedrekord", stamped=timedelta(seconds=1)),
}


def _unread(name: str, bundle: Json, text: bytes, issuer: bytes) -> set[int]:
    """The places of what nobody signed and nobody believes: `keyid`, `hint`, the version of an older bundle by a key, and in a timestamp
    two things by which its SignerInfo only points: the name of the algorithm, and the string types in the `issuer` of the authority."""
    found = spans(text, f'"keyid": "{KEYID}"')
    types = [at for at, byte in enumerate(issuer) if byte == UTF8_STRING]
    for stamp in bundle["verificationMaterial"].get("timestampVerificationData", {}).get("rfc3161Timestamps", []):
        token = stamp["signedTimestamp"]
        found |= inside(text, token, SIGNATURE_ALGORITHM, *range(2, len(SIGNATURE_ALGORITHM))) | inside(text, token, issuer, *types)
    if name.startswith("key "):
        found |= spans(text, f'"hint": "{HINT}"')
    if name in ("key 0.1", "key 0.2"):
        found.add(text.index(VERSION) + len(VERSION))
    return found


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("name", MADE)
def test_no_flipped_bit_passes(name: str, share: int | None) -> None:
    bundle, verifier = MADE[name]()
    bundle["dsseEnvelope"]["signatures"][0]["keyid"] = KEYID

    def passes(data: bytes) -> bool:
        try:
            return verifier.verify(data, name) is not None
        except CountermarkError:
            return False

    text = encoded(bundle)
    assert passes(text)
    keyid = text.index(KEYID.encode())
    authority = (instance() if "0.3" not in name else modern()).timestamps.root.subject.public_bytes()
    assert passed(text, share, passes) <= _unread(name, bundle, text, authority)
    assert passed(text, 0, passes, always=[keyid]) == {keyid}, "a key id is believed"
