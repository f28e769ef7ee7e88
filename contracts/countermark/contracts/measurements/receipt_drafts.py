"""From a recorded benchmark run to the receipt that a qualifier endorses: outcome, controls and basis computed, limitations told."""

from collections.abc import Mapping

from countermark.attestations.digests import Digest
from countermark.attestations.located import JsonValue, as_object
from countermark.attestations.predicate_types import PredicateName
from countermark.contracts.adapters.reading import NOT_RECORDED
from countermark.contracts.adapters.receipts import ReceiptDraft
from countermark.contracts.catalogue import Catalogue
from countermark.contracts.measurements.broken import Broken
from countermark.contracts.measurements.judged import judge


def run_receipt(predicate: Mapping[str, JsonValue], payload: Digest, quality: JsonValue, catalogue: Catalogue) -> ReceiptDraft | None:
    """The receipt of a run; `quality` is the predicate of the report that it names, where the ledger holds it.

    None where the run contradicts itself or shows no capability of the catalogue. `InputError` for what is no benchmark run.
    """
    found = judge(predicate, quality)
    if found.contradictions or found.capability is None or found.capability not in catalogue.capabilities:
        return None
    names = catalogue.capabilities[found.capability].controls
    measured = set(names) <= set(found.controls)
    scope = as_object(predicate.get("scope"))
    rests_on: list[JsonValue] = [str(payload), *([predicate["quality"]] if quality is not None and predicate.get("quality") else [])]
    receipt: dict[str, JsonValue] = {
        "capability": found.capability,
        "outcome": str(found.outcome),
        "basis": "measured" if measured else "reported",
        "claim": None,
        "scope": dict(scope),
        "controls": {name: str(found.controls.get(name, NOT_RECORDED)) for name in names},
        "observed": predicate.get("observed"),
        "runs": found.run.repeats_seen,
        "boots": found.run.boots_seen,
        "rests_on": rests_on,
        "limitations": list(dict.fromkeys(map(_told, found.limits))),
    }
    image = Digest.parse(str(as_object(predicate.get("tuple")).get("image")))
    return ReceiptDraft(PredicateName.QUALIFICATION_RECEIPT, image, receipt)


def _told(broken: Broken) -> str:
    return f"{broken.checker}: required {broken.required}; observed {broken.observed}"
