"""Who may have signed a bundle: keyless identities, exact in name and issuer, and managed keys."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location, RefusedError
from countermark.attestations.trust import Identity, TrustPolicy
from countermark.attestations.verifier import PolicyTrust, Trust


class IdentityTrust(Protocol):
    """Which keyless identities are believed, and for what."""

    def principal(self, identity: Identity, at: Location) -> str | None:
        """Who the identity is, if it has a name here; `RefusedError` SIGNER_UNTRUSTED when it is not believed. `at` is for errors."""

    def authorise(self, predicate_type: str, principals: Iterable[str]) -> tuple[str, ...]:
        """As in `Trust`."""


@dataclass(frozen=True, slots=True)
class ExpectedIdentity:
    """Trust in one identity, as `--certificate-identity` gives it: it may say anything."""

    identity: Identity

    def principal(self, identity: Identity, at: Location) -> None:
        """Nobody has a name here."""
        if identity != self.identity:
            message = f"it is signed by {identity.san} (issuer {identity.issuer})"
            raise RefusedError(Code.SIGNER_UNTRUSTED, message, at=at, fix=f"give an attestation signed by {self.identity.san}")

    def authorise(self, predicate_type: str, principals: Iterable[str]) -> tuple[str, ...]:
        """Anything may be said."""
        del predicate_type, principals
        return ()


@dataclass(frozen=True, slots=True)
class PolicyIdentities:
    """Trust in the keyless identities of a trust policy; `joining` as in `PolicyTrust`."""

    policy: TrustPolicy
    joining: bool = False

    def principal(self, identity: Identity, at: Location) -> str:
        """The one principal who owns the identity."""
        owners = [principal.name for principal in self.policy.principals.values() if identity in principal.keyless]
        if len(owners) > 1:
            message = f"principals {' and '.join(owners)} have the same identity {identity.san}"
            place = Location(self.policy.source, pointer="/spec/principals")
            raise InputError(Code.SCHEMA_INVALID, message, at=place, fix="give each its own identity")
        if not owners:
            message = f"{identity.san} (issuer {identity.issuer}) is nobody in the trust policy"
            fix = f"list this san and issuer under keyless of a principal in {self.policy.source}"
            raise RefusedError(Code.SIGNER_UNTRUSTED, message, at=at, fix=fix)
        return owners[0]

    def authorise(self, predicate_type: str, principals: Iterable[str]) -> tuple[str, ...]:
        """The roles that the policy gives."""
        return PolicyTrust(self.policy, self.joining).authorise(predicate_type, principals)


@dataclass(frozen=True, slots=True)
class BundleTrust:
    """Who is believed: keyless identities, managed keys, both, or nobody."""

    identities: IdentityTrust | None = None
    keys: Trust | None = None

    @classmethod
    def of_policy(cls, policy: TrustPolicy, *, joining: bool = False) -> "BundleTrust":
        """What a trust policy believes; `joining` as in `PolicyTrust`."""
        keyless = any(principal.keyless for principal in policy.principals.values())
        return cls(PolicyIdentities(policy, joining) if keyless else None, PolicyTrust(policy, joining) if policy.keys() else None)
