"""From a claim to an entry: sign, verify as everybody else will, append."""

from collections.abc import Sequence
from dataclasses import dataclass

from countermark.actions.clock import now
from countermark.actions.workspace import Workspace, open_reader, open_writer
from countermark.attestations.codes import Code
from countermark.attestations.envelope import PAYLOAD_TYPE, Envelope, Signature
from countermark.attestations.keys import Signer
from countermark.attestations.predicate_types import predicate_uri
from countermark.attestations.statement import Statement
from countermark.attestations.verifier import PolicyTrust, VerifiedStatement, Verifier
from countermark.ledger.leaf import EntryKind, LeafSignature
from countermark.ledger.read import Head
from countermark.ledger.submission import Receipt, Submission, UnverifiedSignature
from countermark.recorders.recording import Recording


@dataclass(frozen=True, slots=True)
class Recorded:
    """A statement and where it stands in the ledger; the head is that of the ledger after it."""

    statement: Statement
    receipt: Receipt
    head: Head
    notes: tuple[str, ...] = ()


def sign(statement: Statement, signer: Signer) -> Envelope:
    """The envelope of a statement, signed by one key."""
    envelope = Envelope(statement.encode(), PAYLOAD_TYPE, (), "the statement just made")
    signature = Signature(signer.sign(envelope.pae()), signer.public.fingerprint.hex)
    return Envelope(envelope.payload, PAYLOAD_TYPE, (signature,), envelope.source)


def record(workspace: Workspace, recording: Recording, role: str, key: str | None) -> Recorded:
    """Sign what a recorder read with the role's key (or `key`), verify it under the ledger's own trust policy, and append it."""
    workspace.check_ledger()
    statement = Statement(recording.subjects, predicate_uri(recording.predicate_name), recording.predicate)
    verifier = Verifier(PolicyTrust(workspace.trust()))
    verified = verifier.verify(sign(statement, workspace.signer(role, key)), at=now())
    receipt, head = append(workspace, [submission(verified)])
    return Recorded(statement, receipt[0], head, recording.notes)


def append(workspace: Workspace, submissions: Sequence[Submission]) -> tuple[list[Receipt], Head]:
    """Append in one transaction; the receipts, and the head as it is read back after it."""
    with open_writer(workspace) as writer:
        receipts = writer.append(submissions)
    with open_reader(workspace) as reader:
        return receipts, reader.head


def submission(verified: VerifiedStatement, bundle: bytes | None = None) -> Submission:
    """A verified statement as the ledger takes it: signatures that hold go into the leaf, the others beside the tree."""
    signers = verified.signers
    held = tuple(
        LeafSignature(int(result.algorithm), result.key.fingerprint.raw, result.signature)
        for result in signers
        if result.key and result.algorithm
    )
    others = tuple(
        UnverifiedSignature(result.keyid, result.signature, result.code if result.code is not Code.OK else Code.DUPLICATE)
        for result in verified.results
        if result not in signers
    )
    return Submission(EntryKind.ATTESTATION, verified.payload_type, verified.payload, tuple(sorted(held)), others, bundle)
