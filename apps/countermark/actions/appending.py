"""From a claim to an entry: sign, verify as everybody else will, append."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from countermark.actions.clock import now
from countermark.actions.workspace import Workspace, admitting_trust, open_reader, open_writer
from countermark.attestations.codes import Code
from countermark.attestations.envelope import PAYLOAD_TYPE, Envelope, Signature
from countermark.attestations.keys import Signer
from countermark.attestations.located import as_list, as_object
from countermark.attestations.predicate_types import PredicateName, predicate_uri
from countermark.attestations.statement import Statement
from countermark.attestations.times import Instant
from countermark.attestations.verifier import SignatureResult, VerifiedStatement, Verifier, holding
from countermark.ledger.key_history import LedgerTrust
from countermark.ledger.leaf import EntryKind, LeafSignature
from countermark.ledger.read import Head
from countermark.ledger.submission import Receipt, Submission, UnverifiedSignature
from countermark.recorders.recording import Recording

FILE_TYPE = "application/vnd.countermark.file"
"""The payload type of a file that is kept as it is."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A statement and where it stands in the ledger; the head is that of the ledger after it."""

    statement: Statement
    receipt: Receipt
    head: Head
    notes: tuple[str, ...] = ()

    @property
    def proven_aliases(self) -> list[str]:
        """The other digests of an image that its bytes prove."""
        aliases = map(as_object, as_list(as_object(self.statement.predicate).get("aliases")))
        return [str(alias.get("digest")) for alias in aliases if alias.get("proven")]


@dataclass(frozen=True, slots=True)
class Attestation:
    """A statement, its envelope, and what of it goes into the ledger; `lacking` says who else must sign the same payload, if anybody."""

    statement: Statement
    envelope: Envelope
    submission: Submission
    lacking: str | None = None


@dataclass(frozen=True, slots=True)
class Attester:
    """Signs as one role at one time, and verifies under the ledger's own trust policy, as everybody else will."""

    signer: Signer
    trust: LedgerTrust
    verifier: Verifier
    at: Instant

    @classmethod
    def of(cls, workspace: Workspace, role: str, key: str | None) -> Self:
        """Who signs with the role's key beside the ledger, or with `key`."""
        workspace.check_ledger()
        policy = workspace.trust()
        signer = workspace.signer(role, key)
        trust = admitting_trust(workspace, policy)
        return cls(signer, trust, Verifier(trust), now())

    def check(self, predicate: PredicateName) -> None:
        """Refuse now what `attest` would refuse later: this signer, for such a statement. For work that takes long. `RefusedError`."""
        self.verifier.check_signer(self.signer.public, predicate.uri, at=self.at)

    def attest(self, statement: Statement) -> Attestation:
        """The statement, signed; `RefusedError` when the trust policy does not let this signer make it, not even with others."""
        envelope = sign(statement, self.signer)
        verified = self.verifier.verify(envelope, at=self.at)
        lacking = None if verified.roles else self.trust.lacking(statement.predicate_type, verified.principals)
        return Attestation(statement, envelope, submission(verified), lacking)

    def attest_to(self, recording: Recording) -> Attestation:
        """What a recorder read, as a signed statement."""
        return self.attest(Statement(recording.subjects, predicate_uri(recording.predicate_name), recording.predicate))


def sign(statement: Statement, signer: Signer) -> Envelope:
    """The envelope of a statement, signed by one key."""
    envelope = Envelope(statement.encode(), PAYLOAD_TYPE, (), "the statement just made")
    signature = Signature(signer.sign(envelope.pae()), signer.public.fingerprint.hex)
    return Envelope(envelope.payload, PAYLOAD_TYPE, (signature,), envelope.source)


def record(workspace: Workspace, recording: Recording, role: str, key: str | None) -> Recorded:
    """Sign what a recorder read with the role's key (or `key`), verify it under the ledger's own trust policy, and append it."""
    made = Attester.of(workspace, role, key).attest_to(recording)
    (receipt,), head = append(workspace, [made.submission])
    waits = (f"{made.lacking}: it speaks for nothing before others sign the same payload",) if made.lacking else ()
    return Recorded(made.statement, receipt, head, (*recording.notes, *waits))


def append(workspace: Workspace, submissions: Sequence[Submission]) -> tuple[list[Receipt], Head]:
    """Append in one transaction; the receipts, and the head as it is read back after it."""
    with open_writer(workspace) as writer:
        receipts = writer.append(submissions)
    with open_reader(workspace) as reader:
        return receipts, reader.head


def submission(verified: VerifiedStatement, bundle: bytes | None = None) -> Submission:
    """A verified statement as the ledger takes it, with the bundle that it came in."""
    return judged_submission(verified.payload_type, verified.payload, verified.results, bundle)


def judged_submission(payload_type: str, payload: bytes, results: Sequence[SignatureResult], bundle: bytes | None = None) -> Submission:
    """A payload whose signatures were judged: those that hold go into the leaf, the others beside the tree."""
    signers = holding(results)
    held = (
        LeafSignature(int(result.algorithm), result.key.fingerprint.raw, result.signature)
        for result in signers
        if result.key and result.algorithm
    )
    others = (
        UnverifiedSignature(result.keyid, result.signature, result.code if result.code is not Code.OK else Code.DUPLICATE)
        for result in results
        if result not in signers
    )
    return Submission(EntryKind.ATTESTATION, payload_type, payload, tuple(sorted(held)), tuple(others), bundle)
