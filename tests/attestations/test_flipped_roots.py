"""One flipped bit in what is trusted: it makes nobody else believed, and where all stays as it was, the bit is one that carries no trust.

A trust root and a trust policy are believed as they are, and their digest is told with every verdict: another number or date in them is
another policy. What is held here is that no flip lets a stranger pass, that none turns a signer into somebody else, and which bytes may
change without a change of the verdict.
"""

import base64
from collections.abc import Sequence
from pathlib import Path

import pytest
from bundles import SIGNER, STATEMENT, encoded, modern
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding
from flips import SHARES, flips, inside, passed, spans
from local_sigstore import ISSUER, SAN, Json, LocalSigstore
from signing import envelope, pem, statement
from trusting import ALICE, BOB, STRANGER, key, trust_policy

from countermark.attestations.bundle_trust import BundleTrust, ExpectedIdentity
from countermark.attestations.bundle_verifier import BundleVerifier
from countermark.attestations.errors import CountermarkError
from countermark.attestations.sigstore_trust import SigstoreRoot
from countermark.attestations.times import Instant
from countermark.attestations.trust import TrustPolicy
from countermark.attestations.verifier import PolicyTrust, Verifier

pytestmark = [  # of certificates that cryptography reads, though they are odd
    pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Attribute's length must be:UserWarning"),
]

Facts = tuple[object, ...]
"""What is told of a signer."""


def _by_root(root: bytes, bundle: bytes) -> Facts | None:
    try:
        verifier = BundleVerifier(SigstoreRoot.parse(root, "root"), BundleTrust(ExpectedIdentity(SIGNER)))
        proven = verifier.verify(bundle, "bundle")
    except CountermarkError:
        return None
    return proven.identity, proven.key.spki, proven.times, proven.log, proven.commit


def _untrusted_texts(root: Json, text: bytes, issued: Sequence[x509.Certificate], anchors: Sequence[x509.Certificate]) -> set[int]:
    """Addresses and names for people; the id of a certificate log, which is computed from its key; the start of a window that still holds
    the moment of signing; whom an anchor names as its issuer: another may vouch for it, and it is an anchor all the same; and the count of
    unused bits at the head of a certificate's signature, where the last bits are zero.
    """
    authorities = [*root["certificateAuthorities"], *root["timestampAuthorities"]]
    names = {name for authority in authorities for name in authority["subject"].values()}
    addresses = {authority["uri"] for authority in authorities} | {log["baseUrl"] for log in (*root["tlogs"], *root["ctlogs"])}
    start = root["tlogs"][0]["publicKey"]["validFor"]["start"]
    found = spans(text, *names, *addresses, start, root["ctlogs"][0]["logId"]["keyId"])
    for certificate in anchors:
        der, issuer = certificate.public_bytes(Encoding.DER), certificate.issuer.public_bytes()
        first = der.index(issuer)
        found |= inside(text, base64.b64encode(der).decode(), None, *range(first, first + len(issuer)))
    for certificate in (*issued, *anchors):
        der = certificate.public_bytes(Encoding.DER)
        found |= inside(text, base64.b64encode(der).decode(), None, len(der) - len(certificate.signature) - 1)
    return found


@pytest.mark.parametrize("share", SHARES)
def test_of_a_trust_root(share: int | None) -> None:
    sigstore = modern()
    text, good, forged = sigstore.root_bytes(), encoded(sigstore.sign(STATEMENT)), encoded(LocalSigstore().sign(STATEMENT))
    known = _by_root(text, good)
    assert known
    kept = set()
    for at, changed in flips(text, share):
        found = _by_root(changed, good)
        assert found in (known, None), at
        assert _by_root(changed, forged) is None, at
        if found:
            kept.add(at)
    issued = [sigstore.certificates.intermediate, sigstore.timestamps.certificate]
    assert kept <= _untrusted_texts(sigstore.trusted_root(), text, issued, [sigstore.certificates.root, sigstore.timestamps.root])
    address = text.index(b"log.example.test")
    assert passed(text, 0, lambda changed: _by_root(changed, good) == known, always=[address]) == {address}


def _policy(folder: Path, k: int) -> None:
    people = {
        "alice": {"keys": [key("alice", ALICE, not_before="2026-01-01T00:00:00Z", not_after="2027-06-01T00:00:00Z")]},
        "bob": {"keys": [key("bob", BOB)]},
        "robot": {"keyless": [{"san": SAN, "issuer": ISSUER}]},
    }
    roles = {"builder": {"threshold": {"k": k, "of": ["alice", "bob", "robot"]}}}
    trust_policy(folder, principals=people, roles=roles, makes={"builder": [str(statement()["predicateType"])]})


def _by_keys(folder: Path, *signers: Ed25519PrivateKey) -> Facts | None:
    """Who signed, as the policy in a folder says; none when it says no or cannot be read."""
    try:
        policy = TrustPolicy.load(folder / "trust.yaml")
        verified = Verifier(PolicyTrust(policy)).verify(envelope(statement(), *signers), at=Instant.parse("2026-12-02T00:00:00Z"))
    except CountermarkError:
        return None
    return verified.principals, verified.roles


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("name", ["trust.yaml", "alice.pub"])
def test_of_a_trust_policy_and_its_keys(name: str, share: int | None, tmp_path: Path) -> None:
    _policy(tmp_path, k=2)
    path = tmp_path / name
    text = path.read_bytes()
    strangers = ((STRANGER,), (ALICE, STRANGER), (ALICE, ALICE), (ALICE,))
    known = _by_keys(tmp_path, ALICE, BOB)
    assert known == (("alice", "bob"), ("builder",))
    kept = set()
    for at, changed in flips(text, share):
        path.write_bytes(changed)
        found = _by_keys(tmp_path, ALICE, BOB)
        assert found in (known, None), at
        assert [_by_keys(tmp_path, *signers) for signers in strangers] == [None] * len(strangers), at
        if found:
            kept.add(at)
    assert kept <= (_unread_of_policy(text) | spans(text, SAN, ISSUER) if name == "trust.yaml" else spans(text, "\n"))


def _unread_of_policy(text: bytes) -> set[int]:
    """The name and version of the file; ends of windows that still hold the moment; whether one person holds several roles, which
    decisions alone ask."""
    head = [" id: t", " version: 1", "2027-06-01T00:00:00Z", "2026-01-01T00:00:00Z", " single_operator: false"]
    return spans(text, *head)


@pytest.mark.parametrize("share", SHARES)
def test_of_a_policy_of_keyless_identities(share: int | None, tmp_path: Path) -> None:
    """Name and issuer are compared exactly, so that another letter is somebody else, and somebody else is not the robot."""
    _policy(tmp_path, k=1)
    path = tmp_path / "trust.yaml"
    text = path.read_bytes()
    robot, other = encoded(modern().sign(STATEMENT)), encoded(modern().sign(STATEMENT, san=SAN + "2"))

    def by(bundle: bytes) -> Facts | None:
        try:
            trust = BundleTrust.of_policy(TrustPolicy.load(path))
            proven = BundleVerifier(modern_root, trust).verify(bundle, "bundle")
        except CountermarkError:
            return None
        return proven.verified.principals, proven.verified.roles, proven.identity

    modern_root = SigstoreRoot.parse(modern().root_bytes(), "root")
    known = by(robot)
    assert known == (("robot",), ("builder",), SIGNER)
    kept = set()
    for at, changed in flips(text, share):
        path.write_bytes(changed)
        found = by(robot)
        assert found in (known, None), at
        assert by(other) is None, at
        if found:
            kept.add(at)
    assert not kept & spans(text, SAN, ISSUER, " robot", "https://example.com/anything/v1")


def test_a_stranger_in_place_of_a_key_file_is_noticed(tmp_path: Path) -> None:
    """The policy names the key by its fingerprint, so that the file beside it cannot be swapped."""
    _policy(tmp_path, k=1)
    assert _by_keys(tmp_path, ALICE)
    (tmp_path / "alice.pub").write_bytes(pem(STRANGER))
    assert _by_keys(tmp_path, STRANGER) is None
