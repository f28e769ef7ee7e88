"""One verified view of a ledger that an auditor's question is asked of.

What is found is proven and its signatures are judged. That nothing is missing is for `verify ledger` to say: the notices alone, all
that speaks against an image, are complete here, because they are walked by hash from the signed head.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Self

from countermark.actions.clock import now
from countermark.actions.evidence import Gatherer, signers_of
from countermark.actions.gate import Asked, Decider, rewind_to
from countermark.actions.past_decisions import PastDecision
from countermark.actions.workspace import Workspace, open_reader
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import CannotTellError, CountermarkError, InputError
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import Statement, Subject
from countermark.attestations.times import Instant
from countermark.attestations.trust import TrustPolicy
from countermark.contracts.decision import Decision, DecisionHead
from countermark.contracts.evidence import Evidence, Record
from countermark.contracts.policy import ReleasePolicy
from countermark.ledger.key_history import KeyHistory
from countermark.ledger.leaf import EntryKind
from countermark.ledger.read import Entry, LedgerReader


@dataclass(frozen=True, slots=True)
class Signed:
    """Who signed an entry: principals whose signatures count, or if none does those it names; keys; and why it does not count."""

    principals: tuple[str, ...]
    keys: tuple[Digest, ...]
    code: Code

    def __str__(self) -> str:
        return ", ".join(self.principals) or ", ".join(f"{key.kind}:{key.hex[:12]}…" for key in self.keys) or "nobody"


class View:
    """A ledger at one head, judged by one trust policy for one time."""

    def __init__(self, reader: LedgerReader, trust: TrustPolicy, effective_time: Instant) -> None:
        self.reader = reader
        self.trust = trust
        self.effective_time = effective_time
        self._gatherer = Gatherer(reader, trust)

    @property
    def notices(self) -> tuple[Entry, ...]:
        """Every notice, oldest first."""
        return self._gatherer.notices

    @property
    def keys(self) -> KeyHistory:
        """What the key events of the log leave of each key."""
        return self._gatherer.keys

    @property
    def head(self) -> DecisionHead:
        """The head, as decisions name it."""
        head = self.reader.head
        return DecisionHead(head.origin, head.size, head.root.hex(), len(self.notices), None)

    def entries(self, indices: Iterable[int]) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
        """These entries in the order of the log, proven, and what is said of those whose payload is not here."""
        found: list[Entry] = []
        unreadable: list[str] = []
        for index in self._admitted(indices):
            try:
                found.append(self.reader.entry(index))
            except CannotTellError as error:
                unreadable.append(_unreadable(index, error))
        return tuple(found), tuple(unreadable)

    def records(self, indices: Iterable[int]) -> tuple[tuple[Record, ...], tuple[str, ...]]:
        """The statements of these entries in the order of the log, and what is said of those that cannot be read.

        `TamperError` for an entry that the log did not sign.
        """
        found: list[Record] = []
        unreadable: list[str] = []
        for index in self._admitted(indices):
            try:
                found += self._gatherer.records([index])
            except (InputError, CannotTellError) as error:
                unreadable.append(_unreadable(index, error))
        return tuple(found), tuple(unreadable)

    def decisions(self) -> tuple[tuple[PastDecision, ...], tuple[str, ...]]:
        """Every decision of the ledger in its order, and what is said of those that cannot be read."""
        records, unreadable = self.records(self.reader.statements(PredicateName.DECISION.uri))
        return tuple(PastDecision.of(record) for record in records), unreadable

    def _admitted(self, indices: Iterable[int]) -> list[int]:
        """The indices in order, without those beyond the head of a past time."""
        return sorted(index for index in set(indices) if index < self.reader.head.size)

    def evidence(self, subject: Digest, platform: str | None = None) -> Evidence:
        """What the gate would judge a subject by."""
        records, _ = self._gatherer.gather(subject, platform)
        return Evidence.of(records, self.trust)

    def signed(self, entry: Entry) -> Signed:
        """Who signed an entry of whatever kind, judged for when it was admitted; a statement also by whether they may make it."""
        keys = tuple(Digest(DigestKind.SPKI, item.key_sha256.hex()) for item in entry.leaf.signatures)
        record = self._gatherer.judge(entry)
        if record:
            return Signed(record.signers, keys, record.code)
        principals, code = signers_of(self._gatherer.signatures(entry))
        return Signed(principals, keys, code)

    def decide(self, subject: Digest, policy: ReleasePolicy, without: Collection[Digest] = ()) -> Decision:
        """The gate's decision at this head; `without` are statements that are taken as if they had been taken back."""
        taken_back = tuple(self._taking_back(payload, n) for n, payload in enumerate(sorted(without)))
        return Decider(self._gatherer, policy, self.effective_time).decide(subject, taken_back)

    def _taking_back(self, payload: Digest, number: int) -> Record:
        """A retraction that nobody made. It gives no reason, so that it takes away what speaks for an image and lifts no rejection."""
        statement = Statement((Subject.of(payload),), PredicateName.RETRACTION.uri, {"reason": "", "replacement": None})
        anybody = next((member for role in self.trust.roles.values() for member in role.members), "")
        digest = Digest.of(DigestKind.PAYLOAD, statement.encode())
        return Record(self.reader.head.size + number, digest, statement, (anybody,), (), self.effective_time)


@dataclass(frozen=True, slots=True)
class When:
    """The time that a question is judged for, and the past time whose head it is asked of: by default now, and today's head."""

    effective_time: Instant | None = None
    at: Instant | None = None

    @classmethod
    def of(cls, asked: Asked) -> Self:
        """As the gate would take it."""
        return cls(asked.effective_time, asked.at)


TODAY: Final = When()


@contextmanager
def open_view(workspace: Workspace, when: When, trust: TrustPolicy | None = None) -> Iterator[View]:
    """A view of the ledger, judged by `trust`, the ledger's own by default.

    Raises `CannotTellError` without a trust policy or ledger, `RefusedError` for another log than it believes, `NothingError` for a
    time before the ledger began, `TamperError`.
    """
    judged_by = trust or workspace.trust()
    with open_reader(workspace, judged_by) as reader:
        if when.at:
            rewind_to(reader, when.at)
        yield View(reader, judged_by, (when.at or when.effective_time or now()).whole_seconds())


def kind_of(entry: Entry) -> str:
    """What an entry is, in a word: the short name of its predicate, the URI of another's, or the kind of the entry."""
    statement = entry.statement
    if statement:
        return short_type(statement.predicate_type)
    return "document" if entry.leaf.kind is EntryKind.POLICY else entry.leaf.kind.name.lower().replace("_", "-")


def _unreadable(index: int, error: CountermarkError) -> str:
    return f"what entry {index} says: {error.message} [{error.code}]"


def short_type(predicate_type: str) -> str:
    """The short name of one of our predicates, or the URI of another's."""
    return PredicateName.from_uri(predicate_type) or predicate_type
