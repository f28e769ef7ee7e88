"""An image of which one requirement holds and one has expired evidence, and the waiver that lets it go on."""

import copy
from collections.abc import Sequence
from typing import Any

from countermark.attestations.digests import Digest
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import Subject
from countermark.attestations.trust import TrustPolicy
from countermark.contracts.decision import Decision
from countermark.contracts.evidence import Record
from countermark.contracts.policy import ReleasePolicy

from .gate_world import IMAGE, RESTORE, Ledger, ask, policy, trust

STARTUP = "service.startup"
REQUIRES = f"""\
    - {{id: startup, capability: {STARTUP}, evidence: {{max_age: 12h}}}}
    - {{id: restore, capability: {RESTORE}, scope: {{topology: TP4/DCP1, context_tokens: 131072, concurrency: 1, model: any, draft: any}}}}
"""
GOOD: dict[str, Any] = {
    "apiVersion": "countermark.dev/v1",
    "kind": "Waiver",
    "metadata": {"id": "w-1", "version": 1},
    "spec": {
        "subject": str(IMAGE),
        "policy": "lab",
        "requirement": "startup",
        "codes": ["EVIDENCE_EXPIRED"],
        "reason": "the rig is down",
        "ticket": "OPS-77",
        "requested_by": "lab",
        "approved_by": ["alice", "bob"],
        "not_before": "2026-11-30T00:00:00Z",
        "expires": "2026-12-05T00:00:00+02:00",
    },
}


def lab(waivable: str = "startup", requires: str = REQUIRES, *, never: str = "IMAGE_REJECTED", days: int = 14) -> ReleasePolicy:
    """The policy; `waivable` are its requirements that may be waived."""
    return policy(requires, waivers=f"waivable: [{waivable}]\n  never_waive: [{never}]\n  waiver_max_days: {days}")


def people(**more: Any) -> TrustPolicy:
    return trust(members={"approver": ["alice", "bob", "carol"], **more.pop("members", {})}, **more)


def world(by: TrustPolicy | None = None, *, check: bool = False) -> Ledger:
    ledger = Ledger(by or people(), check=check)
    ledger.image(IMAGE)
    ledger.receipt()
    ledger.receipt(capability=STARTUP, cells=[{}])
    return ledger


def changed(**spec: Any) -> dict[str, Any]:
    """The good waiver with other fields; None takes a field away."""
    document = copy.deepcopy(GOOD)
    document["spec"] = {name: value for name, value in {**document["spec"], **spec}.items() if value is not None}
    return document


def waive(
    ledger: Ledger, document: dict[str, Any] | None = None, by: Sequence[str] = ("alice", "bob"), about: Digest | None = None
) -> list[Record]:
    """Each of these people signs the waiver alone, as `waiver approve` has it."""
    predicate = GOOD if document is None else document
    subject = Subject.of(about or IMAGE)
    return [ledger.say_unchecked(PredicateName.WAIVER.uri, subject, name, predicate) for name in by]


def outcome(ledger: Ledger, by: ReleasePolicy | None = None, **more: Any) -> Decision:
    return ask(ledger, by or lab(), **more)


def reasons(decision: Decision) -> str:
    """Why the waivers of a decision waive nothing."""
    return "\n".join("; ".join(item.why) for item in decision.waivers)
