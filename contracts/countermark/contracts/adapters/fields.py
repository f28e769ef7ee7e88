"""An outside document as an adapter sees it: every value with its place, and reading that never fails.

Somebody else wrote these documents. What is absent there, or of another type than is asked for, is not recorded: the answer is `None`,
never an exception and never a guess.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self

from countermark.attestations import jsontext, yamltext
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, Location
from countermark.attestations.located import JsonValue, Located, pointer_join, pointer_parts
from countermark.attestations.times import Instant

_HEX64: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_GIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)
_OCI: Final = re.compile(r"sha256:([0-9a-f]{64})", re.ASCII)
_YAML_NAMES: Final = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class File:
    """The bytes of a file, and its name relative to the folder of the document it belongs to."""

    name: str
    data: bytes

    @property
    def digest(self) -> Digest:
        """The SHA-256 of the bytes."""
        return Digest.of(DigestKind.FILE, self.data)


@dataclass(frozen=True, slots=True)
class Field:
    """One value of a document, present or not."""

    document: Located
    pointer: str
    value: JsonValue

    @classmethod
    def of(cls, file: File) -> Self:
        """The whole document: YAML by its name, else JSON. `InputError` where the text is neither."""
        read = yamltext.loads_located if file.name.endswith(_YAML_NAMES) else jsontext.loads_located
        located = read(file.data, file.name)
        return cls(located, "", located.value)

    def __getitem__(self, part: str | int) -> Self:
        """A member by its key, or an element by its number."""
        found: JsonValue = None
        if isinstance(self.value, dict) and isinstance(part, str):
            found = self.value.get(part)
        elif isinstance(self.value, list) and isinstance(part, int) and 0 <= part < len(self.value):
            found = self.value[part]
        return type(self)(self.document, pointer_join(self.pointer, part), found)

    def find(self, pointer: str) -> Self:
        """The value at an RFC 6901 pointer that starts here."""
        found = self
        for part in pointer_parts(pointer):
            found = found[int(part) if isinstance(found.value, list) and part.isdecimal() and len(part) < 8 else part]
        return found

    @property
    def at(self) -> Location:
        """Where it stands, or would stand."""
        return self.document.at(self.pointer)

    @property
    def present(self) -> bool:
        """Whether something is recorded there; `null` is nothing."""
        return self.value is not None

    @property
    def elements(self) -> tuple[Self, ...]:
        """The elements of a list; none of anything else."""
        return tuple(self[number] for number in range(len(self.value))) if isinstance(self.value, list) else ()

    @property
    def members(self) -> Iterator[tuple[str, Self]]:
        """The members of an object by key, in the order of the document; none of anything else."""
        return ((key, self[key]) for key in (self.value if isinstance(self.value, dict) else {}))

    @property
    def text(self) -> str | None:
        """Text, the empty one included."""
        return self.value if isinstance(self.value, str) else None

    @property
    def flag(self) -> bool | None:
        """A real boolean; neither 1 nor "true" is one."""
        return self.value if isinstance(self.value, bool) else None

    @property
    def integer(self) -> int | None:
        """An integer; a boolean or `1.0` is none."""
        return self.value if isinstance(self.value, int) and not isinstance(self.value, bool) else None

    @property
    def count(self) -> int | None:
        """An integer from 0."""
        return self.integer if (self.integer or 0) >= 0 else None

    @property
    def positive(self) -> int | None:
        """An integer from 1."""
        return self.integer if (self.integer or 0) > 0 else None

    @property
    def number(self) -> float | None:
        """An integer or a real number, for arithmetic only."""
        return float(self.value) if isinstance(self.value, int | float) and not isinstance(self.value, bool) else None

    @property
    def hex64(self) -> str | None:
        """The bare hex of a SHA-256."""
        return self.value if isinstance(self.value, str) and _HEX64.fullmatch(self.value) else None

    @property
    def git_id(self) -> str | None:
        """A whole git object id, without a kind."""
        return self.value if isinstance(self.value, str) and _GIT.fullmatch(self.value) else None

    @property
    def oci_hex(self) -> str | None:
        """The hex of a `sha256:HEX64`, as image digests are written."""
        found = _OCI.fullmatch(self.value) if isinstance(self.value, str) else None
        return found[1] if found else None

    @property
    def time(self) -> str | None:
        """A time by RFC 3339 with an offset, in UTC."""
        return instant(self.value) if isinstance(self.value, str) else None


def instant(text: str) -> str | None:
    """A time by RFC 3339 with an offset, in UTC; none where the text is another."""
    try:
        utc = str(Instant.parse(text))
        Instant.parse(utc)
    except InputError:
        return None
    return utc


def shown(value: JsonValue, limit: int = 120) -> str:
    """A value in few words for people; nothing recorded is told as such."""
    if value is None:
        return "not recorded"
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    plain = str(value).lower() if isinstance(value, bool) else str(value)
    text = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in plain[: limit + 1])
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
