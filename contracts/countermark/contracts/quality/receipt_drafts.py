"""From a recorded quality report to the receipt of one capability: outcome, controls and basis computed."""

from collections.abc import Mapping

from countermark.attestations.codes import Outcome
from countermark.attestations.digests import Digest
from countermark.attestations.located import JsonValue, as_list, as_object
from countermark.attestations.outcomes import quality_outcome, roll_up
from countermark.attestations.predicate_types import PredicateName
from countermark.contracts.adapters.reading import NOT_RECORDED
from countermark.contracts.adapters.receipts import ReceiptDraft
from countermark.contracts.catalogue import Capability
from countermark.contracts.controls import control
from countermark.contracts.quality.judged import contradictions

DEFAULT = "output.contract"
"""What a report shows where nobody names another capability: that the raw responses keep their output rules."""


def quality_receipt(report: Mapping[str, JsonValue], payload: Digest, capability: Capability) -> ReceiptDraft | None:
    """The receipt of a capability that a quality report can show; none where it cannot, or where the report contradicts itself."""
    if str(PredicateName.QUALITY_REPORT) not in capability.evidence or not report.get("checks") or any(contradictions(report, {})):
        return None
    shown = {name: control(PredicateName.QUALITY_REPORT.uri, report, name) for name in capability.controls}
    recorded = {name: outcome for name, outcome in shown.items() if outcome is not None}
    outcome = roll_up([quality_outcome(dict(report)), *recorded.values()])
    scope = as_object(report.get("scope"))
    receipt: dict[str, JsonValue] = {
        "capability": capability.id,
        "outcome": str(outcome),
        "basis": "measured" if len(recorded) == len(shown) else "reported",
        "claim": None,
        "scope": dict(scope),
        "controls": {name: str(recorded.get(name, NOT_RECORDED)) for name in shown},
        "observed": report.get("observed"),
        "runs": 1,
        "boots": len(as_list(scope.get("boots"))) or None,
        "rests_on": [str(payload)],
        "limitations": [_told(as_object(check)) for check in as_list(report.get("checks")) if as_object(check).get("outcome") != "pass"],
    }
    if outcome is Outcome.ERROR:
        return None
    image = Digest.parse(str(as_object(report.get("tuple")).get("image")))
    return ReceiptDraft(PredicateName.QUALIFICATION_RECEIPT, image, receipt)


def _told(check: Mapping[str, JsonValue]) -> str:
    cause = f", behind {check['cause']}" if check.get("cause") else ""
    return f"{check.get('id')}: {check.get('outcome')}{cause}; required {str(check.get('required'))[:200]}"
