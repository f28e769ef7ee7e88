"""One changed byte anywhere: the bundle is refused, or the byte is one of a closed list that nothing reads."""

import base64
from collections.abc import Callable
from datetime import timedelta

import pytest
from bundles import STATEMENT, changed_texts, encoded, expecting, instance, modern, promised, put, root_of
from local_certificates import spki
from local_sigstore import Json, LocalSigstore, p256

from countermark.attestations.bundle_trust import BundleTrust
from countermark.attestations.bundle_verifier import BundleVerifier
from countermark.attestations.errors import CountermarkError, InputError, RefusedError
from countermark.attestations.keys import PublicKey
from countermark.attestations.verifier import KeyTrust

# A changed serial number may be negative, of which cryptography warns before the certificate is refused.
pytestmark = pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning")

UNREAD = {
    "/dsseEnvelope/signatures/0/keyid": "a look-up aid (DSSE); every key is tried",
    "/verificationMaterial/publicKey/hint": "a look-up aid (sigstore_bundle.proto); every key is tried",
}
"""Texts of a bundle that are no part of what is proven, and why; they are neither reported nor stored as facts."""

SIGNATURE_ALGORITHM = bytes.fromhex("06082a8648ce3d040302")
"""ecdsa-with-SHA256, as a timestamp's SignerInfo names it. OpenSSL goes by the authority's key and never reads the name."""

STAMP = ("verificationMaterial", "timestampVerificationData", "rfc3161Timestamps", 0, "signedTimestamp")


def keyed(key_bundle: Json, key: PublicKey, sigstore: LocalSigstore) -> tuple[Json, BundleVerifier]:
    return key_bundle, BundleVerifier(root_of(sigstore), BundleTrust(keys=KeyTrust((key,))))


def by_key(logged: str) -> tuple[Json, BundleVerifier]:
    private, sigstore = p256(), instance() if logged == "dsse" else modern()
    bundle = sigstore.sign_with_key(STATEMENT, private, logged=logged, stamped=timedelta(seconds=1), hint="whose?")
    return keyed(bundle, PublicKey(spki(private.public_key())), sigstore)


BUNDLES: dict[str, Callable[[], tuple[Json, BundleVerifier]]] = {
    "promised": lambda: (promised(), expecting(instance())),
    "stamped": lambda: (modern().sign(STATEMENT), expecting(modern())),
    "both": lambda: (promised(stamped=timedelta(seconds=4)), expecting(instance())),
    "key": lambda: by_key(""),
    "key in dsse": lambda: by_key("dsse"),
    "key in hashedrekord": lambda: by_key("hashedrekord"),
}


@pytest.mark.parametrize("name", BUNDLES)
def test_every_text_is_proven_or_unread(name: str) -> None:
    bundle, verifier = BUNDLES[name]()
    bundle["dsseEnvelope"]["signatures"][0]["keyid"] = "whose?"
    verifier.verify(encoded(bundle), name)
    passed = set()
    for pointer, changed in changed_texts(bundle, stride=41):
        if pointer.endswith("/signedTimestamp"):
            continue  # its bytes are told apart below
        try:
            verifier.verify(changed, pointer)
        except (RefusedError, InputError):
            continue
        passed.add(pointer)
    assert passed == {pointer for pointer in UNREAD if "publicKey" in bundle["verificationMaterial"] or "hint" not in pointer}


@pytest.mark.parametrize(("embed", "stride"), [(True, 5), (False, 1)])
def test_every_byte_of_a_timestamp_is_proven_or_unread(embed: bool, stride: int) -> None:
    """Beside a promise, so that the library alone would not mind a timestamp that does not hold."""
    bundle, verifier = promised(stamped=timedelta(seconds=4), embed=embed), expecting(instance())
    token = base64.b64decode(bundle["verificationMaterial"]["timestampVerificationData"]["rfc3161Timestamps"][0]["signedTimestamp"])
    unread = range(token.rindex(SIGNATURE_ALGORITHM) + 2, token.rindex(SIGNATURE_ALGORITHM) + len(SIGNATURE_ALGORITHM))
    for at in range(0, len(token), stride):
        changed = token[:at] + bytes([token[at] ^ 1]) + token[at + 1 :]
        try:
            verifier.verify(encoded(put(bundle, STAMP, base64.b64encode(changed).decode())), f"byte {at}")
        except CountermarkError:
            continue
        assert at in unread, at


def test_older_versions_differ_in_what_they_may_leave_out() -> None:
    """The version of a bundle that leaves nothing out is not told by its other fields, and nothing hangs on it."""
    bundle, verifier = promised(), expecting(instance())
    material = bundle["verificationMaterial"]
    chained = {name: value for name, value in material.items() if name != "certificate"}
    chained["x509CertificateChain"] = {"certificates": [material["certificate"]]}
    for minor, good in ((1, True), (2, True), (3, False), (4, False)):
        old = {**bundle, "mediaType": f"application/vnd.dev.sigstore.bundle+json;version=0.{minor}", "verificationMaterial": chained}
        if good:
            verifier.verify(encoded(old), "old")
        else:
            with pytest.raises((RefusedError, InputError)):
                verifier.verify(encoded(old), "old")
