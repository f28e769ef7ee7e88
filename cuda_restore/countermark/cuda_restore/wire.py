"""The snapshot store's JSON dialect: one canonical form going out, strict reading coming in.

Canonical form: keys sorted, `,` and `:` without spaces, ASCII only. Coming in, key sets are exact and an integer is an integer:
`true` and `1.0` are refused where 1 is meant. A rule that spans fields is checked by the type that holds them, which names the place
relative to itself; `placed` turns that into the place in the file.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Self, TypeVar

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, Location
from countermark.attestations.located import JsonValue, pointer_join

Word = TypeVar("Word", bound=StrEnum)


def canonical(value: JsonValue) -> bytes:
    """The bytes that this format hashes for `value`."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


def refusal(subject: str, pointer: str, message: str, fix: str, code: Code = Code.SCHEMA_INVALID) -> InputError:
    """The error for a rule broken at `pointer` of `subject`, a file or the name of a type."""
    return InputError(code, message, at=Location(subject, pointer=pointer or None), fix=fix)


@contextmanager
def placed(source: str, pointer: str = "") -> Iterator[None]:
    """Errors raised inside by a type's own rules name `source`, and their pointers begin at `pointer`; placed ones stay as they are."""
    try:
        yield
    except InputError as error:
        if error.at and error.at.file == source:
            raise
        inner = error.at.pointer if error.at and error.at.pointer else ""
        raise InputError(error.code, error.message, at=Location(source, pointer=pointer + inner or None), fix=error.fix) from None


@dataclass(frozen=True, slots=True)
class Fields:
    """The members of one JSON object, read by name and type. Every method raises `InputError` with the member's pointer."""

    members: Mapping[str, JsonValue]
    source: str
    pointer: str = ""

    @classmethod
    def of(cls, value: JsonValue, source: str, pointer: str = "") -> Self:
        """The members of `value`, which must be an object."""
        if not isinstance(value, dict):
            raise refusal(source, pointer, f"an object is expected, not {_kind(value)}", "write a JSON object here")
        return cls(value, source, pointer)

    def exact(self, required: Collection[str], optional: Collection[str] = ()) -> Self:
        """These fields, after checking that no key is missing and none is unknown."""
        if len(self.members) == len(required) and all(key in self.members for key in required):
            return self
        for key in sorted(set(required) - self.members.keys()):
            raise self.refuse(key, f"the key {key!r} is missing", "add it; the key set is exact")
        for key in sorted(self.members.keys() - set(required) - set(optional)):
            raise self.refuse(key, f"the key {key!r} is not part of this format", "remove it; the key set is exact")
        return self

    def refuse(self, name: str, message: str, fix: str, code: Code = Code.SCHEMA_INVALID) -> InputError:
        """The error for member `name`."""
        return refusal(self.source, pointer_join(self.pointer, name), message, fix, code)

    def integer(self, name: str) -> int:
        """An integer; a boolean or a real number is none."""
        value = self.members[name]
        if type(value) is not int:
            raise self.refuse(name, f"{name} is {_kind(value)}, not an integer", "write a JSON integer", Code.BAD_NUMBER)
        return value

    def text(self, name: str) -> str:
        """A string that is not empty."""
        value = self.members[name]
        if not isinstance(value, str) or not value:
            raise self.refuse(name, f"{name} is {_kind(value)}, not a text", "write a JSON string that is not empty")
        return value

    def constant(self, name: str, wanted: str | int) -> None:
        """Check that the member is exactly `wanted`, type included."""
        value = self.members[name]
        if type(value) is not type(wanted) or value != wanted:
            raise self.refuse(
                name, f"{name} is {value!r}, not {wanted!r}", f"write {wanted!r}, or read the file with a program that knows it"
            )

    def sha256(self, name: str) -> str:
        """The 64 lower-case hex digits of a SHA-256."""
        return self.digest(name, DigestKind.FILE).hex

    def digest(self, name: str, kind: DigestKind) -> Digest:
        """A bare SHA-256 in hex, which this place makes a digest of `kind`."""
        value = self.members[name]
        if not isinstance(value, str):
            raise self.refuse(name, f"{name} is {_kind(value)}, not a SHA-256", "write 64 lower-case hex digits", Code.BAD_DIGEST)
        try:
            return Digest(kind, value)
        except InputError as error:
            raise self.refuse(name, error.message, error.fix, error.code) from None

    def array(self, name: str) -> list[JsonValue]:
        """A list."""
        value = self.members[name]
        if not isinstance(value, list):
            raise self.refuse(name, f"{name} is {_kind(value)}, not a list", "write a JSON list")
        return value

    def choice(self, name: str, words: type[Word]) -> Word:
        """One of a closed list of words."""
        text = self.text(name)
        try:
            return words(text)
        except ValueError:
            known = ", ".join(word for word in words if word)
            raise self.refuse(name, f"{name} is {text!r}", f"use one of {known}", Code.UNKNOWN_NAME) from None

    def integers(self, name: str) -> tuple[int, ...]:
        """A list of integers."""
        return tuple(self._element(name, number).integer(str(number)) for number in range(len(self.array(name))))

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings that are not empty."""
        return tuple(self._element(name, number).text(str(number)) for number in range(len(self.array(name))))

    def child(self, name: str) -> "Fields":
        """An object."""
        return Fields.of(self.members[name], self.source, pointer_join(self.pointer, name))

    def children(self, name: str) -> Iterator["Fields"]:
        """A list of objects."""
        base = pointer_join(self.pointer, name)
        for number, value in enumerate(self.array(name)):
            yield Fields.of(value, self.source, pointer_join(base, number))

    def _element(self, name: str, number: int) -> "Fields":
        return Fields({str(number): self.array(name)[number]}, self.source, pointer_join(self.pointer, name))


def _kind(value: JsonValue) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a real number"
        case str():
            return "a text" if value else "an empty text"
        case list():
            return "a list"
        case _:
            return "an object"
