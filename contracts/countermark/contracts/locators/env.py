"""Environment files (`.env`): one `NAME=value` a line, quotes and comments as Compose reads them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.contracts.locators.base import NOTHING_BESIDE, Absent, Found, Locator, Reading, decoded
from countermark.contracts.locators.settings import Setting, expand

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*(?:[=:][ \t]*(.*))?$")
_QUOTED = re.compile(r"""(['"])((?:\\.|(?!\1).)*)\1[ \t]*(?:#.*)?$""")
_COMMENT = re.compile(r"(?:^|[ \t])#.*$")
_ESCAPED = re.compile(r"\\([\\\"$nrt])")
_SIGNS = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True, slots=True)
class Environment:
    """The assignments of a file in its order; a name that is set twice is here twice."""

    path: str
    lines: tuple[tuple[str, Setting], ...]

    @property
    def settings(self) -> dict[str, Setting]:
        """The value of each name; the last assignment counts."""
        return dict(self.lines)

    def find(self, argument: str) -> Sequence[Found | Absent]:
        """Each value that is assigned to the name."""
        found = tuple(Found(setting.value, setting.at) for name, setting in self.lines if name == argument)
        return found or (Absent(Location(self.path, 1)),)


class EnvFile(Locator):
    """Variables of an environment file."""

    name = "env"
    reading = Reading.TEXT

    def parse(self, data: bytes, path: str, beside: Mapping[str, bytes] = NOTHING_BESIDE) -> Environment:
        """Read assignments; a name without `=` has no value here, anything else is an `InputError`."""
        del beside
        lines: list[tuple[str, Setting]] = []
        for number, line in enumerate(decoded(data, path).removeprefix("\ufeff").split("\n"), start=1):
            if line.strip() and not line.lstrip().startswith("#"):
                lines.extend(_assignment(line.rstrip("\r"), path, number, dict(lines)))
        return Environment(path, tuple(lines))


def _assignment(line: str, path: str, number: int, known: Mapping[str, Setting]) -> list[tuple[str, Setting]]:
    found = _LINE.match(line)
    if not found:
        at = Location(path, number)
        raise InputError(Code.SCHEMA_INVALID, "this line is no NAME=value", at=at, fix="write NAME=value, or begin the line with #")
    name, text = found.groups()
    if text is None:
        return []
    at = Location(path, number, found.start(2) + 1)
    quoted = _QUOTED.match(text)
    if quoted and quoted[1] == "'":
        return [(name, Setting(quoted[2], at))]
    if quoted:
        text = _ESCAPED.sub(lambda sign: "$$" if sign[1] == "$" else _SIGNS.get(sign[1], sign[1]), quoted[2])
    else:
        text = _COMMENT.sub("", text).strip()
    return [(name, Setting(expand(text, at, known).value, at))]
