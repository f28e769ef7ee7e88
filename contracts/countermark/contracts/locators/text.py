"""Any text: a regular expression with one group, which is the value. It is matched within each line."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from countermark.attestations.errors import Location
from countermark.contracts.locators.base import NOTHING_BESIDE, Absent, Found, Locator, Reading, decoded


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a text."""

    path: str
    lines: tuple[str, ...]

    def find(self, argument: str) -> Sequence[Found | Absent]:
        """The group of each match, line by line."""
        expression = re.compile(argument)
        found = [
            Found(match[1], Location(self.path, number, match.start(1) + 1))
            for number, line in enumerate(self.lines, start=1)
            for match in expression.finditer(line)
            if match[1] is not None
        ]
        return tuple(found) or (Absent(Location(self.path, 1)),)


class Text(Locator):
    """What a regular expression finds."""

    name = "text"
    reading = Reading.TEXT

    def unsupported(self, argument: str) -> str | None:
        """Refuses what is no regular expression, or has another number of groups than one."""
        try:
            groups = re.compile(argument).groups
        except re.error as error:
            return f"text: {argument!r} is no regular expression: {error}"
        return None if groups == 1 else f"text: {argument!r} has {groups} groups, where one is the value"

    def parse(self, data: bytes, path: str, beside: Mapping[str, bytes] = NOTHING_BESIDE) -> Lines:
        """Split any UTF-8 text into lines."""
        del beside
        return Lines(path, tuple(line.rstrip("\r") for line in decoded(data, path).split("\n")))
