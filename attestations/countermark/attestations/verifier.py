"""From an envelope to a statement that may be believed.

Order of work, which decides the exit code: the envelope was parsed (3), a signature over the payload bytes holds (1), the payload is
a Statement (3), its predicate obeys its schema (3), its signers may make it (1). The bytes that were verified are the bytes that are
parsed. A `VerifiedStatement` comes from `Verifier` alone: a function that takes one cannot be handed an unverified claim.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass
from typing import Protocol

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.envelope import Envelope
from countermark.attestations.errors import InputError, Location, RefusedError
from countermark.attestations.keys import Algorithm, PublicKey
from countermark.attestations.statement import Statement
from countermark.attestations.times import Instant
from countermark.attestations.trust import TrustedKey, TrustPolicy

_SEAL = object()


@dataclass(frozen=True, slots=True)
class SignatureResult:
    """What came of one signature of an envelope. `key` and `algorithm` are set when a known key verified it."""

    signature: bytes
    keyid: str | None
    code: Code
    key: PublicKey | None = None
    algorithm: Algorithm | None = None
    principal: str | None = None


def holding(results: Sequence[SignatureResult]) -> tuple[SignatureResult, ...]:
    """The signatures that hold, one a key, in the order of the key fingerprints."""
    held = {result.key.fingerprint: result for result in reversed(results) if result.code is Code.OK and result.key}
    return tuple(held[fingerprint] for fingerprint in sorted(held))


@dataclass(frozen=True, slots=True)
class VerifiedStatement:
    """A statement, the exact bytes that were signed, and what came of every signature.

    `roles` are those in which its signers may make it: none where a trust asks for none, or lets them wait for others (`PolicyTrust`).
    """

    statement: Statement
    payload: bytes
    payload_type: str
    results: tuple[SignatureResult, ...]
    roles: tuple[str, ...]
    seal: InitVar[object]

    def __post_init__(self, seal: object) -> None:
        if seal is not _SEAL:
            raise TypeError("only a Verifier makes a VerifiedStatement")

    @property
    def digest(self) -> Digest:
        """The content id: SHA-256 of the payload bytes."""
        return Digest.of(DigestKind.PAYLOAD, self.payload)

    @property
    def signers(self) -> tuple[SignatureResult, ...]:
        """The signatures that hold; see `holding`."""
        return holding(self.results)

    @property
    def principals(self) -> tuple[str, ...]:
        """The principals who signed, each once."""
        return tuple(sorted({result.principal for result in self.signers if result.principal}))


class Trust(Protocol):
    """What a verifier asks: which keys are known, and whether the signers may make the statement."""

    def keys(self) -> Mapping[bytes, PublicKey]:
        """Known keys by fingerprint bytes."""

    def judge(self, result: SignatureResult, at: Instant | None) -> SignatureResult:
        """The result with its principal, or with the code why its key does not count at that time."""

    def authorise(self, predicate_type: str, principals: Iterable[str]) -> tuple[str, ...]:
        """The roles in which these principals may make such a statement; `RefusedError` when there is none."""


@dataclass(frozen=True, slots=True)
class KeyTrust:
    """Trust in bare keys, as `--key` gives it: whoever holds one may say anything."""

    known: tuple[PublicKey, ...]

    def keys(self) -> dict[bytes, PublicKey]:
        """The given keys."""
        return {key.fingerprint.raw: key for key in self.known}

    def judge(self, result: SignatureResult, at: Instant | None) -> SignatureResult:
        """A bare key has no window and no owner."""
        del at
        return result

    def authorise(self, predicate_type: str, principals: Iterable[str]) -> tuple[str, ...]:
        """Anything may be said."""
        del predicate_type, principals
        return ()


@dataclass(frozen=True, slots=True)
class PolicyTrust:
    """Trust as a `TrustPolicy` gives it: owners, windows, revocations, roles and thresholds.

    `joining` is for envelopes on their way into a ledger, where the entries of one payload join: of a role that takes several people
    each may sign an envelope of their own. Too few of them are not refused then, and may make nothing yet.
    """

    policy: TrustPolicy
    joining: bool = False

    def keys(self) -> dict[bytes, PublicKey]:
        """Every key of the policy."""
        return self.policy.keys()

    def judge(self, result: SignatureResult, at: Instant | None) -> SignatureResult:
        """Name the owner, or say why the key does not count at `at`; without an instant windows are not judged."""
        owned = self.policy.owner(result.key.fingerprint) if result.key else None
        if owned is None:
            return result
        principal, trusted = owned
        code = _window(trusted, at)
        return SignatureResult(result.signature, result.keyid, code, result.key, result.algorithm, principal.name)

    def authorise(self, predicate_type: str, principals: Iterable[str]) -> tuple[str, ...]:
        """The roles whose rule the principals meet; `RefusedError` THRESHOLD, or SIGNER_UNTRUSTED when no role of theirs makes this."""
        signed = set(principals)
        met = tuple(role.name for role in self.policy.makers(predicate_type) if role.met_by(signed))
        lacking = None if met else self.lacking(predicate_type, signed)
        if met or (lacking and self.joining):
            return met
        if lacking:
            raise RefusedError(Code.THRESHOLD, lacking, fix="let the others sign the same payload")
        who = ", ".join(sorted(signed)) or "nobody"
        message = f"{who} may not make {predicate_type}"
        raise RefusedError(
            Code.SIGNER_UNTRUSTED, message, fix=f"list the type under spec.makes of a role of the signer in {self.policy.source}"
        )

    def lacking(self, predicate_type: str, principals: Iterable[str]) -> str | None:
        """How far the principals fall short of the first role that makes this and has one of them as a member; none without such a role."""
        signed = set(principals)
        role = next((role for role in self.policy.makers(predicate_type) if signed & set(role.members)), None)
        if role is None:
            return None
        have = len(signed & set(role.members))
        return f"role {role.name} needs {role.k} principals of {len(set(role.members))}, {have} signed"


def _window(trusted: TrustedKey, at: Instant | None) -> Code:
    """A compromised key counts at no time that only its holder states; others end when they were revoked."""
    if trusted.revoked and (trusted.revoked.reason == "compromised" or (at and at >= trusted.revoked.since)):
        return Code.KEY_REVOKED
    early = at and trusted.not_before and at < trusted.not_before
    late = at and trusted.not_after and at > trusted.not_after
    return Code.KEY_WINDOW if early or late else Code.OK


class Verifier:
    """Verifies envelopes under one trust."""

    def __init__(self, trust: Trust) -> None:
        self._trust = trust
        self._keys = dict(trust.keys())

    def verify(self, envelope: Envelope, *, at: Instant | None = None) -> VerifiedStatement:
        """The statement of an envelope that at least one known, valid key signed; see the module for errors and their order."""
        results = self.judge_signatures(envelope, at)
        if not any(result.code is Code.OK for result in results):
            raise _none_holds(results, envelope.source)
        statement = _statement(envelope)
        principals = {result.principal for result in results if result.code is Code.OK and result.principal}
        try:
            roles = self._trust.authorise(statement.predicate_type, principals)
        except RefusedError as error:
            raise RefusedError(error.code, error.message, at=Location(envelope.source), fix=error.fix) from None
        return VerifiedStatement(statement, envelope.payload, envelope.payload_type, results, roles, _SEAL)

    def check_signer(self, key: PublicKey, predicate_type: str, *, at: Instant | None = None) -> None:
        """What `verify` will say of a statement of that type signed by `key`, asked before there is one. Raises `RefusedError`."""
        known = self._keys.get(key.fingerprint.raw)
        result = SignatureResult(b"", key.fingerprint.hex, Code.OK if known else Code.SIG_UNVERIFIABLE, known)
        judged = self._trust.judge(result, at) if known else result
        if judged.code is not Code.OK:
            raise _none_holds((judged,), "the signing key")
        self._trust.authorise(predicate_type, {judged.principal} if judged.principal else ())

    def judge_signatures(self, envelope: Envelope, at: Instant | None) -> tuple[SignatureResult, ...]:
        """What came of each signature of an envelope, good or bad, at `at`."""
        signed = envelope.pae()
        return tuple(self._check(signed, item.sig, item.keyid, at) for item in envelope.signatures)

    def _check(self, signed: bytes, signature: bytes, keyid: str | None, at: Instant | None) -> SignatureResult:
        for key in self._candidates(keyid):
            try:
                algorithm = key.verify(signed, signature)
            except RefusedError:
                continue
            return self._trust.judge(SignatureResult(signature, keyid, Code.OK, key, algorithm), at)
        hinted = keyid is not None and _fingerprint(keyid) in self._keys
        return SignatureResult(signature, keyid, Code.SIG_INVALID if hinted else Code.SIG_UNVERIFIABLE)

    def _candidates(self, keyid: str | None) -> list[PublicKey]:
        """All keys, the hinted one first: a key id may be absent, empty or somebody else's."""
        hint = _fingerprint(keyid) if keyid else None
        return sorted(self._keys.values(), key=lambda key: key.fingerprint.raw != hint)


def _statement(envelope: Envelope) -> Statement:
    """The Statement in an envelope's payload, its predicate checked against our schema where we have one."""
    if not envelope.holds_statement:
        message = f"payload type {envelope.payload_type!r} is not an in-toto Statement's"
        raise RefusedError(Code.PAYLOAD_TYPE, message, at=Location(envelope.source), fix="sign it as application/vnd.in-toto+json")
    source = f"{envelope.source} (payload)"
    statement = Statement.parse(envelope.payload, source)
    _check_predicate(statement, source)
    return statement


def _check_predicate(statement: Statement, source: str) -> None:
    """`InputError` SCHEMA_INVALID for the first rule of our schema that the predicate breaks; foreign types pass."""
    from countermark.attestations.schema import problems_for_predicate

    found = problems_for_predicate(statement.predicate_type, statement.predicate)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        at = Location(source, pointer=f"/predicate{found[0].pointer}")
        raise InputError(Code.SCHEMA_INVALID, found[0].message + more, at=at, fix=found[0].fix)


def _fingerprint(keyid: str) -> bytes | None:
    try:
        return bytes.fromhex(keyid)
    except ValueError:
        return None


def _none_holds(results: tuple[SignatureResult, ...], source: str) -> RefusedError:
    codes = {result.code for result in results}
    at = Location(source)
    for code, message, fix in (
        (Code.KEY_REVOKED, "the signing key was retired or revoked", "have it signed by a valid key"),
        (Code.KEY_WINDOW, "the signing key is not valid at this time", "sign within the key's window, or correct the window"),
    ):
        if code in codes:
            return RefusedError(code, message, at=at, fix=fix)
    return RefusedError(
        Code.SIG_INVALID, "no signature holds under a key that is trusted here", at=at, fix="give the signer's key, or sign again"
    )
