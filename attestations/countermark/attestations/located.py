"""JSON values: reading those whose shape nobody has checked, walking them, and where in a text each of them stands."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from countermark.attestations.errors import Location

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"


def as_object(value: JsonValue) -> dict[str, JsonValue]:
    """An object as it is; anything else has no members."""
    return value if isinstance(value, dict) else {}


def as_list(value: JsonValue) -> list[JsonValue]:
    """A list as it is; anything else has no elements."""
    return value if isinstance(value, list) else []


def as_integer(value: JsonValue) -> int | None:
    """An integer; a boolean is none, though Python calls it one."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def pointer_join(pointer: str, part: str | int) -> str:
    """The RFC 6901 pointer of a child."""
    return f"{pointer}/{str(part).replace('~', '~0').replace('/', '~1')}"


def pointer_parts(pointer: str) -> list[str]:
    """The unescaped reference tokens of an RFC 6901 pointer; the empty pointer has none."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def walk(value: JsonValue, pointer: str = "") -> Iterator[tuple[str, JsonValue]]:
    """Each value below `value`, itself first, with its pointer; deep values do not exhaust the stack."""
    waiting = [(pointer, value)]
    while waiting:
        here, node = waiting.pop()
        yield here, node
        if isinstance(node, dict):
            waiting.extend((pointer_join(here, key), child) for key, child in reversed(node.items()))
        elif isinstance(node, list):
            waiting.extend((pointer_join(here, number), child) for number, child in reversed(list(enumerate(node))))


@dataclass(frozen=True, slots=True)
class Located:
    """A value and the place (line and column from 1) of each pointer in the text it was read from."""

    value: JsonValue
    source: str
    positions: Mapping[str, tuple[int, int]]

    def at(self, pointer: str) -> Location:
        """Where `pointer` stands; for a value that is missing, where its nearest parent stands."""
        known = pointer
        while known not in self.positions and known:
            known = known.rpartition("/")[0]
        line, column = self.positions.get(known, (None, None))
        return Location(self.source, line, column, pointer or None)
