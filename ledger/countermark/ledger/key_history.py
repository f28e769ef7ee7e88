"""What the key events of a log say of its keys: replayed in the order of the log, so that validity goes by index and by no clock.

The trust policy says who may be believed; the log can only take away. A *retired* key is good for what the log held before. A *revoked*
key was stolen or lost: entries that its finder may have signed are SUSPECT, and none counts any more. Both are final, so that no later
event, and no later loss of the key that signed one, gives anything back. An `add` takes nothing away and gives nothing.

What takes away counts from the entry on at which it was signed by enough of those who may: a role whose `makes` lists `key-event`
(where no role does: the approvers), or the very key that is taken away. Signatures of several entries of one event are counted together.
An `add` may be signed by anybody of the trust policy.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.errors import InputError, RefusedError
from countermark.attestations.keys import PublicKey
from countermark.attestations.predicate_types import predicate_uri
from countermark.attestations.times import Instant
from countermark.attestations.trust import TrustPolicy
from countermark.attestations.verifier import PolicyTrust, SignatureResult, Verifier
from countermark.ledger.key_event import KeyEvent
from countermark.ledger.leaf import EntryKind
from countermark.ledger.read import Entry

KEY_EVENT: Final = predicate_uri("key-event")
"""What `makes` of a trust policy lists for the roles that add, retire and revoke keys; an event has no predicate type."""

_USUAL_ROLE: Final = "approver"


@dataclass(frozen=True, slots=True)
class ToldEvent:
    """A key event of the log. `code` is OK if it counts from entry `index` on, else why it does not."""

    index: int
    event: KeyEvent
    code: Code

    @property
    def suspect_from(self) -> int | None:
        """The first entry that is suspect when the key signed it; none when the event makes none suspect."""
        return (self.event.since_index or 0) if self.event.event == "revoke" else None

    def __str__(self) -> str:
        event = self.event
        since = f", and what it signed from entry {self.suspect_from} on is suspect" if self.suspect_from is not None else ""
        why = f": {event.reason}" if event.reason else ""
        verb = {"add": "added", "retire": "retired", "revoke": "revoked"}[event.event]
        return f"entry {self.index}: the key spki:sha256:{event.key_sha256.hex()} of {event.principal} was {verb}{since}{why}"


class KeyHistory:
    """The key events of a log under one trust policy, and what they leave of each key."""

    def __init__(self, entries: Iterable[Entry], policy: TrustPolicy) -> None:
        self.told: list[ToldEvent] = []
        self._policy = policy
        self._verifier = Verifier(PolicyTrust(policy))
        self._signed: dict[Digest, list[tuple[int, SignatureResult]]] = {}
        self._ended: dict[bytes, int] = {}
        self._suspect: dict[bytes, int] = {}
        for entry in entries:
            self._take(entry)

    @property
    def ended(self) -> Mapping[bytes, int]:
        """The keys that were retired or revoked, by fingerprint, each with the index of the event that was the first to do so."""
        return self._ended

    def standing(self, key: bytes, index: int) -> Code:
        """Whether a signature by the key with this fingerprint counts in entry `index`: OK, SUSPECT, or KEY_REVOKED."""
        if index > self._ended.get(key, index):
            return Code.KEY_REVOKED
        return Code.SUSPECT if index >= self._suspect.get(key, index + 1) else Code.OK

    def judge(self, result: SignatureResult, index: int) -> SignatureResult:
        """A signature of entry `index` that the trust policy has judged, as the log leaves it."""
        if result.code is not Code.OK or result.key is None:
            return result
        return replace(result, code=self.standing(result.key.fingerprint.raw, index))

    def may_tell(self, event: KeyEvent, results: Iterable[SignatureResult]) -> Code:
        """Whether these signatures suffice for an event: OK, THRESHOLD when more must sign, SIGNER_UNTRUSTED."""
        good = [result for result in results if result.code is Code.OK and result.key]
        if any(event.event == "add" or (result.key and result.key.fingerprint.raw == event.key_sha256) for result in good):
            return Code.OK
        try:
            PolicyTrust(telling(self._policy)).authorise(KEY_EVENT, [result.principal for result in good if result.principal])
        except RefusedError as error:
            return error.code
        return Code.OK

    def _take(self, entry: Entry) -> None:
        """One entry more; whatever is no key event says nothing of keys."""
        if entry.leaf.kind is not EntryKind.KEY_EVENT:
            return
        try:
            event = KeyEvent.parse(entry.payload)
        except InputError:
            return
        results = self._verifier.judge_signatures(entry.envelope, Instant.from_ms(entry.leaf.admitted_ms))
        together = self._signed.setdefault(entry.digest, [])
        together += ((entry.index, result) for result in results)
        code = self.may_tell(event, [self.judge(result, index) for index, result in together])
        self.told.append(ToldEvent(entry.index, event, self._why(code, [self.judge(result, entry.index) for result in results])))
        if code is Code.OK:
            self._apply(event, entry.index)

    def _why(self, code: Code, results: Iterable[SignatureResult]) -> Code:
        """A signature that does not count says more than that nobody who may has signed."""
        bad = next((result.code for result in results if result.code is not Code.OK), code)
        return bad if code is Code.SIGNER_UNTRUSTED else code

    def _apply(self, event: KeyEvent, index: int) -> None:
        key = event.key_sha256
        if event.event == "add":
            return
        self._ended.setdefault(key, index)
        if event.event == "revoke":
            since = event.since_index or 0
            self._suspect[key] = min(since, self._suspect.get(key, since))


@dataclass(frozen=True, slots=True)
class LedgerTrust:
    """Trust in a policy as the key events of a ledger narrow it, for what is admitted as entry `index`."""

    policy: PolicyTrust
    history: KeyHistory
    index: int

    def keys(self) -> dict[bytes, PublicKey]:
        """Every key of the policy; one that was taken away is known, and does not count."""
        return self.policy.keys()

    def judge(self, result: SignatureResult, at: Instant | None) -> SignatureResult:
        """As the policy judges it, and then the log."""
        return self.history.judge(self.policy.judge(result, at), self.index)

    def authorise(self, predicate_type: str, principals: Iterable[str]) -> tuple[str, ...]:
        """As the policy says."""
        return self.policy.authorise(predicate_type, principals)

    def lacking(self, predicate_type: str, principals: Iterable[str]) -> str | None:
        """As the policy says."""
        return self.policy.lacking(predicate_type, principals)


def telling(policy: TrustPolicy) -> TrustPolicy:
    """The policy, with key events made by the approvers where it lets no role make them."""
    usual = policy.roles.get(_USUAL_ROLE)
    if policy.makers(KEY_EVENT) or usual is None:
        return policy
    return replace(policy, roles={**policy.roles, _USUAL_ROLE: replace(usual, makes=usual.makes | {KEY_EVENT})})
