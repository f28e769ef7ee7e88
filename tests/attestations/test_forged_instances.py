"""Whole instances that call themselves like the real one: refused, as long as their keys are not in the trust root."""

import base64
from functools import cache

import pytest
from bundles import REAL, SIGNER, STATEMENT, encoded, expecting, expecting_own, instance, modern, public_root, put
from cryptography import x509
from local_log import b64
from local_sigstore import NOW, Json, LocalSigstore, p256

from countermark.attestations.bundle import Bundle
from countermark.attestations.bundle_trust import BundleTrust, ExpectedIdentity
from countermark.attestations.bundle_verifier import BundleVerifier
from countermark.attestations.certificate import Leaf
from countermark.attestations.errors import InputError, RefusedError


@cache
def forger() -> LocalSigstore:
    """An instance with every name of the real one."""
    return LocalSigstore()


MATERIAL = "verificationMaterial"


def _refused(verifier: BundleVerifier, bundle: Json) -> None:
    with pytest.raises((RefusedError, InputError)):
        verifier.verify(encoded(bundle), "bundle")


class TestForgedInstances:
    """Who can make one sigstore instance can make any, with every name of the real one: authority, logs, identity, issuer. Only its keys
    are not the real ones. What a bundle says of logs and keys by their ids is therefore forged here too."""

    def forged(self, real: LocalSigstore) -> Json:
        """Under the names of the real instance, its log's id in the entry and at the head of the checkpoint's signature included."""
        bundle = forger().sign(STATEMENT)
        entry = bundle[MATERIAL]["tlogEntries"][0]
        entry["logId"]["keyId"] = b64(real.log.id)
        note = entry["inclusionProof"]["checkpoint"]["envelope"]
        head, _, blob = note.rstrip("\n").rpartition(" ")
        entry["inclusionProof"]["checkpoint"]["envelope"] = f"{head} {b64(real.log.id[:4] + base64.b64decode(blob)[4:])}\n"
        return bundle

    def test_it_holds_under_its_own_root_alone(self) -> None:
        own = encoded(forger().sign(STATEMENT))
        assert expecting(forger()).verify(own, "bundle").identity == SIGNER
        for verifier in (expecting(modern()), expecting(instance()), BundleVerifier(public_root(), BundleTrust(ExpectedIdentity(SIGNER)))):
            with pytest.raises(RefusedError):
                verifier.verify(own, "bundle")

    def test_the_names_and_ids_of_the_real_instance_prove_nothing(self) -> None:
        _refused(expecting(modern()), self.forged(modern()))

    @pytest.mark.parametrize("real", ["certificate", "tlogEntries", "timestampVerificationData"])
    def test_nor_does_one_real_part_among_forged_ones(self, real: str) -> None:
        """The other way round too: one forged part among real ones."""
        good, bad = modern().sign(STATEMENT), self.forged(modern())
        _refused(expecting(modern()), put(bad, (MATERIAL, real), good[MATERIAL][real]))
        _refused(expecting(modern()), put(good, (MATERIAL, real), bad[MATERIAL][real]))

    def test_a_real_identity_of_the_public_instance_cannot_be_taken(self) -> None:
        published = REAL[0].read_bytes()
        expecting_own(published).verify(published, "real")
        certificate = Bundle.parse(published, "real").certificate
        assert certificate is not None
        identity = Leaf.parse(certificate, "real").identity
        bundle = encoded(forger().sign(STATEMENT, san=identity.san, issuer=identity.issuer))
        assert expecting(forger(), identity).verify(bundle, "bundle").identity == identity
        with pytest.raises(RefusedError):
            expecting_own(published).verify(bundle, "bundle")

    def test_an_authority_that_a_real_one_did_not_make(self) -> None:
        """A signing certificate is no authority: what it issues is nothing, however real it is itself."""
        real, mallory = LocalSigstore(), p256()
        leaf = real.certificates.issue(mallory.public_key(), [x509.RFC822Name("mallory@example.test")], SIGNER.issuer, NOW)
        verifier = expecting(real)
        real.certificates.key, real.certificates.intermediate = mallory, leaf
        assert forger().certificates.intermediate.subject != leaf.subject
        _refused(verifier, real.sign(STATEMENT))
