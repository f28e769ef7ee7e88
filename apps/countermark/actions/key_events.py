"""`key retire` and `key revoke`: taking a key away from its index in the log on, and telling what that leaves of its signatures."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from countermark.actions.appending import append
from countermark.actions.clock import now
from countermark.actions.workspace import Workspace, admitting_trust, open_reader, public_key
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.documents import exists
from countermark.attestations.envelope import Envelope, Signature
from countermark.attestations.errors import InputError, Location, RefusedError
from countermark.attestations.keys import Signer
from countermark.attestations.times import Instant
from countermark.attestations.trust import TrustPolicy
from countermark.attestations.verifier import Verifier
from countermark.ledger.key_event import ANY_ROLE, Event, KeyEvent
from countermark.ledger.key_history import KEY_EVENT, KeyHistory, LedgerTrust
from countermark.ledger.submission import Submission

_MAKES_IT = "sign with the key itself (--key), or with that of a role that makes key-event in the trust policy"


@dataclass(frozen=True, slots=True)
class TakenKey:
    """A key event that was appended, and what it does: `counts` says whether enough have signed it; the entries are those of the key.

    `kept` stay good, `suspect` do not.
    """

    event: KeyEvent
    key: Digest
    index: int
    duplicate: bool
    counts: bool
    kept: tuple[int, ...]
    suspect: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """Which key is to be taken away, and why; `signers` are the keys that say so, by default the builder's beside the ledger."""

    key: str
    reason: str | None = None
    signers: tuple[str, ...] = ()


def retire(workspace: Workspace, asked: Asked) -> TakenKey:
    """What the key signed until now stays good; nothing that it signs counts from here on."""
    return _take(workspace, asked, "retire")


def revoke(workspace: Workspace, asked: Asked, *, since_entry: int | None = None, since: Instant | None = None) -> TakenKey:
    """The key is lost: what it signed from entry `since_entry` on (by default: ever) is suspect, and nothing counts from here on.

    `since` is when it was lost, for people.
    """
    return _take(workspace, asked, "revoke", since_entry, since)


def _take(workspace: Workspace, asked: Asked, event: Event, since_entry: int | None = None, since: Instant | None = None) -> TakenKey:
    workspace.check_ledger()
    policy = workspace.trust()
    owner, spki = _owned(policy, asked.key)
    since_ms = since.ms if since else None
    made = KeyEvent(event, owner, ANY_ROLE, spki, since_ms, asked.reason, since_entry)
    trust = admitting_trust(workspace, policy)
    _check_sense(made, trust)
    signers = [workspace.signer("builder", uri) for uri in asked.signers or (None,)]
    submission = made.sign(*signers)
    _check_rights(made, submission, trust, signers)
    (receipt,), _ = append(workspace, [submission])
    return _taken(workspace, policy, made, receipt.index, duplicate=receipt.duplicate)


def _owned(policy: TrustPolicy, text: str) -> tuple[str, bytes]:
    """The owner and the bytes of a key of the trust policy, named by its file or its fingerprint."""
    fingerprint = public_key(text).fingerprint if exists(Path(text)) else _fingerprint(text)
    owned = policy.owner(fingerprint)
    if owned is None:
        fix = "name a key of the trust policy; nothing needs to be taken from others"
        raise InputError(Code.UNKNOWN_NAME, f"{fingerprint} is nobody's in {policy.source}", at=Location(text), fix=fix)
    return owned[0].name, owned[1].key.spki


def _fingerprint(text: str) -> Digest:
    hexed = text.removeprefix(f"{DigestKind.SPKI}:").removeprefix("sha256:")
    return Digest.parse(f"{DigestKind.SPKI}:sha256:{hexed}", at=Location("KEY"))


def _check_sense(event: KeyEvent, trust: LedgerTrust) -> None:
    """An event that would change nothing, or names an entry that the log does not have yet, is a mistake."""
    before = trust.history.ended.get(event.key_sha256)
    if event.event == "retire" and before is not None:
        raise RefusedError(Code.KEY_REVOKED, f"entry {before} took this key away", fix="nothing is left to do; revoke it if it was lost")
    if event.since_index is not None and event.since_index >= trust.index:
        message = f"the log has {trust.index} entries, and no entry {event.since_index}"
        raise InputError(
            Code.UNKNOWN_NAME, message, at=Location("--since-entry"), fix="name the first entry that its thief may have signed"
        )


def _check_rights(event: KeyEvent, submission: Submission, trust: LedgerTrust, signers: Sequence[Signer]) -> None:
    signatures = tuple(Signature(item.signature, item.key_sha256.hex()) for item in submission.signatures)
    envelope = Envelope(submission.payload, submission.payload_type, signatures, "the key event just made")
    results = Verifier(trust).judge_signatures(envelope, now())
    code = trust.history.may_tell(event, results)
    if code in (Code.OK, Code.THRESHOLD):
        return
    bad = next((result.code for result in results if result.code is not Code.OK), code)
    if bad is Code.KEY_REVOKED:
        message, fix = "the key that signs this was itself retired or revoked", "sign with another: --key"
        raise RefusedError(bad, message, at=Location(signers[0].public.source), fix=fix)
    names = ", ".join(sorted({result.principal for result in results if result.principal})) or signers[0].public.source
    raise RefusedError(bad, f"{names} may not {event.event} a key of {event.principal} ({KEY_EVENT})", fix=_MAKES_IT)


def _taken(workspace: Workspace, policy: TrustPolicy, event: KeyEvent, index: int, *, duplicate: bool) -> TakenKey:
    with open_reader(workspace) as reader:
        history = KeyHistory(reader.notices(), policy)
        told = next(item for item in history.told if item.index == index)
        signed = [entry for entry in reader.find_signer(event.key_sha256) if entry < reader.head.size]
    standing = {entry: history.standing(event.key_sha256, entry) for entry in signed}
    kept, suspect = (tuple(entry for entry, code in standing.items() if code is wanted) for wanted in (Code.OK, Code.SUSPECT))
    key = Digest(DigestKind.SPKI, event.key_sha256.hex())
    return TakenKey(event, key, index, duplicate, told.code is Code.OK, kept, suspect)
