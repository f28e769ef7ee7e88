"""What a locator is: it knows one way to say where in a file a fact stands, and finds the values there.

A locator parses a file once, and answers for any number of arguments. It reports what it found and, for whatever an argument names
and the file does not have, where that is missing; so that nothing asked for is passed over in silence.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Protocol

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.attestations.located import JsonValue


class Reading(StrEnum):
    """How much a source says about the type of a value."""

    TYPED = "typed"  # JSON, YAML, TOML: a number is not its digits in quotes
    TEXT = "text"  # environment files, command lines: every value is text
    PROSE = "prose"  # documents for people: a digest is quoted as bare hex digits


@dataclass(frozen=True, slots=True)
class Found:
    """A value and where it stands."""

    value: JsonValue
    at: Location


@dataclass(frozen=True, slots=True)
class Absent:
    """Nothing stands where the argument points; `at` is the nearest thing that does."""

    at: Location


class Parsed(Protocol):
    """A file that was parsed, ready to be asked."""

    def find(self, argument: str) -> Sequence[Found | Absent]:
        """What stands where `argument` points, in the order of the file; never empty. `InputError` for a value that cannot be known."""
        ...


NOTHING_BESIDE: Mapping[str, bytes] = {}


class Locator(ABC):
    """One way to point into a file. The name is the key of a place in a contract."""

    name: ClassVar[str]
    reading: ClassVar[Reading]

    def unsupported(self, argument: str) -> str | None:
        """Why this version cannot follow an argument that the schema allows; none when it can."""
        del argument
        return None

    def companions(self, path: str) -> Sequence[Sequence[str]]:
        """Files that have a say in what the file at `path` means, where they are there; of each group the first that is there is read."""
        del path
        return ()

    @abstractmethod
    def parse(self, data: bytes, path: str, beside: Mapping[str, bytes] = NOTHING_BESIDE) -> Parsed:
        """Parse a file; `InputError` with the line for one that is not what it should be. `beside` holds its companions."""


def decoded(data: bytes, path: str) -> str:
    """The text of a file; `InputError` (UNREADABLE) with the line of the first byte that is not UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            Code.UNREADABLE, f"byte {error.start} is not UTF-8", at=Location(path, line), fix="save the file as UTF-8"
        ) from None
