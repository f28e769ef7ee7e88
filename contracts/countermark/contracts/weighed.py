"""What a decision tells of the statements that were weighed: receipts, verdicts and rejections for a requirement, and waivers."""

from dataclasses import dataclass
from typing import Any

from countermark.attestations.digests import Digest
from countermark.contracts.waiver import Objection, Waiver


@dataclass(frozen=True, slots=True)
class Weighed:
    """A statement that was weighed for a requirement; `why` says why the answer does not rest on it."""

    index: int
    payload: Digest
    signer: str
    used: bool
    why: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The object of the documents page."""
        return {"payload": str(self.payload), "signer": self.signer, "used": self.used, **({"why": self.why} if self.why else {})}


@dataclass(frozen=True, slots=True)
class WeighedWaiver:
    """A waiver that was weighed. `waiver` is none where it cannot be read; `approved_by` are those whose approval holds; `why` says why
    it waives nothing, and is empty where it does."""

    index: int
    payload: Digest
    waiver: Waiver | None
    approved_by: tuple[str, ...]
    why: tuple[Objection, ...]

    @property
    def used(self) -> bool:
        """Whether a requirement is waived by it."""
        return not self.why

    def to_json(self) -> dict[str, Any]:
        """The object of the documents page."""
        waiver = self.waiver
        told = {} if waiver is None else _told(waiver)
        why = {"why": "; ".join(self.why)} if self.why else {}
        return {"payload": str(self.payload), **told, "approved_by": list(self.approved_by), "used": self.used, **why}


def _told(waiver: Waiver) -> dict[str, Any]:
    return {
        "id": waiver.id,
        "version": waiver.version,
        "subject": str(waiver.subject),
        "policy": waiver.policy,
        "requirement": waiver.requirement,
        "codes": list(map(str, waiver.codes)),
        "reason": waiver.reason,
        "ticket": waiver.ticket,
        "requested_by": waiver.requested_by,
        "not_before": str(waiver.not_before),
        "expires": str(waiver.expires),
    }
