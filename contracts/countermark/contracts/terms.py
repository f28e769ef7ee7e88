"""The terms of a contract: what it pins, where its facts stand, and what it calls profiles and commands."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.attestations.located import JsonValue
from countermark.attestations.spelling import meant
from countermark.contracts.locators.base import Locator, Reading
from countermark.contracts.pins import Pin, ValueType, as_text

ANY_KNOWN = "any-known"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a fact stands: files, a locator and what it points at. `target` is `pin.leaf`, `any-known`, or none for a fact."""

    file: str
    locator: Locator
    argument: str
    at: Location
    target: str | None = None
    type: ValueType | None = None
    unit: str | None = None

    def __str__(self) -> str:
        return f"{self.file} {self.locator.name}: {self.argument or 'the whole document'}"

    def expected(self, pin: Pin) -> JsonValue:
        """The pin's value as this place must hold it; `InputError` when a value of the place's type cannot say it."""
        value = pin.spelled(self.type)
        if self.locator.reading is Reading.PROSE and pin.hex is not None:
            return pin.hex
        return value if self.locator.reading is Reading.TYPED else as_text(value)


@dataclass(frozen=True, slots=True)
class Profile:
    """One serving profile of the repository, and where in its file the checks find what they compare."""

    name: str
    file: str
    serves: bool
    config: str | None
    argv: str | None
    fields: Mapping[str, str]
    at: Location


@dataclass(frozen=True, slots=True)
class Terms:
    """All that a contract says, but for who it is and its invariants. Mappings are in the order of the file."""

    pins: Mapping[str, Pin]
    binds_image: tuple[str, ...]
    places: tuple[Place, ...]
    profiles: Mapping[str, Profile]
    commands: Mapping[str, tuple[str, ...]]
    facts: Mapping[str, Place]


def lookup(name: str, known: Mapping[str, _T], what: str, at: Location) -> _T:
    """What has this name; `InputError` (UNKNOWN_NAME) with the name that may be meant when nothing has."""
    if name in known:
        return known[name]
    fix = meant(name, known) or f"name one of {', '.join(known) or 'none: there are none'}"
    raise InputError(Code.UNKNOWN_NAME, f"there is no {what} {name!r}", at=at, fix=fix)
