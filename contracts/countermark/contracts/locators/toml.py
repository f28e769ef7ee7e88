"""Pointers into TOML 1.0. The standard library reads the values; this finds where each key stands, which it does not tell."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.attestations.jsontext import MAX_INT
from countermark.attestations.located import JsonValue, Located, pointer_join
from countermark.contracts.locators.base import NOTHING_BESIDE, Locator, Reading, decoded
from countermark.contracts.locators.structured import Document

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_KEY = re.compile(r"""[ \t]*([A-Za-z0-9_-]+|"(?:\\.|[^"\\])*"|'[^']*')[ \t]*(\.?)""")
_STRING = re.compile(r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\])*"|\'[^\']*\'', re.DOTALL)
_BARE = re.compile(r"[^,\]}#\n]+")
_WHERE = re.compile(r"line (\d+), column (\d+)")


class TomlPointers(Locator):
    """Places in a TOML file."""

    name = "toml"
    reading = Reading.TYPED

    def parse(self, data: bytes, path: str, beside: Mapping[str, bytes] = NOTHING_BESIDE) -> Document:
        """Parse strictly; dates and times become the text of RFC 3339."""
        del beside
        text = decoded(data, path)
        try:
            value = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            where = _WHERE.search(str(error))
            at = Location(path, int(where[1]), int(where[2])) if where else Location(path, text.count("\n") + 1)
            raise InputError(Code.SCHEMA_INVALID, str(error).partition(" (at")[0], at=at, fix="mend the TOML") from None
        except RecursionError:
            raise InputError(Code.TOO_LARGE, "nested too deep", at=Location(path), fix="flatten the document") from None
        places = _Places(text.replace("\r\n", "\n"))
        places.document()
        positions = Located(None, path, places.found)
        return Document(Located(_json(value, "", positions), path, places.found))


def _json(value: object, pointer: str, located: Located) -> JsonValue:
    if isinstance(value, dict):
        return {str(key): _json(child, pointer_join(pointer, str(key)), located) for key, child in value.items()}
    if isinstance(value, list):
        return [_json(child, pointer_join(pointer, index), located) for index, child in enumerate(value)]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    too_big = isinstance(value, int) and abs(value) > MAX_INT
    if too_big or (isinstance(value, float) and value - value != 0):
        raise InputError(Code.BAD_NUMBER, f"{value} is no JSON number", at=located.at(pointer), fix="write it as a string")
    assert isinstance(value, bool | int | float | str)
    return value


@dataclass(slots=True)
class _Places:
    """Goes over a text that is valid TOML and notes line and column of each key and element."""

    text: str
    at: int = 0
    found: dict[str, tuple[int, int]] = field(default_factory=dict)
    arrays: dict[str, int] = field(default_factory=dict)

    def document(self) -> None:
        table = ""
        self._note("", 0)
        while (start := self._skip()) < len(self.text):
            if self.text.startswith("[[", start):
                table = self._header(start, 2, repeated=True)
            elif self.text[start] == "[":
                table = self._header(start, 1, repeated=False)
            else:
                self._pair(table)

    def _skip(self) -> int:
        blank = _SPACE.match(self.text, self.at)
        self.at = blank.end() if blank else self.at
        return self.at

    def _note(self, pointer: str, start: int) -> None:
        self.found.setdefault(pointer, (self.text.count("\n", 0, start) + 1, start - self.text.rfind("\n", 0, start)))

    def _keys(self) -> list[str]:
        keys: list[str] = []
        while part := _KEY.match(self.text, self.at):
            self.at = part.end()
            key = part[1]
            keys.append(tomllib.loads(f"k={key}")["k"] if key[0] in "\"'" else key)
            if not part[2]:
                break
        return keys

    def _header(self, start: int, width: int, *, repeated: bool) -> str:
        self.at = start + width
        keys = self._keys()
        self.at += width
        table = ""
        for index, key in enumerate(keys):
            table = pointer_join(table, key)
            if index == len(keys) - 1 and repeated:
                self.arrays[table] = self.arrays.get(table, -1) + 1
            self._note(table, start)
            if table in self.arrays:
                table = pointer_join(table, self.arrays[table])
                self._note(table, start)
        return table

    def _pair(self, table: str) -> None:
        start, pointer = self.at, table
        for key in self._keys():
            pointer = pointer_join(pointer, key)
            self._note(pointer, start)
        self.at = self.text.index("=", self.at) + 1
        self._value(pointer)

    def _value(self, pointer: str) -> None:
        start = self._skip()
        self._note(pointer, start)
        if self.text[start] in "[{":
            self._inside(pointer, start)
            return
        value = (_STRING if self.text[start] in "\"'" else _BARE).match(self.text, start)
        self.at = value.end() if value else start + 1

    def _inside(self, pointer: str, start: int) -> None:
        count, in_list = 0, self.text[start] == "["
        self.at = start + 1
        while self.text[self._skip()] not in "]}":
            if self.text[self.at] == ",":
                self.at += 1
            elif in_list:
                self._value(pointer_join(pointer, count))
                count += 1
            else:
                self._pair(pointer)
        self.at += 1
