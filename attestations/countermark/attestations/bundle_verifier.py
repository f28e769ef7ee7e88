"""From a sigstore bundle to a statement that may be believed; no network.

Order of work: the bundle is read strictly (exit 3); each of its fields is bound to something that is verified; timestamps, certificate
and log entry hold under the trust root (1); the signer is somebody who is trusted (1, or 4 when nobody could be); then the envelope goes
through our own `Verifier` with the one key that signed it, so that the bytes that were verified are the bytes that are parsed.

A bundle says itself whether a certificate or a managed key signed it, and is never judged as the other. Never believed: `keyid`, `hint`,
and what `log_entry` does not tie to a signature.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from countermark.attestations.bundle import Bundle
from countermark.attestations.bundle_trust import BundleTrust, IdentityTrust
from countermark.attestations.certificate import Leaf
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.errors import CannotTellError, InputError, Location
from countermark.attestations.failing_closed import failing_closed
from countermark.attestations.keys import PublicKey
from countermark.attestations.log_entry import LogPosition, check_entry, promised_time
from countermark.attestations.managed_key import check_entry_body, check_logged
from countermark.attestations.sigstore_trust import SigstoreRoot
from countermark.attestations.times import Instant
from countermark.attestations.trust import Identity
from countermark.attestations.trusted_time import VerifiedTime, verified_timestamps
from countermark.attestations.verifier import SignatureResult, VerifiedStatement, Verifier


@dataclass(frozen=True, slots=True)
class VerifiedBundle:
    """What a bundle proves. `identity` is none when a managed key signed; `times` and `log` are what was verified, never what was said.

    `bundle` and `root` are the SHA-256 of the file that was verified and of the trust root it was verified under; `commit` is what the
    certificate says that the signing workflow ran on.
    """

    verified: VerifiedStatement
    key: PublicKey
    identity: Identity | None
    times: tuple[VerifiedTime, ...]
    log: LogPosition | None
    bundle: Digest
    root: Digest
    commit: str | None = None


class BundleVerifier:
    """Verifies bundles under one trust root and one trust."""

    def __init__(self, root: SigstoreRoot, trust: BundleTrust) -> None:
        self.root = root
        self._trust = trust

    def verify(self, data: bytes, source: str, *, at: Instant | None = None) -> VerifiedBundle:
        """The statement of a bundle; `at` judges the windows of managed keys when the bundle has no verified time of its own."""
        bundle = Bundle.parse(data, source)
        position = self._check_entries(bundle)
        times = self._times(bundle)
        if bundle.certificate is None:
            return self._managed(bundle, position, times, at)
        leaf = Leaf.parse(bundle.certificate, source)
        self._check_certificate(bundle, leaf)
        principal = self._principal(leaf, source)
        trust = _LeafTrust(leaf.key, principal, self._trust.identities)
        verified = Verifier(trust).verify(bundle.envelope)
        return VerifiedBundle(verified, leaf.key, leaf.identity, times, position, bundle.digest, self.root.digest, leaf.commit)

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

    def _check_certificate(self, bundle: Bundle, leaf: Leaf) -> None:
        """Certificate chain, SCT, validity at each time, identity, log entry, signature: all by the sigstore library."""
        from sigstore.models import Bundle as LibraryBundle
        from sigstore.verify import Verifier as LibraryVerifier
        from sigstore.verify.policy import Identity as LibraryIdentity

        with failing_closed("sigstore", bundle.source):
            policy = LibraryIdentity(identity=leaf.identity.san, issuer=leaf.identity.issuer)
            LibraryVerifier(trusted_root=self.root.library).verify_dsse(LibraryBundle.from_json(bundle.text), policy)

    def _principal(self, leaf: Leaf, source: str) -> str | None:
        identity = leaf.identity
        if self._trust.identities is None:
            message = f"it verifies as signed by {identity.san} (issuer {identity.issuer}), and no keyless signer is trusted here"
            fix = f"if you trust that signer, give --certificate-identity '{identity.san}' --certificate-oidc-issuer '{identity.issuer}'"
            raise CannotTellError(Code.UNTRUSTED, message, at=Location(source), fix=fix)
        return self._trust.identities.principal(identity, Location(source))

    def _managed(self, bundle: Bundle, position: LogPosition | None, times: tuple[VerifiedTime, ...], at: Instant | None) -> VerifiedBundle:
        if self._trust.keys is None:
            message = "it is signed with a key, and no key is trusted here"
            raise CannotTellError(Code.UNTRUSTED, message, at=Location(bundle.source), fix="give --key with the signer's public key")
        verified = Verifier(self._trust.keys).verify(bundle.envelope, at=min((time.at for time in times), default=at))
        key = verified.signers[0].key
        assert key is not None
        for entry in bundle.model.verification_material.tlog_entries:
            check_entry_body(entry, bundle.envelope, key)
            check_logged(entry, self.root, bundle.source)
        return VerifiedBundle(verified, key, None, times, position, bundle.digest, self.root.digest)


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
