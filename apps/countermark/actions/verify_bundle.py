"""`verify bundle`: sigstore bundles and PEP 740 attestations, verified offline, and what of them goes into a ledger."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from countermark.actions.appending import submission
from countermark.actions.envelopes import read_texts
from countermark.actions.verify_attestation import Checked, Expectation
from countermark.actions.workspace import Workspace, public_key
from countermark.attestations.bundle import Bundle
from countermark.attestations.bundle_trust import BundleTrust, ExpectedIdentity
from countermark.attestations.bundle_verifier import BundleVerifier, VerifiedBundle, VerifiedFile
from countermark.attestations.codes import Code
from countermark.attestations.documents import exists
from countermark.attestations.envelope import Envelope
from countermark.attestations.errors import CountermarkError, InputError, Location, RefusedError, UsageError
from countermark.attestations.keys import PublicKey
from countermark.attestations.signed_file import Artifact
from countermark.attestations.sigstore_trust import SigstoreRoot
from countermark.attestations.times import Instant
from countermark.attestations.trust import Identity, TrustPolicy
from countermark.attestations.verifier import KeyTrust, Trust
from countermark.ledger.submission import Submission


@dataclass(frozen=True, slots=True)
class CheckedBundle:
    """What came of one bundle; `bundle` is set when it holds, `checked` has the error when not."""

    checked: Checked
    data: bytes
    bundle: VerifiedBundle | None = None
    file: VerifiedFile | None = None

    def submission(self) -> Submission | None:
        """What goes into a ledger: the signature by the certificate's key, and the bundle itself by its digest."""
        return submission(self.bundle.verified, self.data) if self.bundle else None


@dataclass(frozen=True, slots=True)
class Believed:
    """Whom the caller of a command believes, as the options say it."""

    certificate_identity: str | None = None
    certificate_oidc_issuer: str | None = None
    keys: tuple[str, ...] = ()
    trust: Path | None = None
    ledger: str = ""
    trusted_root: Path | None = None

    def verifier(self) -> BundleVerifier:
        """One identity, or keys, or else the trust policy; without any of them nobody is believed. `UsageError` for a mixture."""
        san, issuer = self.certificate_identity, self.certificate_oidc_issuer
        if (san is None) != (issuer is None):
            fix = "give both --certificate-identity and --certificate-oidc-issuer"
            raise UsageError(Code.UNKNOWN_NAME, "an identity is a name and the issuer who vouched for it", fix=fix)
        if san is not None and self.keys:
            message = "a bundle is judged by its certificate or by a key, never by either"
            raise UsageError(Code.UNKNOWN_NAME, message, fix="give --certificate-identity or --key")
        if san is not None and issuer is not None:
            return BundleVerifier(trust_root(self.trusted_root), BundleTrust(ExpectedIdentity(Identity(san, issuer))))
        if self.keys:
            known = KeyTrust(tuple(public_key(name) for name in self.keys))
            return BundleVerifier(trust_root(self.trusted_root), BundleTrust(keys=known))
        workspace = Workspace.at(self.ledger, self.trust)
        if self.trust is None and not exists(workspace.trust_file):
            return BundleVerifier(trust_root(self.trusted_root), BundleTrust())
        return policy_verifier(workspace.trust(), self.trusted_root)


def policy_verifier(
    policy: TrustPolicy, trusted_root: Path | None = None, *, joining: bool = False, keys: Trust | None = None
) -> BundleVerifier:
    """The verifier of a trust policy's keyless identities and keys; `joining` for bundles of a ledger, as in `PolicyTrust`, and `keys`
    for trust in the keys where a ledger narrows it."""
    believed = BundleTrust.of_policy(policy, joining=joining)
    return BundleVerifier(trust_root(trusted_root, policy), replace(believed, keys=keys) if believed.keys and keys else believed)


def trust_root(path: Path | None, policy: TrustPolicy | None = None) -> SigstoreRoot:
    """The root that `path` names, else the one that the policy names, else that of the public sigstore instance."""
    if path is None and policy is not None and policy.trusted_root is not None:
        path = Path(policy.source).parent / policy.trusted_root
    return SigstoreRoot.load(path) if path else SigstoreRoot.public()


def check_bundles(
    paths: Sequence[str], verifier: BundleVerifier, now: Instant, expected: Expectation, artifact: Artifact | None = None
) -> list[CheckedBundle]:
    """Every bundle of the files. An unreadable file is one of the results. With an artifact each must sign it, or name it as a subject."""
    return [result for path in paths for result in _check_file(path, verifier, now, expected, artifact)]


def _check_file(
    path: str, verifier: BundleVerifier, now: Instant, expected: Expectation, artifact: Artifact | None
) -> Iterator[CheckedBundle]:
    try:
        for source, data in read_texts(path):
            yield check_artifact(data, source, verifier, now, expected, artifact)
    except InputError as error:
        yield CheckedBundle(Checked(path, None, error), b"")


def check_bundle(data: bytes, source: str, verifier: BundleVerifier, now: Instant, expected: Expectation) -> CheckedBundle:
    """One bundle, verified; whatever it meets is in the result. `now` judges keys where the bundle proves no time."""
    try:
        bundle = verifier.verify(data, source, at=now)
        expected.check(bundle.verified, source)
    except CountermarkError as error:
        return CheckedBundle(Checked(source, _envelope(data, source), error), data)
    return CheckedBundle(Checked(source, None, None, bundle.verified), data, bundle)


def check_artifact(
    data: bytes, source: str, verifier: BundleVerifier, now: Instant, expected: Expectation, artifact: Artifact | None
) -> CheckedBundle:
    """As `check_bundle`; with an artifact a bundle must sign that file, or hold a statement of which it is a subject."""
    if artifact is None:
        return check_bundle(data, source, verifier, now, expected)
    try:
        content = Bundle.parse(data, source).content
        if isinstance(content, Envelope):
            return check_bundle(data, source, verifier, now, replace(expected, subject=artifact.digest))
        if expected.subject or expected.predicate_type:
            message = "a bundle that signs a file has no subject and no predicate type"
            raise RefusedError(Code.PAYLOAD_TYPE, message, at=Location(source), fix="leave out --subject and --type")
        return CheckedBundle(Checked(source, None, None), data, file=verifier.verify_file(data, source, artifact, at=now))
    except CountermarkError as error:
        return CheckedBundle(Checked(source, None, error), data)


def _envelope(data: bytes, source: str) -> Envelope | None:
    """The envelope of a bundle that was refused, for what it claims; none when it cannot be read."""
    try:
        return Bundle.parse(data, source).envelope
    except InputError:
        return None


def bundle_key(verifier: BundleVerifier) -> Callable[[bytes], PublicKey | None]:
    """For the auditor of a ledger: the key that signed a stored bundle, or none when the bundle does not hold."""

    def key(data: bytes) -> PublicKey | None:
        try:
            return verifier.verify(data, "a stored bundle").key
        except CountermarkError:
            return None

    return key
