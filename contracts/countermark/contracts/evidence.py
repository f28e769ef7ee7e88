"""What the gate is given to judge by: the ledger's records about an image, as a closed world at one head.

The caller hands over every notice of the ledger and every record that names the image, one of its aliases, or what a receipt rests on.
Here they are put in order, entries of one payload joined, and asked the questions that the status table asks of all of them: does it
count, was it taken back.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.digests import Digest
from countermark.attestations.located import JsonValue, as_object
from countermark.attestations.outcomes import outcome_of
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import Statement
from countermark.attestations.times import Instant
from countermark.attestations.trust import TrustPolicy

APPROVER: Final = "approver"
"""The role that may lift what speaks against an image."""
_GOOD_SIGNATURE: Final = frozenset({Code.OK, Code.THRESHOLD, Code.ROLE, Code.SIGNER_UNTRUSTED})
"""The codes that leave the signature itself good: it is the signer's right to make the statement alone that is missing."""
_BAD_SIGNATURE: Final = frozenset({Code.SIG_INVALID, Code.SIG_UNVERIFIABLE})


@dataclass(frozen=True, slots=True)
class Record:
    """One entry of the ledger.

    `signers` are the principals whose signatures count; where none does, those whose signatures it carries, and `code` says why they
    do not (a revoked key). They must not be mixed: a threshold is counted over them. `roles` are those in which they may make the
    statement. `admitted` is when the ledger took it in.
    """

    index: int
    payload: Digest
    statement: Statement
    signers: tuple[str, ...]
    roles: tuple[str, ...]
    admitted: Instant
    code: Code = Code.OK


@dataclass(frozen=True, slots=True)
class Entry:
    """All records of one payload: another signer's envelope over the same bytes is another entry of the same statement.

    `index` is the lowest of their indexes and `last` the highest. `roles` are those in which its signers together may make it; without
    one it says nothing *for* an image, and `code` is why.
    `heard` says that one of them has any role at all, which is enough to speak *against* an image, whatever became of the key since.
    `vouching` are the principals whose signatures hold, each of whom stands behind the statement whether or not it has a role.
    """

    index: int
    last: int
    payload: Digest
    statement: Statement
    signers: tuple[str, ...]
    roles: frozenset[str]
    heard: bool
    admitted: Instant
    code: Code
    vouching: frozenset[str]

    @property
    def predicate(self) -> dict[str, JsonValue]:
        """The predicate, empty where there is none."""
        return as_object(self.statement.predicate)

    @property
    def signer(self) -> str:
        """Who signed it, for people."""
        return ", ".join(self.signers) or "unknown"

    @property
    def outcome(self) -> Outcome | None:
        """The outcome that its own measurements compute to."""
        return outcome_of(self.statement.predicate_type, self.statement.predicate)

    def counts_as(self, *roles: str) -> bool:
        """Whether it was made in one of these roles, or in any role where none is given."""
        return bool(self.roles.intersection(roles) if roles else self.roles)

    def is_about(self, digest: Digest) -> bool:
        """Whether a subject is exactly this digest, its kind included."""
        return any(digest in subject.typed for subject in self.statement.subjects)

    def may_be_about(self, digest: Digest) -> bool:
        """As `is_about`, or a subject has the same hex and does not say of which kind it is."""
        return self.is_about(digest) or any(
            digest.hex == subject.digests.get(digest.algorithm) and not any(found.hex == digest.hex for found in subject.typed)
            for subject in self.statement.subjects
        )


@dataclass(frozen=True)
class Evidence:
    """The entries in the order of their index, and the trust policy that they are judged by."""

    entries: tuple[Entry, ...]
    trust: TrustPolicy

    @classmethod
    def of(cls, records: Iterable[Record], trust: TrustPolicy) -> Self:
        """Join the records of each payload. Their order, and how often one is given, make no difference."""
        once = {(record.index, record.payload): record for record in records}
        grouped: dict[Digest, list[Record]] = {}
        for place in sorted(once):
            grouped.setdefault(once[place].payload, []).append(once[place])
        apart = {role: conflicted(trust, role) for role in trust.roles}
        entries = [_joined(group, trust, apart) for group in grouped.values()]
        return cls(tuple(sorted(entries, key=lambda entry: entry.index)), trust)

    def of_type(self, name: PredicateName) -> tuple[Entry, ...]:
        """The entries of one of our predicate types."""
        return self.of_uri(name.uri)

    def of_uri(self, predicate_type: str) -> tuple[Entry, ...]:
        """The entries of a predicate type."""
        return tuple(self._by_type.get(predicate_type, ()))

    def find(self, payload: str) -> Entry | None:
        """The entry of a payload digest."""
        return self._by_payload.get(payload)

    def taken_back(self, entry: Entry) -> Entry | None:
        """What takes back a statement that speaks *for* an image: a retraction, supersession or rejection of it by anyone who is heard."""
        retracted, superseded = self._against(PredicateName.RETRACTION, entry), self._against(PredicateName.SUPERSESSION, entry)
        rejected = [other for other in self._against(PredicateName.REJECTION, entry) if not self.lifted(other)]
        return next((other for other in (*retracted, *superseded, *rejected) if other.heard), None)

    def lifted(self, entry: Entry) -> Entry | None:
        """What lifts a statement that speaks *against* an image.

        Only a retraction does, made as approver by another principal, with a reason, where people are not all one operator, and not
        taken back itself. What is lifted by supersession or by a revoked key would be lifted without anyone answering for it.
        """
        return next((other for other in self._against(PredicateName.RETRACTION, entry) if self._may_lift(other, entry)), None)

    def _may_lift(self, retraction: Entry, entry: Entry) -> bool:
        reason = retraction.predicate.get("reason")
        others = set(retraction.signers) - set(entry.signers) - conflicted(self.trust, APPROVER).keys()
        again = any(other.heard for other in self._against(PredicateName.RETRACTION, retraction))
        return (
            retraction.counts_as(APPROVER)
            and self.trust.roles[APPROVER].met_by(others)
            and not again
            and not self.trust.single_operator
            and isinstance(reason, str)
            and bool(reason.strip())
            and retraction.is_about(entry.payload)
        )

    def _against(self, name: PredicateName, entry: Entry) -> list[Entry]:
        """The statements of a type that may be about another statement."""
        found = self._about_payloads.get((name.uri, entry.payload.hex), ())
        return [other for other in found if other.may_be_about(entry.payload)]

    @cached_property
    def _about_payloads(self) -> dict[tuple[str, str], list[Entry]]:
        """What speaks of other statements, by predicate type and the hex of the statement: a ledger may hold many of both."""
        found: dict[tuple[str, str], list[Entry]] = {}
        for name in (PredicateName.RETRACTION, PredicateName.SUPERSESSION, PredicateName.REJECTION):
            for entry in self.of_type(name):
                for hexed in {hexed for subject in entry.statement.subjects for hexed in subject.digests.values()}:
                    found.setdefault((name.uri, hexed), []).append(entry)
        return found

    @cached_property
    def _by_type(self) -> dict[str, list[Entry]]:
        found: dict[str, list[Entry]] = {}
        for entry in self.entries:
            found.setdefault(entry.statement.predicate_type, []).append(entry)
        return found

    @cached_property
    def _by_payload(self) -> dict[str, Entry]:
        return {str(entry.payload): entry for entry in self.entries}


def _joined(group: list[Record], trust: TrustPolicy, apart: Mapping[str, Mapping[str, str]]) -> Entry:
    first = group[0]
    good = {signer for record in group if record.code in _GOOD_SIGNATURE for signer in record.signers}
    roles = {role for record in group if record.code is Code.OK for role in record.roles}
    roles |= {role.name for role in trust.makers(first.statement.predicate_type)}
    met = [role for role in roles if role in trust.roles and trust.roles[role].met_by(good)]
    held = frozenset(role for role in met if trust.roles[role].met_by(good - apart[role].keys()))
    signers = {signer for record in group if record.code not in _BAD_SIGNATURE for signer in record.signers}
    heard = any(signer in role.members for role in trust.roles.values() for signer in signers)
    refused = Code.SEPARATION if met else next((record.code for record in group if record.code is not Code.OK), Code.SIGNER_UNTRUSTED)
    code = Code.OK if held else refused
    admitted = min(record.admitted for record in group)
    named = tuple(sorted(good or signers))
    return Entry(first.index, group[-1].index, first.payload, first.statement, named, held, heard, admitted, code, frozenset(good))


def conflicted(trust: TrustPolicy, role: str) -> dict[str, str]:
    """Principals who hold this role and one that must be kept separate from it, and so can act in neither; with that other role."""
    if trust.single_operator or role not in trust.roles:
        return {}
    apart = sorted({other for pair in trust.separate if role in pair for other in pair if other != role})
    members = set(trust.roles[role].members)
    return {name: other for other in apart if other in trust.roles for name in sorted(members & set(trust.roles[other].members))}
