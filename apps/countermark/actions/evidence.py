"""From ledger to evidence: everything that the gate must see about one image, each entry proven and each signature judged.

What speaks against an image is a notice, and notices are walked from the signed head by hash. What speaks for it is found through the
derived rows; a row that is missing there can only deny.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Self

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import CountermarkError, InputError, Location, RefusedError
from countermark.attestations.located import as_list, as_object
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import Statement
from countermark.attestations.times import Instant
from countermark.attestations.trust import TrustPolicy
from countermark.attestations.verifier import PolicyTrust, SignatureResult, Verifier
from countermark.contracts.aliases import Names
from countermark.contracts.evidence import Evidence, Record
from countermark.contracts.relevance import Relevance
from countermark.ledger.key_history import KeyHistory
from countermark.ledger.leaf import EntryKind
from countermark.ledger.read import Entry, LedgerReader

if TYPE_CHECKING:
    from countermark.attestations.bundle_verifier import BundleVerifier

STRANGERS: Final = 256
"""How many receipts are read, newest first, to tell which of other images match a demand that nothing about this one meets."""


@dataclass(frozen=True, slots=True)
class _Notice:
    """A notice that is a statement, before anybody has looked who signed it."""

    entry: Entry
    statement: Statement

    @classmethod
    def of(cls, entry: Entry) -> Self | None:
        """The statement of a notice; what is none, whatever its bytes look like, was said by nobody."""
        statement = entry.statement
        return cls(entry, statement) if statement else None

    @property
    def index(self) -> int:
        """Its entry."""
        return self.entry.index

    @property
    def payload(self) -> Digest:
        """What a later statement names it by."""
        return self.entry.digest


class Gatherer:
    """Collects the records that a decision about an image rests on, from one verified view of a ledger at one head.

    Each entry is proven and judged once, however many images are asked about.
    """

    def __init__(self, reader: LedgerReader, trust: TrustPolicy) -> None:
        self.reader = reader
        self.trust = trust
        self._known_keys = PolicyTrust(trust)
        self._verifier = Verifier(self._known_keys)
        self._judged: dict[int, Record | None] = {}

    @cached_property
    def notices(self) -> tuple[Entry, ...]:
        """Every notice, oldest first."""
        return self.reader.notices()

    @cached_property
    def keys(self) -> KeyHistory:
        """What the log says of the keys; key events are notices, so that none can go missing."""
        return KeyHistory(self.notices, self.trust)

    def gather(self, subject: Digest, platform: str | None = None) -> tuple[tuple[Record, ...], int]:
        """The records that bear on an image, in the order of the log, and the number of notices that were walked."""
        names = Names.of(subject, Evidence.of(self._bearing_on(subject), self.trust), platform)
        found = {record.index: record for record in self._waivers}
        for digest in sorted({subject} | names.passes | names.rejections):
            self._add(found, self.reader.find_subject(digest.kind, digest.hex))
        return tuple(sorted(self._with_what_they_rest_on(subject, found), key=lambda record: record.index)), len(self.notices)

    @cached_property
    def strangers(self) -> tuple[Record, ...]:
        """The newest receipts of the ledger, of whatever image: none of their results transfers, but a person is told of them."""
        found = self.reader.statements(PredicateName.QUALIFICATION_RECEIPT.uri)
        return self.statements([index for index in found if index < self.reader.head.size][-STRANGERS:])

    def records(self, indices: Iterable[int]) -> tuple[Record, ...]:
        """The records of these entries, each proven; those that the log had not admitted yet, where it was rewound, are left out.

        `InputError` for an attestation that is no statement: a kept file, a link of before attestations.
        """
        found = (entry for entry in self._admitted(indices) if entry.leaf.kind is EntryKind.ATTESTATION)
        return tuple(self.judge(entry) or self._record(entry) for entry in found)

    def statements(self, indices: Iterable[int]) -> tuple[Record, ...]:
        """As `records`, without those that are no statement."""
        found = (self._known(index) for index in indices if index < self.reader.head.size)
        return tuple(record for record in found if record)

    def _known(self, index: int) -> Record | None:
        return self._judged[index] if index in self._judged else self.judge(self.reader.entry(index))

    @cached_property
    def _noticed(self) -> Relevance[Record | _Notice]:
        """All notices are read for what they are about; the signatures of those alone are verified that bear on a question."""
        return Relevance(notice for entry in self.notices if (notice := _Notice.of(entry)))

    def _bearing_on(self, subject: Digest, found: Iterable[Record] = ()) -> list[Record]:
        """What bears on a subject of the notices and of these."""
        records = (item if isinstance(item, Record) else self.judge(item.entry) for item in self._noticed.to(subject, found))
        return [record for record in records if record]

    @cached_property
    def _waivers(self) -> tuple[Record, ...]:
        """Every waiver of the ledger: those of other images too, since a decision tells whether one of them may have been meant."""
        return self.statements(self.reader.statements(PredicateName.WAIVER.uri))

    def _with_what_they_rest_on(self, subject: Digest, found: dict[int, Record]) -> list[Record]:
        """What bears on the subject of the notices and of these, with the operands from which receipts are recomputed, and theirs."""
        looked_up: set[Digest] = set()
        while True:
            records = self._bearing_on(subject, found.values())
            wanted = set(_rests_on(records)) - looked_up
            if not wanted:
                return records
            looked_up |= wanted
            for digest in sorted(wanted):
                self._add(found, self.reader.find_payload(digest.raw))

    def _add(self, records: dict[int, Record], indices: Iterable[int]) -> None:
        records.update((record.index, record) for record in self.statements(index for index in indices if index not in records))

    def _admitted(self, indices: Iterable[int]) -> Iterator[Entry]:
        return (self.reader.entry(index) for index in indices if index < self.reader.head.size)

    def judge(self, entry: Entry) -> Record | None:
        """A proven entry as evidence; none when it is no statement, or one that cannot be read."""
        if entry.index not in self._judged:
            self._judged[entry.index] = None
            if entry.leaf.kind is EntryKind.ATTESTATION:
                with suppress(InputError):
                    self._judged[entry.index] = self._record(entry)
        return self._judged[entry.index]

    def _record(self, entry: Entry) -> Record:
        """An entry as evidence: who signed it, in which roles they may, and why it does not count if it does not."""
        envelope, source = entry.envelope, f"entry {entry.index}"
        if not envelope.holds_statement:
            message = f"it is {envelope.payload_type}, which is no statement"
            raise InputError(Code.PAYLOAD_TYPE, message, at=Location(source), fix="name an entry that is a statement")
        statement = Statement.parse(entry.payload, source)
        signers, code = signers_of(self.signatures(entry))
        roles: tuple[str, ...] = ()
        if code is Code.OK:
            roles, code = self._roles(statement.predicate_type, signers)
        if code is Code.THRESHOLD:
            roles, code = self._roles(statement.predicate_type, self._signers_together(entry))
        return Record(entry.index, entry.digest, statement, signers, roles, Instant.from_ms(entry.leaf.admitted_ms), code)

    def signatures(self, entry: Entry) -> tuple[SignatureResult, ...]:
        """What came of the signatures of an entry of whatever kind: by the trust policy for when it was admitted, and by the log."""
        admitted = Instant.from_ms(entry.leaf.admitted_ms)
        bundled = any(entry.leaf.bundle_sha256)
        results = self._bundled(entry) if bundled else self._verifier.judge_signatures(entry.envelope, admitted)
        return tuple(self.keys.judge(result, entry.index) for result in results)

    def _bundled(self, entry: Entry) -> tuple[SignatureResult, ...]:
        """The signatures of an entry that came as a sigstore bundle: the certificate in it says whose they are."""
        data = self.reader.payload(entry.leaf.bundle_sha256)
        try:
            found = self._bundles.verify(data, f"entry {entry.index}")
        except CountermarkError as error:
            return (SignatureResult(entry.leaf.signatures[0].signature, None, error.code),)
        return found.verified.results if found.verified.payload == entry.payload else ()

    @cached_property
    def _bundles(self) -> "BundleVerifier":
        """Made for the first bundle only, since it brings the sigstore package."""
        from countermark.actions.verify_bundle import policy_verifier

        return policy_verifier(self.trust, joining=True)

    def _roles(self, predicate_type: str, principals: Iterable[str]) -> tuple[tuple[str, ...], Code]:
        try:
            return self._known_keys.authorise(predicate_type, principals), Code.OK
        except RefusedError as error:
            return (), error.code

    def _signers_together(self, entry: Entry) -> set[str]:
        """Everybody whose signature counts over this payload as a statement, in whichever entry it stands."""
        same = [other for other in self._admitted(self.reader.find_payload(entry.digest.raw)) if other.is_statement]
        judged = [signers_of(self.signatures(other)) for other in same]
        return {signer for signers, code in judged if code is Code.OK for signer in signers}


def signers_of(results: Sequence[SignatureResult]) -> tuple[tuple[str, ...], Code]:
    """The principals whose signatures count; where none does, those whose signatures there are, and why they do not count."""
    good = {result.principal for result in results if result.code is Code.OK and result.principal}
    named = good or {result.principal for result in results if result.principal}
    bad = next((result.code for result in results if result.code is not Code.OK), Code.SIGNER_UNTRUSTED)
    return tuple(sorted(named)), Code.OK if good else bad


def _rests_on(records: Iterable[Record]) -> Iterator[Digest]:
    """The payloads that receipts and rejections rest on, and the test results that an image statement names."""
    for record in records:
        predicate = as_object(record.statement.predicate)
        for item in (*as_list(predicate.get("rests_on")), *as_list(predicate.get("test_results"))):
            digest = Digest.stated(item)
            if digest and digest.kind is DigestKind.PAYLOAD:
                yield digest
