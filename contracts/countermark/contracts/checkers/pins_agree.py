"""`pins.agree` (catalogue ID-02): one value in all places."""

import difflib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from countermark.attestations.codes import Severity
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.contracts.checkers.base import Case, Checker, Parameters, Result
from countermark.contracts.locators.base import Reading
from countermark.contracts.pins import Pin, ValueType, referred, shown
from countermark.contracts.places import Occurrence
from countermark.contracts.terms import ANY_KNOWN

_LIKENESS = 0.75
"""How much of a digest must be left for it to be read as a slip of that digest and not as another one."""


class PinsAgree(Checker):
    """Compares every place with its pin, and the pin with the majority of its places."""

    name = "pins.agree"
    version = 1
    rule = "Every place holds exactly the value that the contract pins for it, in the type that is pinned."
    ids = ("ID-02",)

    def check(self, case: Case, given: Parameters) -> Result:
        """One finding for each place that differs, and one for each pin that most of its places contradict."""
        del given
        counts = {pin.name: _Count(pin) for pin in case.terms.pins.values()}
        strays = [found for found in case.places.occurrences if not _counted(found, case.terms.pins, counts)]
        findings = [finding for count in counts.values() for finding in self._differing(count)]
        unknown = [self._unknown(stray) for stray in strays]
        gaps = [gap.finding for gap in case.places.gaps]
        units = [finding for count in counts.values() for finding in self._units(count)]
        return Result(len(case.places.occurrences), (*findings, *unknown, *units, *gaps))

    def _units(self, count: "_Count") -> Iterator[Finding]:
        """48 GiB and 48 GB are one number and two sizes; which is right no rule can tell, so it is a warning."""
        named = [found for found in count.found if found.place.unit]
        for found in named[1:]:
            if found.place.unit != named[0].place.unit:
                required = f"{count.pin.name} in {named[0].place.unit}, as at {named[0].at.file}:{named[0].at.line}"
                fix = "state the value in one unit everywhere"
                yield self.violation(found.at, required=required, observed=f"in {found.place.unit}", fix=fix, severity=Severity.WARN)

    def _differing(self, count: "_Count") -> Iterator[Finding]:
        pin, rival = count.pin, count.rival()
        required = f"{shown(pin.value)} ({count.agreeing} of {count.places} places)"
        otherwise = f", or pin the other value at {pin.at.file}:{pin.at.line}" if rival else ""
        for occurrence in count.differing:
            fix = f"set {occurrence.at.pointer or 'this'} to the pinned {pin.leaf}{otherwise}"
            yield self.violation(occurrence.at, required=required, observed=shown(occurrence.value), fix=fix)
        if rival:
            value, votes = rival
            yield self.violation(
                pin.at,
                required=f"{value} ({votes} of {count.places} places)",
                observed=f"{shown(pin.value)}, so the contract disagrees with most places",
                fix=f"pin the value of the places for {pin.name}, or change the places",
            )

    def _unknown(self, stray: Occurrence) -> Finding:
        fix = "write the value of a pin, or pin this one in the contract"
        return self.violation(stray.at, required="the value of a pin", observed=shown(stray.value), fix=fix)


@dataclass(slots=True)
class _Count:
    """The places of one pin, told apart by what they hold."""

    pin: Pin
    agreeing: int = 0
    differing: list[Occurrence] = field(default_factory=list)
    found: list[Occurrence] = field(default_factory=list)

    @property
    def places(self) -> int:
        return len(self.found)

    def add(self, occurrence: Occurrence) -> None:
        self.found.append(occurrence)
        if occurrence.says(self.pin):
            self.agreeing += 1
        else:
            self.differing.append(occurrence)

    def rival(self) -> tuple[str, int] | None:
        """Another value that more than half of all voices hold, the contract's own among them; and its voices."""
        voices = Counter(shown(found.value).removeprefix("sha256:") for found in self.differing)
        value, votes = max(voices.items(), key=lambda voice: voice[1], default=("", 0))
        return (value, votes) if votes * 2 > self.places + 1 else None


def _counted(occurrence: Occurrence, pins: Mapping[str, Pin], counts: Mapping[str, _Count]) -> bool:
    """Count an occurrence with the pins it is meant for; whether there is one."""
    meant = _meant(occurrence, pins)
    for pin in meant:
        counts[pin.name].add(occurrence)
    return bool(meant)


def _meant(occurrence: Occurrence, pins: Mapping[str, Pin]) -> list[Pin]:
    """The pin of the place; where any known value may stand, the pins with this value, else the one it is most like."""
    place = occurrence.place
    if place.target and place.target != ANY_KNOWN:
        return [pins[place.target]]
    known = [pin for pin in pins.values() if place.type in (None, pin.type)]
    if place.locator.reading is Reading.PROSE:
        known = [pin for pin in known if pin.type.is_digest]
    return [pin for pin in known if occurrence.says(pin)] or _alike(occurrence.value, known)


def _alike(value: JsonValue, known: list[Pin]) -> list[Pin]:
    """The pin whose digest this value abbreviates or misspells, if there is exactly one nearest."""
    if not isinstance(value, str):
        return []
    bare = str(referred(value, ValueType.SHA256)).removeprefix("sha256:").lower()
    by_digits = {pin.hex: pin for pin in reversed(known) if pin.hex}
    begun = [digits for digits in by_digits if len(bare) >= 7 and digits.startswith(bare)]
    near = begun if len(begun) == 1 else difflib.get_close_matches(bare, by_digits, n=1, cutoff=_LIKENESS)
    return [by_digits[digits] for digits in near]
