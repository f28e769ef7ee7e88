"""Checks of the cosignatures that witnesses gave, and how far those of a policy protect the ledger."""

from countermark.attestations.errors import CountermarkError
from countermark.ledger.audit_report import Findings
from countermark.ledger.audit_tree import Roots
from countermark.ledger.cosignature import CosignerKey
from countermark.ledger.note import Checkpoint
from countermark.ledger.signed_note import SignatureLine, SignedNote
from countermark.ledger.snapshot import Snapshot
from countermark.ledger.witness_policy import WitnessPolicy


def check_witnesses(ledger: Snapshot, origin: str, roots: Roots, policy: WitnessPolicy, findings: Findings) -> dict[str, int]:
    """The witnesses that hold the newest checkpoint which is a quorum's, each with its size; none where there is no such checkpoint.

    A line in the name of one of the policy's witnesses that does not hold is a finding.
    """
    cosigned: dict[int, set[CosignerKey]] = {}
    for size, line in ledger.rows("SELECT size, line FROM cosignature ORDER BY size DESC, name, ts"):
        root = roots.at(size) if isinstance(size, int) else None
        if root is None or not isinstance(line, str):
            continue  # `check_cosignatures` says so
        for key in policy.witnesses.values():
            try:
                note = SignedNote(Checkpoint(origin, size, root).body(), (SignatureLine.parse(line),))
                if any(key.cosignatures(note)):
                    cosigned.setdefault(size, set()).add(key)
            except CountermarkError as error:
                findings.error(error, "witnesses", "", entry=size - 1)
                break
    for size, keys in cosigned.items():
        if policy.satisfied(keys):
            return {key.name: size for key in policy.witnesses.values() if key in keys}
    return {}
