"""What can be done for a submission before the ledger is locked, and the leaf that it becomes once its place is known."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Self

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, RefusedError
from countermark.attestations.statement import Statement
from countermark.ledger.chains import EntryRows, Row
from countermark.ledger.derive import Derived, derive
from countermark.ledger.incarnation import Incarnation
from countermark.ledger.leaf import NO_HASH, EntryKind, Leaf, LeafSignature
from countermark.ledger.submission import GENESIS_TYPE, Submission
from countermark.ledger.travelling import Travelling


@dataclass(frozen=True, slots=True)
class Prepared(Travelling):
    """A submission with everything that depends on nothing but itself."""

    submission: Submission
    signatures: tuple[LeafSignature, ...]
    payload_sha256: bytes
    bundle_sha256: bytes
    derived: Derived
    dedup: bytes

    @classmethod
    def of(cls, submission: Submission, *, genesis: bool = False, read: Statement | None = None) -> Self:
        """Hash and derive; `read` is what the caller parsed of the payload, if it did.

        `RefusedError` without a signature that verified, `InputError` for a payload that its kind cannot have.
        """
        if not submission.signatures:
            raise RefusedError(Code.SIG_UNVERIFIABLE, "nothing is admitted without a verified signature", fix="have a known key sign it")
        if genesis != (submission.payload_type == GENESIS_TYPE):
            raise InputError(Code.PAYLOAD_TYPE, f"{GENESIS_TYPE} is entry 0 and no other", fix="choose another payload type")
        derived = derive(submission.kind, submission.payload_type, submission.payload, read)
        if submission.kind is EntryKind.KEY_EVENT and derived.key_event is None:
            raise InputError(Code.SCHEMA_INVALID, "the payload of a kind-2 entry is no key event", fix="make it with KeyEvent")
        if submission.kind is EntryKind.INCARNATION:
            Incarnation.parse(submission.payload)
        bundle_sha256 = NO_HASH if submission.bundle is None else sha256(submission.bundle).digest()
        signatures = tuple(sorted(set(submission.signatures)))
        payload_sha256 = sha256(submission.payload).digest()
        made = cls(submission, signatures, payload_sha256, bundle_sha256, derived, b"")
        return cls(submission, signatures, payload_sha256, bundle_sha256, derived, made.leaf(0, NO_HASH).dedup)

    def leaf(self, admitted_ms: int, prev_notice: bytes) -> Leaf:
        """The leaf of this submission, admitted at `admitted_ms` after the notice `prev_notice`."""
        return Leaf(
            kind=self.submission.kind,
            notice=self.derived.notice,
            admitted_ms=admitted_ms,
            prev_notice=prev_notice,
            payload_type=self.submission.payload_type,
            payload_len=len(self.submission.payload),
            payload_sha256=self.payload_sha256,
            bundle_sha256=self.bundle_sha256,
            signatures=self.signatures,
        )

    @property
    def blobs(self) -> dict[bytes, bytes]:
        """What is stored by digest: the payload and the bundle."""
        bundle = self.submission.bundle
        return {self.payload_sha256: self.submission.payload, **({} if bundle is None else {self.bundle_sha256: bundle})}

    @property
    def rows(self) -> EntryRows:
        """The derived rows, in the order of `schema.DERIVED`."""
        unverified = [
            (len(self.signatures) + number, None, None, item.keyid, item.signature, str(item.outcome))
            for number, item in enumerate(self.submission.unverified)
        ]
        subject, signature, statement, key_event = derived_rows(self.derived, self.signatures)
        return subject, [*signature, *unverified], statement, key_event


def derived_rows(derived: Derived, signatures: tuple[LeafSignature, ...]) -> tuple[list[Row], list[Row], list[Row], list[Row]]:
    """The rows that follow from a payload and its leaf's signatures, for each table of `schema.DERIVED`."""
    return (
        list(derived.subjects),
        [(pos, int(item.algorithm), item.key_sha256, None, item.signature, str(Code.OK)) for pos, item in enumerate(signatures)],
        [] if derived.predicate_type is None else [(derived.predicate_type,)],
        [] if derived.key_event is None else [derived.key_event.row],
    )
