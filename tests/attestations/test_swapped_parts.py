"""Parts of one good bundle in another good bundle, timestamps of other certificates, no signature at all: refused."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from bundles import SIGNER, STATEMENT, encoded, expecting, instance, modern, put, root_of
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from local_certificates import spki
from local_sigstore import Json, LocalSigstore, p256
from signing import envelope_json, pem, statement
from trusting import ALICE

from countermark.attestations.bundle_trust import BundleTrust, ExpectedIdentity
from countermark.attestations.bundle_verifier import BundleVerifier
from countermark.attestations.envelope import Envelope
from countermark.attestations.errors import InputError, RefusedError
from countermark.attestations.keys import PublicKey
from countermark.attestations.trust import Identity
from countermark.attestations.verifier import KeyTrust
from countermark.cli.app import run

OTHER = STATEMENT.replace(b'"n": 1', b'"n": 2')
OTHER_SAN = "https://code.example.test/mallory/engine/ci.yml@refs/heads/main"
MATERIAL = "verificationMaterial"


def _refused(verifier: BundleVerifier, bundle: Json) -> None:
    with pytest.raises((RefusedError, InputError)):
        verifier.verify(encoded(bundle), "bundle")


def _swapped(into: Json, other: Json, *path: str | int) -> Json:
    """A copy of a bundle with one part of another's."""
    part: Any = other
    for name in path:
        part = part[name]
    made: Json = put(into, path, part)
    return made


SIGNING: dict[str, tuple[Callable[..., Json], Callable[[], BundleVerifier]]] = {
    "Rekor v1": (lambda payload, **more: instance().sign(payload, promised=timedelta(seconds=3), **more), lambda: expecting(instance())),
    "Rekor v2": (lambda payload, **more: modern().sign(payload, **more), lambda: expecting(modern())),
}
PARTS: list[tuple[str | int, ...]] = [
    (MATERIAL, "certificate"),
    (MATERIAL, "tlogEntries"),
    (MATERIAL, "tlogEntries", 0, "inclusionProof"),
    (MATERIAL, "tlogEntries", 0, "canonicalizedBody"),
    (MATERIAL, "timestampVerificationData"),
    ("dsseEnvelope", "signatures"),
    ("dsseEnvelope", "payload"),
    ("dsseEnvelope",),
]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: "/".join(map(str, part)))
@pytest.mark.parametrize("rekor", SIGNING)
def test_no_part_of_another_bundle_of_the_same_signer_fits(rekor: str, part: tuple[str | int, ...]) -> None:
    """Every signature has a certificate, an entry and a timestamp of its own, also over the same statement."""
    sign, verifier = SIGNING[rekor]
    bundle = sign(STATEMENT)
    verifier().verify(encoded(bundle), "bundle")
    others = [sign(OTHER)] if part == ("dsseEnvelope", "payload") else [sign(OTHER), sign(STATEMENT)]
    for other in others:
        _refused(verifier(), _swapped(bundle, other, *part))


@pytest.mark.parametrize("rekor", SIGNING)
def test_a_certificate_of_another_name_for_the_same_key(rekor: str) -> None:
    """Both names are of one authority, and the signature holds under both; what was logged is one of them."""
    sign, verifier = SIGNING[rekor]
    private = p256()
    bundle, other = sign(STATEMENT, key=private), sign(STATEMENT, key=private, san=OTHER_SAN)
    changed = _swapped(bundle, other, MATERIAL, "certificate")
    mallory = verifier()
    mallory = BundleVerifier(mallory.root, BundleTrust(ExpectedIdentity(Identity(OTHER_SAN, SIGNER.issuer))))
    mallory.verify(encoded(other), "bundle")
    for believer in (verifier(), mallory):
        _refused(believer, changed)


@pytest.mark.parametrize("rekor", ["dsse", "hashedrekord"])
def test_the_entry_of_another_signature_by_the_same_key(rekor: str) -> None:
    private, sigstore = p256(), instance() if rekor == "dsse" else modern()
    verifier = BundleVerifier(root_of(sigstore), BundleTrust(keys=KeyTrust((PublicKey(spki(private.public_key())),))))
    bundle, other = (sigstore.sign_with_key(payload, private, logged=rekor) for payload in (STATEMENT, OTHER))
    verifier.verify(encoded(bundle), "bundle")
    _refused(verifier, _swapped(bundle, other, MATERIAL, "tlogEntries"))


class TestCertificateTimestamps:
    """The log of certificates signed another certificate, or is another log."""

    class Replaying:
        """A key of which one old signature is left."""

        def __init__(self, known: ec.EllipticCurvePrivateKey, signed: bytes) -> None:
            self.known, self.signed = known, signed

        def public_key(self) -> ec.EllipticCurvePublicKey:
            return self.known.public_key()

        def sign(self, data: bytes, algorithm: object) -> bytes:
            del data, algorithm
            return self.signed

    @staticmethod
    def with_log(key: ec.EllipticCurvePrivateKey) -> tuple[BundleVerifier, Json]:
        """Who believes an instance, and a bundle whose certificate timestamp is by this key."""
        sigstore = LocalSigstore()
        verifier = expecting(sigstore)
        sigstore.certificates.transparency_key = key
        return verifier, sigstore.sign(STATEMENT)

    def test_of_a_log_that_the_root_does_not_name(self) -> None:
        _refused(*self.with_log(p256()))

    def test_of_another_certificate(self) -> None:
        sigstore = LocalSigstore()
        verifier, known = expecting(sigstore), sigstore.certificates.transparency_key
        old = known.sign(b"what the log signed of another certificate", ec.ECDSA(hashes.SHA256()))
        sigstore.certificates.transparency_key = cast(ec.EllipticCurvePrivateKey, self.Replaying(known, old))
        _refused(verifier, sigstore.sign(STATEMENT))
        sigstore.certificates.transparency_key = known
        verifier.verify(encoded(sigstore.sign(STATEMENT)), "bundle")


class TestNoSignature:
    def test_an_envelope(self, tmp_path: Path) -> None:
        made = {**envelope_json(statement(), ALICE), "signatures": []}
        (tmp_path / "none.json").write_text(json.dumps(made))
        (tmp_path / "key.pub").write_bytes(pem(ALICE))
        with pytest.raises(InputError, match="1 to 16 signatures"):
            Envelope.parse(json.dumps(made).encode(), "none")
        assert run(["verify", "attestation", str(tmp_path / "none.json"), "--key", str(tmp_path / "key.pub")]) == 3

    @pytest.mark.parametrize("signatures", [[], [{"sig": "", "keyid": ""}]])
    @pytest.mark.parametrize("rekor", SIGNING)
    def test_a_bundle(self, rekor: str, signatures: list[Json]) -> None:
        sign, verifier = SIGNING[rekor]
        bundle = sign(STATEMENT)
        bundle["dsseEnvelope"]["signatures"] = signatures
        _refused(verifier(), bundle)
