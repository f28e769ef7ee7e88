"""Fields of a predicate that somebody else defined: each is of the type that its specification gives it, or it is an error."""

from collections.abc import Mapping, Sequence
from typing import NoReturn

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.attestations.located import JsonValue, pointer_join
from countermark.attestations.times import Instant


class Fields:
    """An object at a pointer. Every method raises `InputError` SCHEMA_INVALID for a field of another type, and for an absent one that is
    not optional; an optional one that is absent, or null, is empty."""

    def __init__(self, value: JsonValue, pointer: str) -> None:
        self.pointer = pointer
        self._fields: Mapping[str, JsonValue] = value if isinstance(value, dict) else self._refuse(pointer, "an object")

    def has(self, name: str) -> bool:
        """Whether a field is there, whatever it is."""
        return name in self._fields

    def needed(self, name: str) -> str:
        """A text that is not empty."""
        return self.text(name) or self._refuse(pointer_join(self.pointer, name), "a text that is not empty")

    def text(self, name: str, *, optional: bool = False) -> str | None:
        """A text."""
        value, at = self._get(name, optional=optional)
        return value if isinstance(value, str | None) else self._refuse(at, "text")

    def time(self, name: str, *, optional: bool = False) -> str | None:
        """A time of RFC 3339, as it is written."""
        text = self.text(name, optional=optional)
        if text is not None:
            Instant.parse(text, at=Location(pointer_join(self.pointer, name)))
        return text

    def one_of(self, name: str, words: Sequence[str]) -> str:
        """One of these words."""
        text = self.needed(name)
        return text if text in words else self._refuse(pointer_join(self.pointer, name), f"one of {', '.join(words)}")

    def object(self, name: str, *, optional: bool = False) -> "Fields":
        """An object."""
        value, at = self._get(name, optional=optional)
        return Fields({} if value is None else value, at)

    def objects(self, name: str, *, optional: bool = False) -> tuple["Fields", ...]:
        """A list of objects."""
        items, at = self._list(name, optional=optional)
        return tuple(Fields(item, pointer_join(at, number)) for number, item in enumerate(items))

    def texts(self, name: str, *, optional: bool = False) -> tuple[str, ...]:
        """A list of texts."""
        items, at = self._list(name, optional=optional)
        return tuple(item if isinstance(item, str) else self._refuse(at, "a list of texts") for item in items)

    def texts_by_name(self, name: str) -> dict[str, str]:
        """An object of texts, which may be absent."""
        value, at = self._get(name, optional=True)
        if not isinstance(value, dict | None):
            self._refuse(at, "an object of texts")
        return {key: item if isinstance(item, str) else self._refuse(at, "an object of texts") for key, item in (value or {}).items()}

    def _list(self, name: str, *, optional: bool) -> tuple[Sequence[JsonValue], str]:
        value, at = self._get(name, optional=optional)
        return (value or [], at) if isinstance(value, list | None) else self._refuse(at, "a list")

    def _get(self, name: str, *, optional: bool) -> tuple[JsonValue, str]:
        value, at = self._fields.get(name), pointer_join(self.pointer, name)
        if value is None and not optional:
            self._refuse(at, "there")
        return value, at

    def _refuse(self, pointer: str, expected: str) -> NoReturn:
        message = f"{pointer} must be {expected}"
        raise InputError(Code.SCHEMA_INVALID, message, at=Location("predicate", pointer=pointer), fix="have it made by its specification")
