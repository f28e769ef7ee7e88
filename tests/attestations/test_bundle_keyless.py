"""Keyless bundles under a sigstore instance of the tests' own: who signed, when, under whose root."""

import base64
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from bundles import SIGNER, STATEMENT, encoded, expecting, instance, modern, promised, root_of
from cryptography import x509
from cryptography.hazmat import asn1
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding
from local_log import Log, b64
from local_sigstore import ISSUER, NOW, SAN, SOURCE_DIGEST, LocalSigstore, p256
from trusting import ALICE, ANYTHING, key, trust_policy

from countermark.attestations.bundle_trust import BundleTrust
from countermark.attestations.bundle_verifier import BundleVerifier
from countermark.attestations.certificate import Leaf
from countermark.attestations.codes import Code
from countermark.attestations.errors import CannotTellError, InputError, RefusedError
from countermark.attestations.sigstore_trust import SigstoreRoot
from countermark.attestations.times import Instant
from countermark.attestations.trust import Identity

UNSHARDED = LocalSigstore(Log(key=p256()))
SIGNED_AT = Instant(int(NOW.timestamp()) * 1_000_000_000)


@pytest.mark.parametrize("changes", [{}, {"embed": False}, {"san": "alice@example.test"}])
@pytest.mark.parametrize("sigstore", [modern(), UNSHARDED], ids=["ed25519 log", "P-256 log"])
def test_what_a_bundle_proves(sigstore: LocalSigstore, changes: dict[str, Any]) -> None:
    identity = Identity(changes.get("san", SAN), ISSUER)
    proven = expecting(sigstore, identity).verify(encoded(sigstore.sign(STATEMENT, **changes)), "bundle")
    assert proven.identity == identity
    assert [(time.at.ns - SIGNED_AT.ns, time.by) for time in proven.times] == [(5_000_000_000, "timestamp-authority")]
    assert proven.log is not None
    assert (proven.log.origin, proven.log.index, proven.log.size) == (
        "log.example.test",
        len(sigstore.log.leaves) - 1,
        len(sigstore.log.leaves),
    )
    assert proven.verified.payload == STATEMENT
    assert [result.key for result in proven.verified.signers] == [proven.key]
    assert proven.root == root_of(sigstore).digest


def test_the_index_is_the_proven_one() -> None:
    """A log with several shards has an outer index beside it, which the promise covers and nobody needs."""
    bundle = promised(stamped=timedelta(seconds=4))
    proven = expecting(instance()).verify(encoded(bundle), "bundle")
    outer = int(bundle["verificationMaterial"]["tlogEntries"][0]["logIndex"])
    assert proven.log is not None
    assert proven.log.index == outer - 1000
    assert [(time.at.ns - SIGNED_AT.ns, time.by) for time in proven.times] == [
        (4_000_000_000, "timestamp-authority"),
        (3_000_000_000, "transparency-log"),
    ]


def test_a_commit_in_the_certificate_is_proven() -> None:
    commit = "b" * 40
    bundle = modern().sign(STATEMENT, more={SOURCE_DIGEST: commit})
    assert expecting(modern()).verify(encoded(bundle), "bundle").commit == commit
    assert expecting(modern()).verify(encoded(modern().sign(STATEMENT)), "bundle").commit is None


@pytest.mark.parametrize(
    "identity",
    [
        Identity(SAN + "x", ISSUER),
        Identity(SAN[:-1], ISSUER),
        Identity(SAN, ISSUER + "/"),
        Identity("", ISSUER),
        Identity(SAN.upper(), ISSUER),
    ],
)
def test_an_identity_is_exact(identity: Identity) -> None:
    with pytest.raises(RefusedError) as caught:
        expecting(modern(), identity).verify(encoded(modern().sign(STATEMENT)), "bundle")
    assert caught.value.code == Code.SIGNER_UNTRUSTED


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"sct": False}, "SCT"),
        ({"stamped": timedelta(minutes=11)}, "validity|expired|valid"),
        ({"stamped": timedelta(minutes=-1)}, "validity|expired|valid"),
        ({"stamped": None}, "timestamp"),
        ({"key": ed25519.Ed25519PrivateKey.generate()}, "sigstore does not verify it"),
        ({"key": ec.generate_private_key(ec.SECP384R1())}, "signature"),
        ({"promised": timedelta(minutes=11)}, "valid"),
        ({"promised": timedelta(seconds=1), "stamped": timedelta(minutes=11)}, "valid"),
    ],
)
def test_what_does_not_verify(changes: dict[str, Any], match: str) -> None:
    with pytest.raises(RefusedError, match=match) as caught:
        expecting(UNSHARDED).verify(encoded(UNSHARDED.sign(STATEMENT, **changes)), "bundle")
    assert caught.value.code == Code.SIG_INVALID


def test_another_instance_is_not_believed() -> None:
    """Neither as a whole, nor with any one of its parts in ours."""
    other = LocalSigstore()
    bundle = encoded(other.sign(STATEMENT))
    with pytest.raises(RefusedError, match="--trusted-root") as caught:
        expecting(modern()).verify(bundle, "bundle")
    assert caught.value.code == Code.SIG_UNVERIFIABLE
    ours, theirs = modern().trusted_root(), other.trusted_root()
    for name in ("tlogs", "certificateAuthorities", "ctlogs", "timestampAuthorities"):
        verifier = expecting(other)
        verifier.root = SigstoreRoot.parse(encoded({**theirs, name: ours[name]}), "mixed")
        with pytest.raises(RefusedError):
            verifier.verify(bundle, name)


def test_every_timestamp_must_hold() -> None:
    """The library goes on with the times that do, so that a bundle could carry any claim beside."""
    bundle = promised(stamped=timedelta(seconds=1))
    stamps = bundle["verificationMaterial"]["timestampVerificationData"]["rfc3161Timestamps"]
    stranger = LocalSigstore().sign(STATEMENT)["verificationMaterial"]["timestampVerificationData"]["rfc3161Timestamps"]
    signature = base64.b64decode(bundle["dsseEnvelope"]["signatures"][0]["sig"])
    many = [{"signedTimestamp": b64(instance().timestamps.timestamp(signature, NOW + timedelta(seconds=n)))} for n in range(33)]
    for bad in ([*stamps, *stranger], [*stamps, *stamps], many):
        bundle["verificationMaterial"]["timestampVerificationData"]["rfc3161Timestamps"] = bad
        with pytest.raises(RefusedError, match="timestamp"):
            expecting(instance()).verify(encoded(bundle), "bundle")


@pytest.mark.parametrize(
    ("window", "good"),
    [
        ({"start": "2026-03-01T12:00:05Z"}, True),
        ({"start": "2026-03-01T12:00:06Z"}, False),
        ({"end": "2026-03-01T12:00:06Z"}, True),
        ({"end": "2026-03-01T12:00:04Z"}, False),
    ],
)
def test_a_timestamp_authority_is_believed_in_its_window(window: dict[str, str], good: bool) -> None:
    """Beside a promise, so that it is we who mind."""
    bundle = encoded(promised(stamped=timedelta(seconds=5)))
    root = instance().trusted_root()
    root["timestampAuthorities"][0]["validFor"] |= window
    verifier = expecting(instance())
    verifier.root = SigstoreRoot.parse(encoded(root), "trusted_root.json")
    if good:
        assert len(verifier.verify(bundle, "bundle").times) == 2
    else:
        with pytest.raises(RefusedError, match="timestamp authority"):
            verifier.verify(bundle, "bundle")


class TestWhoIsBelieved:
    def test_nobody(self) -> None:
        """It verifies, and yet there is no answer; the fix says what was proven of the signer."""
        with pytest.raises(CannotTellError) as caught:
            BundleVerifier(root_of(modern()), BundleTrust()).verify(encoded(modern().sign(STATEMENT)), "bundle")
        assert f"--certificate-identity '{SAN}' --certificate-oidc-issuer '{ISSUER}'" in caught.value.fix

    def test_nobody_and_a_bundle_that_does_not_verify(self) -> None:
        """Then the answer is no."""
        with pytest.raises(RefusedError):
            BundleVerifier(root_of(modern()), BundleTrust()).verify(encoded(modern().sign(STATEMENT, sct=False)), "bundle")

    def test_an_identity_of_the_policy_is_its_principal(self, tmp_path: Path) -> None:
        policy = trust_policy(tmp_path, principals=_people(alice=[SIGNER]))
        proven = BundleVerifier(root_of(modern()), BundleTrust.of_policy(policy)).verify(encoded(modern().sign(STATEMENT)), "bundle")
        assert (proven.verified.principals, proven.verified.roles) == (("alice",), ("builder",))

    def test_a_principal_makes_what_its_role_makes(self, tmp_path: Path) -> None:
        policy = trust_policy(tmp_path, principals=_people(alice=[SIGNER]), makes={"approver": [ANYTHING]})
        with pytest.raises(RefusedError) as caught:
            BundleVerifier(root_of(modern()), BundleTrust.of_policy(policy)).verify(encoded(modern().sign(STATEMENT)), "bundle")
        assert caught.value.code == Code.THRESHOLD

    def test_a_stranger_is_refused(self, tmp_path: Path) -> None:
        policy = trust_policy(tmp_path, principals=_people(alice=[Identity(SAN, "https://elsewhere.test")]))
        with pytest.raises(RefusedError, match="nobody in the trust policy") as caught:
            BundleVerifier(root_of(modern()), BundleTrust.of_policy(policy)).verify(encoded(modern().sign(STATEMENT)), "bundle")
        assert caught.value.code == Code.SIGNER_UNTRUSTED

    def test_one_identity_has_one_owner(self, tmp_path: Path) -> None:
        """Two names for it would meet a threshold of two alone."""
        with pytest.raises(InputError, match="same identity"):
            trust_policy(tmp_path, principals=_people(alice=[SIGNER], bob=[SIGNER]))

    def test_a_policy_of_keys_knows_no_identity(self, tmp_path: Path) -> None:
        with pytest.raises(CannotTellError):
            BundleVerifier(root_of(modern()), BundleTrust.of_policy(trust_policy(tmp_path))).verify(
                encoded(modern().sign(STATEMENT)), "bundle"
            )


def _people(**identities: list[Identity]) -> dict[str, Any]:
    people: dict[str, Any] = {"alice": {"keys": [key("alice", ALICE)]}, "bob": {}}
    for name, keyless in identities.items():
        people[name] = {"keyless": [{"san": item.san, "issuer": item.issuer} for item in keyless]}
    return {name: person or {"keyless": [{"san": "bob@example.test", "issuer": ISSUER}]} for name, person in people.items()}


class TestCertificates:
    """What a certificate must state to be read at all."""

    def der(self, names: "list[x509.GeneralName]", **changes: Any) -> bytes:
        return modern().certificates.issue(p256().public_key(), names, ISSUER, NOW, **changes).public_bytes(Encoding.DER)

    def test_one_name(self) -> None:
        mail, site = x509.RFC822Name("a@example.test"), x509.UniformResourceIdentifier("https://example.test")
        assert Leaf.parse(self.der([mail]), "leaf").identity == Identity("a@example.test", ISSUER)
        assert Leaf.parse(self.der([site]), "leaf").identity == Identity("https://example.test", ISSUER)
        more: list[list[x509.GeneralName]] = [[mail, site], [mail, x509.DNSName("example.test")], [x509.DNSName("example.test")]]
        for names in more:
            with pytest.raises(InputError):
                Leaf.parse(self.der(names), "leaf")

    def test_a_name_of_fulcios_own_kind(self) -> None:
        name = x509.OtherName(x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.7"), asn1.encode_der("alice!example.test"))
        assert Leaf.parse(self.der([name]), "leaf").identity.san == "alice!example.test"

    @pytest.mark.parametrize("data", [b"", b"\x30\x00", b"\x30" * 40])
    def test_no_certificate(self, data: bytes) -> None:
        with pytest.raises(InputError):
            Leaf.parse(data, "leaf")

    def test_no_issuer(self) -> None:
        root = modern().certificates.root
        with pytest.raises(InputError):
            Leaf.parse(root.public_bytes(Encoding.DER), "leaf")
