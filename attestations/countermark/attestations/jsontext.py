"""Strict JSON: one meaning for every reader.

RFC 8259 leaves duplicate keys, NaN, huge numbers, lone surrogates and depth to the implementation, and implementations differ; a
signed document must not mean two things. Whatever is refused is refused with its line and column.
"""

import json
import math
import re
from collections.abc import Callable

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.attestations.located import JsonValue, Located, pointer_join

MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 64
MAX_INT = 2**53 - 1

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORDS: dict[str, JsonValue] = {"null": None, "true": True, "false": False}


def loads(data: bytes, source: str, *, limit: int = MAX_BYTES) -> JsonValue:
    """The value of a JSON text of at most `limit` bytes; `source` names it in errors. Raises `InputError`."""
    text = _text(data, source, limit)
    try:
        value: JsonValue = _DECODER.decode(text)
        if text.count("{") + text.count("[") > MAX_DEPTH or "\\u" in text:
            _check_tree(value)
    except (InputError, ValueError, RecursionError):
        _Reader(text, source).document()
        raise InputError(Code.SCHEMA_INVALID, "this is not JSON", at=Location(source), fix="write it anew with a JSON library") from None
    return value


def loads_located(data: bytes, source: str, *, limit: int = MAX_BYTES) -> Located:
    """As `loads`, with the line and column of every value; about ten times slower."""
    reader = _Reader(_text(data, source, limit), source)
    value = reader.document()
    return Located(value, source, reader.positions)


def integer(text: str) -> int:
    """The integer that decimal `text` writes; `InputError` beyond 2^53 - 1, where readers begin to differ."""
    if len(text) > 17 or abs(int(text)) > MAX_INT:
        raise InputError(Code.BAD_NUMBER, f"{text[:24]} is beyond 2^53 - 1", fix="write it as a string")
    return int(text)


def decode(data: bytes, source: str) -> str:
    """The text of UTF-8 bytes; `InputError` UNREADABLE with the line of the first byte that is not."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            Code.UNREADABLE, f"byte {error.start} is not UTF-8", at=Location(source, line), fix="save the file as UTF-8"
        ) from None


def _text(data: bytes, source: str, limit: int) -> str:
    if len(data) > limit:
        raise InputError(
            Code.TOO_LARGE, f"{len(data)} bytes; at most {limit} are read", at=Location(source), fix="store large data by digest"
        )
    text = decode(data, source)
    if text.startswith("\ufeff"):
        raise InputError(Code.UNREADABLE, "the text begins with a byte order mark", at=Location(source, 1), fix="save it without one")
    return text


def _unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InputError(Code.DUPLICATE_KEY, "a key stands twice")
    return found


def _real(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise InputError(Code.BAD_NUMBER, f"{text[:24]} is beyond a double", fix="write it as a string")
    return value


def _constant(text: str) -> float:
    raise InputError(Code.BAD_NUMBER, f"{text} is not JSON", fix="leave it out or write null")


def _check_tree(value: JsonValue) -> None:
    waiting: list[tuple[JsonValue, int]] = [(value, 0)]
    while waiting:
        node, depth = waiting.pop()
        if isinstance(node, str):
            node.encode()  # UnicodeEncodeError, a ValueError, for a lone surrogate
        elif isinstance(node, dict | list):
            if depth >= MAX_DEPTH:
                raise InputError(Code.TOO_LARGE, "too deep")
            waiting.extend((child, depth + 1) for child in node)
            if isinstance(node, dict):
                waiting.extend((child, depth + 1) for child in node.values())


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_int=integer, parse_float=_real, parse_constant=_constant)
"""Made once: making one takes as long as reading a small document."""


class _Reader:
    """A recursive-descent reader that remembers where it is; slow, so used for errors and for locators only."""

    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.source = source
        self.positions: dict[str, tuple[int, int]] = {}
        self._line = 1
        self._line_start = 0
        self._counted = 0

    def document(self) -> JsonValue:
        value, end = self._value(self._skip(0), "", 0)
        end = self._skip(end)
        if end != len(self.text):
            raise self._error(Code.SCHEMA_INVALID, end, "something follows the end of the JSON value", "remove it")
        return value

    def _skip(self, at: int) -> int:
        found = _SPACE.match(self.text, at)
        return found.end() if found else at

    def _place(self, at: int) -> tuple[int, int]:
        """Line and column of an offset; offsets come in rising order but for errors."""
        if at < self._counted:
            self._line, self._line_start, self._counted = 1, 0, 0
        self._line += self.text.count("\n", self._counted, at)
        self._line_start = self.text.rfind("\n", 0, at) + 1
        self._counted = at
        return self._line, at - self._line_start + 1

    def _error(self, code: Code, at: int, message: str, fix: str, pointer: str | None = None) -> InputError:
        return InputError(code, message, at=Location(self.source, *self._place(at), pointer), fix=fix)

    def _value(self, at: int, pointer: str, depth: int) -> tuple[JsonValue, int]:
        self.positions[pointer] = self._place(at)
        first = self.text[at : at + 1]
        if depth >= MAX_DEPTH and first in ("{", "["):
            raise self._error(Code.TOO_LARGE, at, f"nested deeper than {MAX_DEPTH}", "flatten the document")
        match first:
            case "{":
                return self._object(at, pointer, depth)
            case "[":
                return self._array(at, pointer, depth)
            case '"':
                return self._string(at)
            case _:
                return self._word(at, pointer)

    def _object(self, at: int, pointer: str, depth: int) -> tuple[JsonValue, int]:
        found: dict[str, JsonValue] = {}

        def member(here: int) -> int:
            if self.text[here : here + 1] != '"':
                raise self._error(Code.SCHEMA_INVALID, here, "a key in double quotes is expected here", "quote it", pointer)
            key, end = self._string(here)
            child = pointer_join(pointer, key)
            if key in found:
                raise self._error(Code.DUPLICATE_KEY, here, f"key {key!r} stands twice in one object", "keep one", child)
            end = self._skip(end)
            if self.text[end : end + 1] != ":":
                raise self._error(Code.SCHEMA_INVALID, end, "':' is expected here", "write key: value", child)
            found[key], end = self._value(self._skip(end + 1), child, depth + 1)
            return end

        return found, self._members(at, "}", member)

    def _array(self, at: int, pointer: str, depth: int) -> tuple[JsonValue, int]:
        found: list[JsonValue] = []

        def element(here: int) -> int:
            value, end = self._value(here, pointer_join(pointer, len(found)), depth + 1)
            found.append(value)
            return end

        return found, self._members(at, "]", element)

    def _members(self, at: int, closing: str, member: Callable[[int], int]) -> int:
        """Read `member , member …` up to `closing`; the offset behind it."""
        at = self._skip(at + 1)
        if self.text[at : at + 1] == closing:
            return at + 1
        while True:
            at = self._skip(member(at))
            mark = self.text[at : at + 1]
            if mark == closing:
                return at + 1
            if mark != ",":
                what = f"',' or '{closing}' is expected here" if mark else "the text ends in the middle of a value"
                raise self._error(Code.SCHEMA_INVALID, at, what, "complete the JSON text")
            at = self._skip(at + 1)

    def _string(self, at: int) -> tuple[str, int]:
        found = _STRING.match(self.text, at)
        try:
            text = json.loads(found.group()) if found else None
            if found and isinstance(text, str):
                text.encode()
                return text, found.end()
        except UnicodeEncodeError:
            raise self._error(Code.SCHEMA_INVALID, at, "the string holds half of a surrogate pair", "write the whole character") from None
        except json.JSONDecodeError:
            pass
        raise self._error(Code.SCHEMA_INVALID, at, "this string is not closed or not escaped rightly", "mend the string")

    def _word(self, at: int, pointer: str) -> tuple[JsonValue, int]:
        number = _NUMBER.match(self.text, at)
        try:
            if number:
                whole, fraction, exponent = number.groups()
                return (_real(number.group()) if fraction or exponent else integer(whole)), number.end()
            for word in ("NaN", "Infinity", "-Infinity"):
                if self.text.startswith(word, at):
                    _constant(word)
        except InputError as error:
            raise self._error(error.code, at, error.message, error.fix, pointer) from None
        for word, value in _WORDS.items():
            if self.text.startswith(word, at):
                return value, at + len(word)
        what = "a JSON value is expected here" if at < len(self.text) else "the text ends where a value is expected"
        raise self._error(Code.SCHEMA_INVALID, at, what, "complete the JSON text", pointer)
