"""Pointers into JSON and YAML: RFC 6901, with `*` for any element of a list or any value of an object.

Each element that `*` stands for must have what the rest of the pointer names; one that has not is `Absent`, like a file that has not.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from countermark.attestations import jsontext, yamltext
from countermark.attestations.errors import Location
from countermark.attestations.located import JsonValue, Located, pointer_join, pointer_parts
from countermark.contracts.locators.base import NOTHING_BESIDE, Absent, Found, Locator, Reading

_INDEX = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Document:
    """A structured text and the place of each of its values."""

    located: Located

    def at(self, pointer: str) -> Location:
        """Where `pointer` stands, or its nearest parent."""
        return self.located.at(pointer)

    def find(self, argument: str) -> Sequence[Found | Absent]:
        """The values that the pointer names, each with its own pointer."""
        return tuple(self._below(self.located.value, "", pointer_parts(argument)))

    def _below(self, value: JsonValue, pointer: str, parts: Sequence[str]) -> Iterator[Found | Absent]:
        if not parts:
            yield Found(value, self.located.at(pointer))
            return
        children = _children(value, parts[0])
        for key, child in children:
            yield from self._below(child, pointer_join(pointer, key), parts[1:])
        if not children:
            missing = pointer
            for part in parts:
                missing = pointer_join(missing, part)
            yield Absent(self.located.at(missing))


def _children(value: JsonValue, part: str) -> list[tuple[str | int, JsonValue]]:
    if isinstance(value, dict):
        if part == "*":
            return list(value.items())
        return [(part, value[part])] if part in value else []
    if isinstance(value, list):
        if part == "*":
            return list(enumerate(value))
        return [(int(part), value[int(part)])] if _INDEX.fullmatch(part) and int(part) < len(value) else []
    return []


class JsonPointers(Locator):
    """Places in a JSON file."""

    name = "json"
    reading = Reading.TYPED

    def parse(self, data: bytes, path: str, beside: Mapping[str, bytes] = NOTHING_BESIDE) -> Document:
        """Parse strictly; whatever two readers could read differently is an `InputError`."""
        del beside
        return Document(jsontext.loads_located(data, path))


class YamlPointers(Locator):
    """Places in a YAML file of one document."""

    name = "yaml"
    reading = Reading.TYPED

    def parse(self, data: bytes, path: str, beside: Mapping[str, bytes] = NOTHING_BESIDE) -> Document:
        """Parse strictly; a plain scalar that is no JSON value is text."""
        del beside
        return Document(yamltext.loads_located(data, path))
