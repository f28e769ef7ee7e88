"""What goes into the ledger, and what comes back."""

from dataclasses import dataclass
from typing import Final

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.envelope import pae
from countermark.attestations.keys import Signer
from countermark.ledger.leaf import EntryKind, LeafSignature
from countermark.ledger.travelling import Travelling

GENESIS_TYPE: Final = "application/vnd.countermark.genesis+json"
KEY_EVENT_TYPE: Final = "application/vnd.countermark.key-event+json"
DOCUMENT_TYPE: Final = "application/vnd.countermark.document+yaml"
INCARNATION_TYPE: Final = "application/vnd.countermark.incarnation+json"
WITHHOLD_TYPE: Final = "application/vnd.countermark.withhold+json"


@dataclass(frozen=True, slots=True)
class UnverifiedSignature(Travelling):
    """A signature of the envelope that did not verify, and why; recorded beside the tree, never in it."""

    keyid: str | None
    signature: bytes
    outcome: Code


@dataclass(frozen=True, slots=True)
class Submission(Travelling):
    """One thing to admit. The caller has verified `signatures` over `pae(payload_type, payload)`, each against a key it knows.

    `payload` is kept byte for byte as it was signed; `bundle` is the sigstore bundle file it came in, if it did.
    """

    kind: EntryKind
    payload_type: str
    payload: bytes
    signatures: tuple[LeafSignature, ...]
    unverified: tuple[UnverifiedSignature, ...] = ()
    bundle: bytes | None = None

    @classmethod
    def sign(cls, kind: EntryKind, payload_type: str, payload: bytes, signer: Signer) -> "Submission":
        """Sign `payload` and submit it."""
        return cls(kind, payload_type, payload, (leaf_signature(signer, pae(payload_type, payload)),))


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that was not admitted: why, the SHA-256 of what came, and what it claims, for which nobody vouches.

    `subjects` are the digests that it names, `predicate_type` what kind of statement it says that it is, none when it is no statement.
    """

    code: Code
    reason: str
    sha256: bytes
    subjects: tuple[str, ...] = ()
    predicate_type: str | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """Where a submission stands in the log: at its own index, or, as a duplicate, at that of the first admission."""

    index: int
    payload: Digest
    duplicate: bool

    def to_json(self) -> dict[str, str | int | bool]:
        """The receipt as reports show it."""
        return {"index": self.index, "payload": str(self.payload), "duplicate": self.duplicate}


def leaf_signature(signer: Signer, signed: bytes) -> LeafSignature:
    """A signature over the bytes `signed`, in the form that a leaf holds."""
    return LeafSignature(int(signer.public.algorithm), signer.public.fingerprint.raw, signer.sign(signed))
