"""`gate --record`: a decision with everything that it takes to make it again, and its summary for those who verify no more than that."""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from countermark.actions.appending import Attester, append
from countermark.actions.clock import made_now
from countermark.actions.workspace import Workspace
from countermark.attestations.codes import Code
from countermark.attestations.envelope import Envelope
from countermark.attestations.errors import UsageError
from countermark.attestations.keys import Signer
from countermark.attestations.located import JsonValue
from countermark.attestations.predicate_types import VERIFICATION_SUMMARY, PredicateName
from countermark.attestations.statement import Statement, Subject
from countermark.attestations.times import Instant
from countermark.contracts.decision import Decision
from countermark.contracts.summary import verification_summary
from countermark.ledger.leaf import EntryKind
from countermark.ledger.read import Head
from countermark.ledger.submission import DOCUMENT_TYPE, Receipt, Submission


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    """A decision in the ledger, with the receipts and envelopes of it and of its summary; the head is that of the ledger after them."""

    decision: Decision
    receipts: tuple[Receipt, Receipt]
    envelope: Envelope
    summary: Envelope
    head: Head


def record_decisions(
    workspace: Workspace, decisions: Sequence[Decision], documents: Sequence[bytes], key: str | None
) -> list[RecordedDecision]:
    """Append the documents that the decisions were made by, once each, then each decision with its summary, in one transaction.

    `UsageError` for a decision whose effective time was chosen by hand: it would stand in the log as if it had been made then.
    """
    for decision in decisions:
        if "AT_OVERRIDE" in decision.notes:
            fix = "leave --effective-time away, or do not record"
            raise UsageError(Code.CLOCK, "a decision for a time of your choice is not recorded", fix=fix)
    attester = Attester.of(workspace, "gate", key)
    kept = [Submission.sign(EntryKind.POLICY, DOCUMENT_TYPE, data, attester.signer) for data in dict.fromkeys(documents)]
    made = [[attester.attest(statement) for statement in _statements(decision, attester.at)] for decision in decisions]
    receipts, head = append(workspace, [*kept, *(item.submission for pair in made for item in pair)])
    placed = iter(receipts[len(kept) :])
    recorded: list[RecordedDecision] = []
    for decision, (told, summary) in zip(decisions, made, strict=True):
        places = (next(placed), next(placed))
        recorded.append(RecordedDecision(decision, places, told.envelope, _for_slsa_verifier(summary.envelope, attester.signer), head))
    return recorded


def _for_slsa_verifier(envelope: Envelope, signer: Signer) -> Envelope:
    """The envelope with the key id that slsa-verifier takes where none is given: SHA-256 of the base64 of the public key."""
    keyid = hashlib.sha256(base64.b64encode(signer.public.spki)).hexdigest()
    return replace(envelope, signatures=tuple(replace(item, keyid=keyid) for item in envelope.signatures))


def _statements(decision: Decision, instant: Instant) -> tuple[Statement, Statement]:
    subject = (Subject.of(decision.subject),)
    predicate: dict[str, JsonValue] = {"core": decision.core(), "made": made_now()}
    summary = verification_summary(decision, instant.whole_seconds())
    return Statement(subject, PredicateName.DECISION.uri, predicate), Statement(subject, VERIFICATION_SUMMARY, summary)
