"""From a sigstore bundle to a statement that may be believed; no network.

Order of work: the bundle is read strictly (exit 3); each of its fields is bound to something that is verified; timestamps, certificate
and log entry hold under the trust root (1); the signer is somebody who is trusted (1, or 4 when nobody could be); then the envelope goes
through our own `Verifier` with the one key that signed it, so that the bytes that were verified are the bytes that are parsed.

A bundle says itself whether a certificate or a managed key signed it, and is never judged as the other. Never believed: `keyid`, `hint`,
and what `log_entry` does not tie to a signature.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypedDict

from countermark.attestations.bundle import Bundle
from countermark.attestations.bundle_trust import BundleTrust, IdentityTrust
from countermark.attestations.certificate import Leaf
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.envelope import Envelope
from countermark.attestations.errors import CannotTellError, InputError, Location, RefusedError
from countermark.attestations.failing_closed import failing_closed
from countermark.attestations.keys import PublicKey
from countermark.attestations.log_entry import LogPosition, check_entry, promised_time
from countermark.attestations.managed_key import Logged, check_entry_body, check_logged
from countermark.attestations.signed_file import Artifact, FileSignature
from countermark.attestations.sigstore_trust import SigstoreRoot
from countermark.attestations.times import Instant
from countermark.attestations.trust import Identity
from countermark.attestations.trusted_time import VerifiedTime, verified_timestamps
from countermark.attestations.verifier import SignatureResult, Trust, VerifiedStatement, Verifier


@dataclass(frozen=True, slots=True, kw_only=True)
class Proven:
    """What a bundle proves of its signer. `identity` is none when a managed key signed; `times` and `log` are what was verified, never
    what was said.

    `bundle` and `root` are the SHA-256 of the file that was verified and of the trust root it was verified under; `commit` is what the
    certificate says that the signing workflow ran on.
    """

    key: PublicKey
    identity: Identity | None
    times: tuple[VerifiedTime, ...]
    log: LogPosition | None
    bundle: Digest
    root: Digest
    commit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedBundle(Proven):
    """What a bundle proves, and the statement that it signs."""

    verified: VerifiedStatement


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedFile(Proven):
    """What a bundle proves, and the file that it signs; `principal` is who the signer is in the trust policy, if it was asked."""

    artifact: Digest
    principal: str | None


class BundleVerifier:
    """Verifies bundles under one trust root and one trust."""

    def __init__(self, root: SigstoreRoot, trust: BundleTrust) -> None:
        self.root = root
        self._trust = trust

    def verify(self, data: bytes, source: str, *, at: Instant | None = None) -> VerifiedBundle:
        """The statement of a bundle; `at` judges the windows of managed keys when the bundle has no verified time of its own."""
        bundle = Bundle.parse(data, source)
        envelope = bundle.envelope
        proven = self._proven(bundle)
        if bundle.certificate is None:
            verified = Verifier(self._keys(bundle)).verify(envelope, at=min((time.at for time in proven["times"]), default=at))
            return VerifiedBundle(verified=verified, **proven, **self._managed(bundle, envelope, verified.signers[0].key))
        leaf = Leaf.parse(bundle.certificate, source)
        self._check_certificate(bundle, leaf)
        trust = _LeafTrust(leaf.key, self._principal(leaf, source), self._trust.identities)
        return VerifiedBundle(verified=Verifier(trust).verify(envelope), **proven, **_of_leaf(leaf))

    def verify_file(self, data: bytes, source: str, artifact: Artifact, *, at: Instant | None = None) -> VerifiedFile:
        """What a bundle proves of a file; `at` as in `verify`. Under a trust policy any principal of it may sign a file."""
        bundle = Bundle.parse(data, source)
        signed = bundle.content
        if not isinstance(signed, FileSignature):
            message = "this bundle holds an attestation, which names its subject itself"
            raise InputError(Code.UNSUPPORTED, message, at=Location(source), fix="verify it as an attestation")
        if signed.stated not in (None, artifact.digest.raw):
            message = f"the bundle is over another file than {artifact.digest}"
            raise RefusedError(Code.SUBJECT_MISMATCH, message, at=Location(source), fix="give the file that was signed")
        proven = self._proven(bundle)
        if bundle.certificate is None:
            result = self._signer(bundle, artifact, min((time.at for time in proven["times"]), default=at))
            managed = self._managed(bundle, artifact.digest, result.key)
            return VerifiedFile(artifact=artifact.digest, principal=result.principal, **proven, **managed)
        leaf = Leaf.parse(bundle.certificate, source)
        self._check_certificate(bundle, leaf, artifact.digest)
        return VerifiedFile(artifact=artifact.digest, principal=self._principal(leaf, source), **proven, **_of_leaf(leaf))

    def _proven(self, bundle: Bundle) -> "_Facts":
        position = self._check_entries(bundle)
        return {"times": self._times(bundle), "log": position, "bundle": bundle.digest, "root": self.root.digest}

    def _check_entries(self, bundle: Bundle) -> LogPosition | None:
        entries = bundle.model.verification_material.tlog_entries
        if len(entries) > 1:
            at = Location(bundle.source, pointer="/verificationMaterial/tlogEntries/1")
            raise InputError(Code.UNSUPPORTED, "only one log entry is read", at=at, fix="give a bundle with one log entry")
        return check_entry(entries[0], self.root.log_ids, bundle.source) if entries else None

    def _times(self, bundle: Bundle) -> tuple[VerifiedTime, ...]:
        material = bundle.model.verification_material
        stamps = material.timestamp_verification_data
        tokens = [stamp.signed_timestamp for stamp in stamps.rfc3161_timestamps] if stamps else []
        authorities = self.root.library.get_timestamp_authorities()
        promised = [VerifiedTime(moment, "transparency-log") for entry in material.tlog_entries if (moment := promised_time(entry))]
        return (*verified_timestamps(tokens, bundle.signature, authorities, bundle.source), *promised)

    def _check_certificate(self, bundle: Bundle, leaf: Leaf, artifact: Digest | None = None) -> None:
        """Certificate chain, SCT, validity at each time, identity, log entry, signature: all by the sigstore library."""
        from sigstore.hashes import Hashed
        from sigstore.models import Bundle as LibraryBundle
        from sigstore.verify import Verifier as LibraryVerifier
        from sigstore.verify.policy import Identity as LibraryIdentity
        from sigstore_models.common.v1 import HashAlgorithm

        with failing_closed("sigstore", bundle.source):
            policy = LibraryIdentity(identity=leaf.identity.san, issuer=leaf.identity.issuer)
            verifier, read = LibraryVerifier(trusted_root=self.root.library), LibraryBundle.from_json(bundle.text)
            if artifact is None:
                verifier.verify_dsse(read, policy)
            else:
                verifier.verify_artifact(Hashed(algorithm=HashAlgorithm.SHA2_256, digest=artifact.raw), read, policy)

    def _principal(self, leaf: Leaf, source: str) -> str | None:
        identity = leaf.identity
        if self._trust.identities is None:
            message = f"it verifies as signed by {identity.san} (issuer {identity.issuer}), and no keyless signer is trusted here"
            fix = f"if you trust that signer, give --certificate-identity '{identity.san}' --certificate-oidc-issuer '{identity.issuer}'"
            raise CannotTellError(Code.UNTRUSTED, message, at=Location(source), fix=fix)
        return self._trust.identities.principal(identity, Location(source))

    def _keys(self, bundle: Bundle) -> Trust:
        if self._trust.keys is None:
            message = "it is signed with a key, and no key is trusted here"
            raise CannotTellError(Code.UNTRUSTED, message, at=Location(bundle.source), fix="give --key with the signer's public key")
        return self._trust.keys

    def _signer(self, bundle: Bundle, artifact: Artifact, at: Instant | None) -> SignatureResult:
        """Which trusted key signed a file, as the trust judges it for `at`."""
        trust = self._keys(bundle)
        for key in trust.keys().values():
            try:
                artifact.check(key, bundle.signature, bundle.source)
            except RefusedError:
                continue
            result = trust.judge(SignatureResult(bundle.signature, None, Code.OK, key, key.algorithm), at)
            if result.code is not Code.OK:
                message = "the key that signed it does not count at this time"
                raise RefusedError(result.code, message, at=Location(bundle.source), fix="have it signed by a valid key")
            return result
        message = "no key that is trusted here signed this file"
        raise RefusedError(Code.SIG_INVALID, message, at=Location(bundle.source), fix="give the signer's key and the file as it was signed")

    def _managed(self, bundle: Bundle, signed: Envelope | Digest, key: PublicKey | None) -> "_Signer":
        """The log entries of a bundle that a key signed are about this key and what it signed."""
        assert key is not None
        for entry in bundle.model.verification_material.tlog_entries:
            check_entry_body(entry, Logged(signed, bundle.signature, key, bundle.source))
            check_logged(entry, self.root, bundle.source)
        return {"key": key, "identity": None, "commit": None}


class _Facts(TypedDict):
    times: tuple[VerifiedTime, ...]
    log: LogPosition | None
    bundle: Digest
    root: Digest


class _Signer(TypedDict):
    key: PublicKey
    identity: Identity | None
    commit: str | None


def _of_leaf(leaf: Leaf) -> _Signer:
    return {"key": leaf.key, "identity": leaf.identity, "commit": leaf.commit}


@dataclass(frozen=True, slots=True)
class _LeafTrust:
    """Trust in the one key of a certificate that was verified; it is its owner's for the moment of signing alone."""

    key: PublicKey
    owner: str | None
    identities: IdentityTrust | None

    def keys(self) -> Mapping[bytes, PublicKey]:
        return {self.key.fingerprint.raw: self.key}

    def judge(self, result: SignatureResult, at: Instant | None) -> SignatureResult:
        del at
        return replace(result, principal=self.owner)

    def authorise(self, predicate_type: str, principals: Iterable[str]) -> tuple[str, ...]:
        return self.identities.authorise(predicate_type, principals) if self.identities else ()
