"""From places to values: each place of a contract is looked up in a tree, and what it names and does not find is a finding.

A file that cannot be read costs the places in it and no others; each file is read and parsed once.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.errors import InputError, Location, NothingError
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.contracts.locators.base import Absent, Found, Locator, Parsed
from countermark.contracts.pins import Pin, referred, same
from countermark.contracts.terms import Place
from countermark.contracts.tree import Tree


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A value that stands at a place, and exactly where."""

    place: Place
    value: JsonValue
    at: Location

    def says(self, pin: Pin) -> bool:
        """Whether it holds the value of the pin, in the form that the place demands."""
        return same(referred(self.value, self.place.type or pin.type), self.place.expected(pin))


@dataclass(frozen=True, slots=True)
class Gap:
    """A place, or one of its files, that gave no value; the finding says why."""

    place: Place
    finding: Finding


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a list of places came to."""

    occurrences: tuple[Occurrence, ...]
    gaps: tuple[Gap, ...]


class Resolver:
    """Looks places up in one tree."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._parsed: dict[tuple[str, str], Parsed | InputError] = {}

    def resolve(self, places: Iterable[Place]) -> Resolution:
        """The values at all places, each value of a file once a target however many places name it, and the gaps."""
        occurrences: dict[tuple[str | None, Location], Occurrence] = {}
        gaps: dict[Gap, None] = {}
        for found in (found for place in places for found in self._look_up(place)):
            if isinstance(found, Gap):
                gaps[found] = None
            else:
                occurrences.setdefault((found.place.target, found.at), found)
        return Resolution(tuple(occurrences.values()), tuple(gaps))

    def _look_up(self, place: Place) -> Iterator[Occurrence | Gap]:
        try:
            paths = self.tree.glob(place.file)
        except InputError as error:
            yield Gap(place, finding_of(error))
            return
        if not paths:
            yield Gap(place, _no_file(place))
        for path in paths:
            yield from self._look_into(path, place)

    def _look_into(self, path: str, place: Place) -> Iterator[Occurrence | Gap]:
        try:
            values = self.parsed(path, place.locator).find(place.argument)
        except InputError as error:
            yield Gap(place, finding_of(error))
            return
        for found in values:
            match found:
                case Found(value, at):
                    yield Occurrence(place, value, at)
                case Absent(at):
                    yield Gap(place, _no_value(place, at))

    def parsed(self, path: str, locator: Locator) -> Parsed:
        """A file as a locator reads it; it is read once, and one that cannot be read is the same `InputError` each time."""
        key = (path, locator.name)
        if key not in self._parsed:
            try:
                self._parsed[key] = locator.parse(self.tree.read(path), path, self._beside(path, locator))
            except InputError as error:
                self._parsed[key] = error
        parsed = self._parsed[key]
        if isinstance(parsed, InputError):
            raise parsed
        return parsed

    def _beside(self, path: str, locator: Locator) -> dict[str, bytes]:
        groups = [[name for companion in group for name in self.tree.glob(companion)] for group in locator.companions(path)]
        return {there[0]: self.tree.read(there[0]) for there in groups if there}


def finding_of(error: InputError | NothingError) -> Finding:
    """What could not be read, or is not there, as a finding among others: the verdict over the rest is still wanted."""
    outcome = Outcome.NOT_RUN if isinstance(error, NothingError) else Outcome.ERROR
    return Finding(error.code, outcome, error.fix, location=error.at, observed=error.message)


def _no_file(place: Place) -> Finding:
    return Finding(
        Code.NOTHING_EVALUATED,
        Outcome.NOT_RUN,
        "correct the path of this place, or add the file",
        location=place.at,
        required=f"a file that matches {place.file}",
        observed="no such file",
    )


def _no_value(place: Place, at: Location) -> Finding:
    wanted = f"a value at {at.pointer}" if at.pointer else f"a value for {place.locator.name}: {place.argument}"
    whose = f" of {place.target}" if place.target else ""
    return Finding(
        Code.NOTHING_EVALUATED,
        Outcome.NOT_RUN,
        f"write the value{whose} here, or correct the place at {place.at.file}:{place.at.line}",
        location=at,
        required=wanted,
        observed="nothing",
    )
