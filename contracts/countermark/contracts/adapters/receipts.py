"""From a recorded evidence document to what a qualifier endorses: receipts, and rejections of images.

Nothing that the document's claims say of each other is taken on its word: outcome, controls, basis and lowering are computed from all
claims that are about what a receipt says was tested, as the gate computes them again.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, InvalidDocumentError, Location
from countermark.attestations.located import JsonValue
from countermark.attestations.outcomes import roll_up
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.schema import problems
from countermark.attestations.statement import canonical
from countermark.attestations.times import Instant
from countermark.contracts.adapters.answers import normalised
from countermark.contracts.adapters.reading import NOT_RECORDED
from countermark.contracts.catalogue import Catalogue
from countermark.contracts.controls import reported, worst
from countermark.contracts.scope import Scope

JsonObject = dict[str, Any]

_ENDORSED: Final = (Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE)
_ANSWERS: Final = ("restore.correctness", "restore.page-boundary-replay")
"""The capabilities in which a wrong answer behind a structural pass rejects the image (catalogue QA-04)."""
_OF_ONE_RECORD: Final = re.compile(r"/[0-9]+/")
"""A field of one element of a list: what it says is no limitation of the other elements."""
_REJECTS: Final = "status.semantic-fail-rejects"


@dataclass(frozen=True, slots=True)
class ReceiptDraft:
    """A predicate to sign, qualification-receipt/v1 or rejection/v1, and the image that it is about."""

    name: PredicateName
    image: Digest
    predicate: Mapping[str, JsonValue]


def receipts_of(predicate: Mapping[str, JsonValue], payload: Digest, catalogue: Catalogue) -> tuple[ReceiptDraft, ...]:
    """What the document with this predicate evidence-document/v1 and this payload bears, in the order of its claims.

    Passing claims of one capability and image that differ by their cells alone make one receipt. Any other claim makes its own, so that
    what is held against an image can be told and retracted one by one. A claim that came to no outcome makes none.

    Raises `InputError` SCHEMA_INVALID for another predicate, UNKNOWN_NAME for a capability that the catalogue does not have.
    """
    wrong = [
        InputError(Code.SCHEMA_INVALID, item.message, at=_at(item.pointer), fix=item.fix)
        for item in problems("evidence-document", predicate)
    ]
    if wrong:
        raise InvalidDocumentError(wrong)
    document = _Document(dict(predicate), payload, catalogue)
    drafts = [document.draft(group) for group in document.groups()]
    found: list[ReceiptDraft] = []
    for draft in drafts:
        if draft and draft not in found:
            found.append(draft)
    return tuple(found)


class _Document:
    """A valid evidence document."""

    def __init__(self, predicate: JsonObject, payload: Digest, catalogue: Catalogue) -> None:
        self.predicate = predicate
        self.payload = payload
        self.catalogue = catalogue
        self.claims: list[JsonObject] = predicate["claims"]

    def groups(self) -> Iterable[Sequence[JsonObject]]:
        """The claims that one statement can carry."""
        found: dict[bytes, list[JsonObject]] = {}
        for claim in self.claims:
            scope = {name: value for name, value in claim["scope"].items() if name != "cells" and value is not None}
            same = {"scope": scope, **{name: claim.get(name) for name in ("capability", "outcome", "claim", "controls")}}
            if claim["outcome"] != "pass":
                same["source"] = [claim["source"], claim["scope"]["cells"]]
            found.setdefault(canonical(same), []).append(claim)
        return found.values()

    def draft(self, group: Sequence[JsonObject]) -> ReceiptDraft | None:
        """The statement that a group bears; none where it came to no outcome."""
        first, cells = group[0], _cells(group)
        scope = {**first["scope"], "cells": cells}
        image = Digest.parse(scope["image"])
        if _rejects(first):
            return ReceiptDraft(PredicateName.REJECTION, image, self._rejection(first))
        names = self.catalogue.get(first["capability"], _at("/claims")).controls
        concerned = self._concerned(first["capability"], scope)
        controls = {name: worst([reported(claim["controls"].get(name)) for claim in concerned]) for name in names}
        recorded = [outcome for outcome in controls.values() if outcome is not None]
        outcome = roll_up([*(Outcome(claim["outcome"]) for claim in concerned), *recorded])
        if Outcome(first["outcome"]) not in _ENDORSED or outcome not in _ENDORSED:
            return None
        receipt: dict[str, JsonValue] = {
            "capability": first["capability"],
            "outcome": str(outcome),
            "basis": "measured" if names and len(recorded) == len(names) else "reported",
            "claim": "research-only" if any(claim.get("claim") for claim in concerned) else None,
            "scope": scope,
            "controls": {name: str(value) if value else NOT_RECORDED for name, value in controls.items()},
            "observed": _observed(group),
            "runs": min(Counter(canonical(cell) for claim in group for cell in claim["scope"]["cells"]).values()),
            "boots": len(scope["boots"]) if scope.get("boots") else None,
            "rests_on": [str(self.payload)],
            "limitations": self._limitations(group),
        }
        return ReceiptDraft(PredicateName.QUALIFICATION_RECEIPT, image, receipt)

    def _concerned(self, capability: str, scope: JsonObject) -> list[JsonObject]:
        """The claims about this capability of this image that may be about something that the scope says was tested."""
        tested = Scope.of(scope)
        points = [{**tested.exact, **cell} for cell in tested.cells or ({},)]
        found = []
        for claim in self.claims:
            other = Scope.of(claim["scope"])
            if claim["capability"] == capability and other.image == tested.image and any(map(other.covers_as_failure, points)):
                found.append(claim)
        return found

    def _rejection(self, claim: JsonObject) -> dict[str, JsonValue]:
        ranks, shown = claim["scope"].get("ranks"), claim["controls"].get("all-ranks-structural") == "pass"
        on = f" on {ranks} of {ranks} ranks" if ranks and shown else f" on {ranks} ranks" if ranks else ""
        observed = claim.get("observed") or {}
        return {
            "scope": "image-wide",
            "capability": None,
            "reason": f"{'' if shown else 'reported as '}structurally verified{on}; the answer was not the required one",
            **self._answer(claim),
            "rests_on": [str(self.payload)],
            "observed_time": observed.get("to"),
        }

    def _answer(self, claim: JsonObject) -> dict[str, JsonValue]:
        """What was required and seen, by the finding that rejects: the raw answer with its digest where that is known, else the words."""
        for finding in self.predicate["findings"]:
            if finding.get("checker") == _REJECTS and finding.get("location", {}).get("pointer") == claim["source"]:
                text, steps = finding["observed"], _steps(claim)
                raw = Digest.of(DigestKind.RESPONSE_RAW, text.encode())
                answer = {"raw_sha256": raw.hex, "text": text, "normalised": normalised(text, steps), "normalisation": list(steps)}
                return {"required": finding["required"], "observed": answer if str(raw) in finding["evidence"] and steps else text}
        return {}

    def _limitations(self, group: Sequence[JsonObject]) -> list[JsonValue]:
        """The document's own limitations, then what was found or refused in the records that the claims were read from."""
        root = self.predicate["files"][0]["path"]
        places = [_record(claim["source"]) for claim in group]
        found: list[str] = []
        for finding in self.predicate["findings"]:
            location = finding.get("location", {})
            pointer = location.get("pointer", "")
            inside = location.get("file") == root and any(_within(pointer, place) for place in places)
            if "checker" not in finding and finding["code"] == Code.RECORD_UNMAPPED:
                found += [finding.get("observed", "")] if inside or not _OF_ONE_RECORD.search(pointer) else []
            elif inside and "checker" in finding:
                found.append(f"{finding['checker']}: required {finding.get('required')}; observed {finding.get('observed')}")
        found += [
            f"{item['pointer']}: {item['why']}"
            for item in self.predicate["refused"]
            if any(_within(item["pointer"], place) for place in places)
        ]
        return list(dict.fromkeys(filter(None, found)))


def _rejects(claim: JsonObject) -> bool:
    """Whether a wrong answer follows on a structural pass: nothing shows that a rank did not verify, and the answer was another one."""
    controls = claim["controls"]
    wrong = claim["capability"] in _ANSWERS and claim["outcome"] == "fail" and controls.get("exact-answer") == "fail"
    return wrong and controls.get("all-ranks-structural") != "fail"


def _cells(group: Sequence[JsonObject]) -> list[JsonValue]:
    """The cells of all claims, each once, in their order."""
    found: dict[bytes, JsonValue] = {}
    for cell in (cell for claim in group for cell in claim["scope"]["cells"]):
        found.setdefault(canonical(cell), cell)
    return list(found.values())


def _observed(group: Sequence[JsonObject]) -> JsonValue:
    """The interval that holds those of all claims; an end that one of them does not record is not recorded."""
    intervals = [claim["observed"] or {} for claim in group]
    return {"from": _end(intervals, "from", first=True), "to": _end(intervals, "to", first=False)}


def _end(intervals: Sequence[JsonObject], name: str, *, first: bool) -> str | None:
    times = [interval.get(name) for interval in intervals]
    known = sorted((time for time in times if time), key=Instant.parse)
    return known[0 if first else -1] if known and len(known) == len(times) else None


def _steps(claim: JsonObject) -> tuple[str, ...]:
    """The normalisation that led from the raw answer to the recorded one."""
    rules = [item["rule"] for item in claim["derived"] if item["field"] == "/controls/exact-answer"]
    words, _, _ = rules[0].removeprefix("normalisation ").partition(":") if rules else ("", "", "")
    return tuple(words.split())


def _record(source: str) -> str:
    """The record that a claim was read from: the element of a list that its source is a field of, or its source."""
    parent, _, _ = source.rpartition("/")
    return parent if parent.rpartition("/")[2].isdecimal() else source


def _within(pointer: str, place: str) -> bool:
    return pointer == place or pointer.startswith(f"{place}/")


def _at(pointer: str) -> Location:
    return Location("evidence-document", pointer=pointer or None)
