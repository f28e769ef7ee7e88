"""Bundles that were signed with a managed key."""

import base64
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from bundles import SIGNER, STATEMENT, encoded, expecting, instance, modern, promised, put, root_of
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from local_certificates import spki
from local_log import b64
from local_sigstore import NOW, LocalSigstore, SigningKey, p256
from trusting import ALICE, key, trust_policy

from countermark.attestations.bundle_trust import BundleTrust
from countermark.attestations.bundle_verifier import BundleVerifier
from countermark.attestations.codes import Code
from countermark.attestations.errors import CannotTellError, CountermarkError, RefusedError
from countermark.attestations.keys import PublicKey
from countermark.attestations.times import Instant
from countermark.attestations.verifier import KeyTrust

BODY = ("verificationMaterial", "tlogEntries", 0)


def believing(sigstore: LocalSigstore, *keys: SigningKey) -> BundleVerifier:
    known = tuple(PublicKey(spki(private.public_key())) for private in keys)
    return BundleVerifier(root_of(sigstore), BundleTrust(keys=KeyTrust(known)))


@pytest.mark.parametrize("logged", ["", "dsse", "hashedrekord"])
@pytest.mark.parametrize("private", [p256(), ec.generate_private_key(ec.SECP384R1())], ids=["P-256", "P-384"])
def test_it_verifies_under_the_key(private: SigningKey, logged: str) -> None:
    bundle = modern().sign_with_key(STATEMENT, private, logged=logged, stamped=timedelta(seconds=2))
    if logged == "dsse":
        bundle = instance().sign_with_key(STATEMENT, private, logged=logged)
    sigstore = instance() if logged == "dsse" else modern()
    proven = believing(sigstore, p256(), private).verify(encoded(bundle), "bundle")
    assert (proven.identity, proven.key.spki) == (None, spki(private.public_key()))
    assert (proven.log is None, len(proven.times)) == (not logged, 1)


def test_a_bundle_outside_every_log_has_no_time() -> None:
    """So are models signed: the key alone stands for them."""
    private = ed25519.Ed25519PrivateKey.generate()
    bundle = modern().sign_with_key(STATEMENT, private)
    proven = believing(modern(), private).verify(encoded(bundle), "bundle")
    assert (proven.times, proven.log) == ((), None)
    del bundle["verificationMaterial"]["tlogEntries"], bundle["verificationMaterial"]["publicKey"]["hint"]
    assert believing(modern(), private).verify(encoded(bundle), "bundle").verified.payload == STATEMENT


@pytest.mark.parametrize("logged", ["", "dsse", "hashedrekord"])
def test_another_key_is_refused(logged: str) -> None:
    sigstore = instance() if logged == "dsse" else modern()
    bundle = sigstore.sign_with_key(STATEMENT, p256(), logged=logged)
    with pytest.raises(RefusedError) as caught:
        believing(sigstore, p256()).verify(encoded(bundle), "bundle")
    assert caught.value.code == Code.SIG_INVALID


@pytest.mark.parametrize("logged", ["dsse", "hashedrekord"])
def test_the_log_entry_is_about_this_bundle(logged: str) -> None:
    """The entry of another payload, of another key, or of another instance."""
    private, sigstore = p256(), instance() if logged == "dsse" else modern()
    bundle = sigstore.sign_with_key(STATEMENT, private, logged=logged)
    others = (
        sigstore.sign_with_key(STATEMENT + b" ", private, logged=logged),
        sigstore.sign_with_key(STATEMENT, p256(), logged=logged),
        LocalSigstore().sign_with_key(STATEMENT, private, logged=logged),
    )
    for other in others:
        with pytest.raises(RefusedError):
            believing(sigstore, private).verify(encoded(put(bundle, BODY, other["verificationMaterial"]["tlogEntries"][0])), "bundle")


@pytest.mark.parametrize(
    "path", [("inclusionProof", "rootHash"), ("inclusionProof", "checkpoint", "envelope"), ("inclusionPromise", "signedEntryTimestamp")]
)
def test_the_log_entry_is_proven(path: tuple[str, ...]) -> None:
    """This is where the library's one private function is called: were it gone or another, this would show."""
    private = p256()
    bundle = instance().sign_with_key(STATEMENT, private, logged="dsse")
    stranger = LocalSigstore(instance().log.__class__(key=p256(), earlier=1000)).sign_with_key(STATEMENT, private, logged="dsse")
    entry: Any = stranger["verificationMaterial"]["tlogEntries"][0]
    for part in path:
        entry = entry[part]
    with pytest.raises(RefusedError):
        believing(instance(), private).verify(encoded(put(bundle, (*BODY, *path), entry)), "bundle")


@pytest.mark.parametrize("seconds", [[1, 1], list(range(33)), [-60 * 60 * 24 * 30]])
def test_timestamps_are_distinct_few_and_valid(seconds: list[int]) -> None:
    private = p256()
    bundle = modern().sign_with_key(STATEMENT, private)
    signature = base64.b64decode(bundle["dsseEnvelope"]["signatures"][0]["sig"])
    made = {second: b64(modern().timestamps.timestamp(signature, NOW + timedelta(seconds=second))) for second in seconds}
    stamps = [{"signedTimestamp": made[second]} for second in seconds]
    bundle["verificationMaterial"]["timestampVerificationData"] = {"rfc3161Timestamps": stamps}
    with pytest.raises(RefusedError, match="timestamp"):
        believing(modern(), private).verify(encoded(bundle), "bundle")


@pytest.mark.parametrize("kind", [("intoto", "0.0.2"), ("dsse", "0.0.2"), ("hashedrekord", "0.0.1")])
def test_other_kinds_of_entries_are_refused(kind: tuple[str, str]) -> None:
    private = p256()
    bundle = instance().sign_with_key(STATEMENT, private, logged="dsse")
    changed = put(bundle, (*BODY, "kindVersion"), {"kind": kind[0], "version": kind[1]})
    with pytest.raises(RefusedError, match="not read"):
        believing(instance(), private).verify(encoded(changed), "bundle")


def test_an_ed25519_signature_is_not_in_a_hashedrekord() -> None:
    """Rekor v2 logs only the pre-hashed form, which is another algorithm."""
    private = ed25519.Ed25519PrivateKey.generate()
    with pytest.raises(RefusedError, match="ED25519"):
        believing(modern(), private).verify(encoded(modern().sign_with_key(STATEMENT, private, logged="hashedrekord")), "bundle")


class TestOneModeAtATime:
    """A certificate is never taken for a key, nor a key for a certificate."""

    def test_a_certificate_bundle_under_its_own_key(self) -> None:
        private = p256()
        with pytest.raises(CannotTellError):
            believing(instance(), private).verify(encoded(promised(key=private)), "bundle")

    def test_a_key_bundle_under_an_identity(self) -> None:
        with pytest.raises(CannotTellError, match="--key"):
            expecting(modern(), SIGNER).verify(encoded(modern().sign_with_key(STATEMENT, p256())), "bundle")

    def test_a_certificate_put_in_the_place_of_the_hint(self) -> None:
        private = p256()
        bundle = promised(key=private)
        bundle["verificationMaterial"] |= {"publicKey": {"hint": "x"}}
        for trusted in (believing(instance(), private), expecting(instance())):
            with pytest.raises(CountermarkError):
                trusted.verify(encoded(bundle), "bundle")


class TestPolicy:
    def verify(self, folder: Path, stamped: timedelta | None = None, at: str = "2026-12-01T00:00:00Z", **more: Any) -> None:
        people = {"alice": {"keys": [key("alice", ALICE, **more)]}, "bob": {"keyless": [{"san": "b", "issuer": "c"}]}}
        trust = BundleTrust.of_policy(trust_policy(folder, principals=people))
        bundle = modern().sign_with_key(STATEMENT, ALICE, stamped=stamped)
        proven = BundleVerifier(root_of(modern()), trust).verify(encoded(bundle), "bundle", at=Instant.parse(at))
        assert (proven.verified.principals, proven.verified.roles) == (("alice",), ("builder",))

    def test_a_key_of_the_policy_is_its_principal(self, tmp_path: Path) -> None:
        self.verify(tmp_path)

    def test_a_window_is_judged_at_the_verified_time(self, tmp_path: Path) -> None:
        """The timestamp is of 2026-03-01; without one, now counts."""
        self.verify(tmp_path, timedelta(0), not_after="2026-06-01T00:00:00Z")
        with pytest.raises(RefusedError) as caught:
            self.verify(tmp_path, not_after="2026-06-01T00:00:00Z")
        assert caught.value.code == Code.KEY_WINDOW
        with pytest.raises(RefusedError):
            self.verify(tmp_path, timedelta(0), not_before="2026-06-01T00:00:00Z")
