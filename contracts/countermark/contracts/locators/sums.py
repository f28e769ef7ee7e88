"""Checksum lists as `sha256sum` writes them (GNU coreutils, "md5sum invocation"), and in the form of BSD."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.contracts.locators.base import NOTHING_BESIDE, Absent, Found, Locator, Reading, decoded

_GNU = re.compile(r"(\\?)([0-9A-Za-z]+) [ *](.+)")
_BSD = re.compile(r"SHA256 \((.+)\) = ([0-9A-Za-z]+)")
_ESCAPES = {"\\n": "\n", "\\r": "\r", "\\\\": "\\"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a list."""

    path: str
    digest: str
    at: Location


@dataclass(frozen=True, slots=True)
class ChecksumList:
    """The entries of a list in its order."""

    path: str
    entries: tuple[Entry, ...]

    def find(self, argument: str) -> Sequence[Found | Absent]:
        """Each checksum that is listed for the path."""
        found = tuple(
            Found(entry.digest, entry.at) for entry in self.entries if entry.path.removeprefix("./") == argument.removeprefix("./")
        )
        return found or (Absent(Location(self.path, 1)),)


class Sums(Locator):
    """Checksums of files."""

    name = "sums"
    reading = Reading.TEXT

    def parse(self, data: bytes, path: str, beside: Mapping[str, bytes] = NOTHING_BESIDE) -> ChecksumList:
        """Read every line; `InputError` for one that lists nothing."""
        del beside
        lines = enumerate(decoded(data, path).split("\n"), start=1)
        return ChecksumList(path, tuple(_entry(line.rstrip("\r"), path, number) for number, line in lines if line.strip()))


def _entry(line: str, path: str, number: int) -> Entry:
    if bsd := _BSD.fullmatch(line):
        return Entry(bsd[1], bsd[2], Location(path, number, bsd.start(2) + 1))
    gnu = _GNU.fullmatch(line)
    if not gnu:
        at = Location(path, number)
        raise InputError(Code.SCHEMA_INVALID, "this line lists no checksum", at=at, fix="write it as sha256sum does")
    name = re.sub(r"\\[nr\\]", lambda sign: _ESCAPES[sign.group()], gnu[3]) if gnu[1] else gnu[3]
    return Entry(name, gnu[2], Location(path, number, gnu.start(2) + 1))
