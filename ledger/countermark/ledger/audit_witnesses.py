"""Checks of the cosignatures that witnesses gave, and how far those of a policy protect the ledger."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from countermark.attestations.codes import Code, Severity
from countermark.attestations.errors import CountermarkError, InputError
from countermark.ledger.audit_report import Findings
from countermark.ledger.audit_tree import Roots
from countermark.ledger.cosignature import TIME_BYTES, Cosignature, CosignerKey
from countermark.ledger.freshness import ahead_of
from countermark.ledger.note import Checkpoint
from countermark.ledger.signed_note import SignatureLine, SignedNote
from countermark.ledger.snapshot import Snapshot
from countermark.ledger.witness_policy import WitnessPolicy


@dataclass(frozen=True, slots=True)
class Cosigned:
    """The newest checkpoint that is a quorum's: its size and the cosignatures over it."""

    size: int
    found: tuple[Cosignature, ...]

    @property
    def holders(self) -> dict[str, int]:
        """The witnesses that hold it, each with its size."""
        return {item.key.name: self.size for item in self.found}


NOBODYS = Cosigned(0, ())


def check_cosignatures(ledger: Snapshot, findings: Findings) -> None:
    """Each cosignature is about a checkpoint that is here, and its columns repeat its line."""
    sql = (
        "SELECT c.size, c.name, c.key_id, c.ts, c.line, k.root FROM cosignature AS c "
        "LEFT JOIN checkpoint AS k ON k.size = c.size AND k.root = c.root"
    )
    for size, name, key_id, ts, line, known in ledger.stream(sql):
        if known is None or _repeated(line) != (name, key_id, ts):
            findings.add(Code.TAMPERED, "cosignatures", f"the cosignature of {name!r} at {size} is not what its line says")


def _repeated(line: object) -> tuple[str, bytes, int] | None:
    """Name, key ID and time of a line `— NAME base64(key ID ‖ u64 seconds ‖ signature)` (C2SP tlog-cosignature); none for any other."""
    try:
        parsed = SignatureLine.parse(line) if isinstance(line, str) else None
    except InputError:
        return None
    if parsed is None or len(parsed.signature) <= TIME_BYTES:
        return None
    return parsed.name, parsed.key_id, int.from_bytes(parsed.signature[:TIME_BYTES])


def check_witnesses(ledger: Snapshot, origin: str, roots: Roots, policy: WitnessPolicy, findings: Findings) -> Cosigned:
    """The newest checkpoint that is a quorum's; `NOBODYS` where there is none.

    A line in the name of one of the policy's witnesses that does not hold is a finding; so are times that contradict each other.
    """
    cosigned: dict[int, list[Cosignature]] = {}
    for size, line in ledger.rows("SELECT size, line FROM cosignature ORDER BY size DESC, name, ts"):
        root = roots.at(size) if isinstance(size, int) else None
        if root is None or not isinstance(line, str):
            continue  # `check_cosignatures` says so
        for key in policy.witnesses.values():
            try:
                note = SignedNote(Checkpoint(origin, size, root).body(), (SignatureLine.parse(line),))
                cosigned.setdefault(size, []).extend(key.cosignatures(note))
            except CountermarkError as error:
                findings.error(error, "witnesses", "", entry=size - 1)
                break
    _check_order(cosigned, findings)
    _check_entries(ledger, cosigned, findings)
    for size, found in cosigned.items():
        if policy.satisfied(item.key for item in found):
            return Cosigned(size, tuple(item for key in policy.witnesses.values() for item in found if item.key == key))
    return NOBODYS


def _check_order(cosigned: Mapping[int, Sequence[Cosignature]], findings: Findings) -> None:
    """A witness does not go back in time: it signs no larger tree before a smaller one. That accuses the witness, and not the log."""
    newest: dict[CosignerKey, int] = {}
    for size in sorted(cosigned):
        for item in cosigned[size]:
            if item.time_s < newest.get(item.key, 0):
                observed = f"{item.key.name} cosigned {size} entries before fewer of them"
                findings.add(Code.CLOCK, "witnesses", observed, entry=size - 1, severity=Severity.WARN)
        for item in cosigned[size]:
            newest[item.key] = max(item.time_s, newest.get(item.key, 0))


def _check_entries(ledger: Snapshot, cosigned: Mapping[int, Sequence[Cosignature]], findings: Findings) -> None:
    """No entry claims a time long after a witness had cosigned it."""
    for size, found in cosigned.items():
        row = ledger.row("SELECT admitted_ms FROM entry WHERE idx = ?", size - 1)
        observed = ahead_of(found, row[0]) if row and isinstance(row[0], int) else None
        if observed:
            findings.add(Code.CLOCK, "witnesses", observed, entry=size - 1)
