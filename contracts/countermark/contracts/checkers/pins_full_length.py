"""`pins.full-length` (catalogue RE-12): a digest that is cut short names nothing."""

import re
from collections.abc import Iterator

from countermark.attestations.codes import Severity
from countermark.attestations.findings import Finding
from countermark.contracts.checkers.base import Case, Checker, Parameters, Result
from countermark.contracts.checkers.parameters import fields, group, many, objects, pointer, text
from countermark.contracts.checkers.records import blocks
from countermark.contracts.locators.base import Found, Reading
from countermark.contracts.pins import Pin, ValueType, referred, shown
from countermark.contracts.places import Occurrence
from countermark.contracts.terms import Place, Terms

_ANY_DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class PinsFullLength(Checker):
    """Holds what stands at each place of a digest's type against the form of that type.

    A record that also holds the whole digest may abbreviate it: that is a search term and a warning, never an identity.
    """

    name = "pins.full-length"
    version = 1
    rule = "Every digest and git id stands in full length, in lower case and in the form of its type."
    ids = ("RE-12",)
    parameters = fields(
        prefixes=many(
            "records that abbreviate a digest which they also hold in full",
            group(
                "one such record",
                "file",
                "prefix",
                "of",
                file=text("path or glob of the records"),
                each=pointer("the blocks that hold both"),
                prefix=pointer("the abbreviations"),
                of=pointer("the whole digest"),
            ),
        )
    )

    def check(self, case: Case, given: Parameters) -> Result:
        """One finding for each value that is too short or long, not lower-case hex, or not text."""
        judged = [found for found in case.places.occurrences if _holds_digests(found.place, case.terms)]
        bad = [self._malformed(found, case.terms) for found in judged if not _well_formed(found, case.terms)]
        gaps = [gap.finding for gap in case.places.gaps if _holds_digests(gap.place, case.terms)]
        short = [
            (block, found) for entry in objects(given.get("prefixes")) for block in blocks(case, entry) for found in block.all("prefix")
        ]
        cut = [finding for block, found in short for finding in self._abbreviation(found, block.one("of"))]
        return Result(len(judged) + len(short), (*bad, *gaps, *cut))

    def _abbreviation(self, found: Found, whole: Found) -> Iterator[Finding]:
        required, observed, fix = f"the whole digest {shown(whole.value)}", shown(found.value), "write the whole digest"
        is_one = isinstance(found.value, str) and isinstance(whole.value, str) and whole.value.startswith(found.value) and found.value != ""
        if not is_one:
            yield self.violation(found.at, required=required, observed=f"{observed}, which is no abbreviation of it", fix=fix)
        elif found.value != whole.value:
            yield self.violation(found.at, required=required, observed=observed, fix=fix, severity=Severity.WARN)

    def _malformed(self, found: Occurrence, terms: Terms) -> Finding:
        kind = _type_at(found.place, terms)
        required = kind.words if kind and found.place.locator.reading is Reading.TYPED else "40 or 64 lower-case hex digits"
        pin = _abbreviated(found, terms)
        fix = f"write the whole {pin.leaf} {pin.value}" if pin else f"write the whole {kind or 'digest'} in lower case"
        return self.violation(found.at, required=required, observed=shown(found.value), fix=fix)


def _type_at(place: Place, terms: Terms) -> ValueType | None:
    """The type that a place demands; none where the value of any pin may stand."""
    pin = terms.pins.get(place.target or "")
    return place.type or (pin.type if pin else None)


def _holds_digests(place: Place, terms: Terms) -> bool:
    kind = _type_at(place, terms)
    return kind.is_digest if kind else place.locator.reading is Reading.PROSE


def _well_formed(found: Occurrence, terms: Terms) -> bool:
    kind = _type_at(found.place, terms)
    form = kind.form if kind else None
    if found.place.locator.reading is Reading.PROSE and (kind is None or kind.is_oci):
        form = _ANY_DIGEST if kind is None else ValueType.SHA256.form
    value = referred(found.value, kind)
    return isinstance(value, str) and form is not None and form.fullmatch(value) is not None


def _abbreviated(found: Occurrence, terms: Terms) -> Pin | None:
    """The pin of the place; where any digest may stand, the only pin that the value is the beginning of."""
    if pin := terms.pins.get(found.place.target or ""):
        return pin
    begun = [pin for pin in terms.pins.values() if isinstance(found.value, str) and (pin.hex or "").startswith(found.value.lower())]
    return begun[0] if len(begun) == 1 else None
