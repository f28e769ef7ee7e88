"""Facts in Markdown: the digests that a document quotes.

`all-digests` takes every word that is, or was once, a digest: 40 or 64 hex digits; a word of 32 characters or more that is nearly all hex
digits, as a slip of the pen leaves it; and a shorter word that looks like an abbreviated or broken one. That has 7 or more lower-case
hex digits, a letter and a digit among them, and with fewer than 16 it stands free: the parts of a UUID, of a version or of a file's
name do not.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.contracts.locators.base import Absent, Found, Locator, Reading

_WORD = re.compile(r"[0-9A-Za-z]{7,}")
_HEX = re.compile(r"[0-9A-Fa-f]")
_ABBREVIATION = re.compile(r"(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,31}")
_JOINS_BEFORE = "-_.+~#\\"
_JOINED_AFTER = re.compile(r"[-_+~]|\.\w")
_LONG = 16
_WHOLE = 32


@dataclass(frozen=True, slots=True)
class Page:
    """The text of a Markdown file."""

    text: str
    path: str

    def find(self, argument: str) -> Sequence[Found | Absent]:
        """The digests of the page in reading order."""
        del argument  # all-digests is the only one that `unsupported` lets through
        return tuple(self._digests()) or (Absent(Location(self.path)),)

    def _digests(self) -> Iterator[Found]:
        for number, line in enumerate(self.text.split("\n"), start=1):
            for word in _WORD.finditer(line):
                if _is_digest(word):
                    yield Found(word.group(), Location(self.path, number, word.start() + 1))


def _is_digest(word: re.Match[str]) -> bool:
    text = word.group()
    if len(text) >= _WHOLE:
        return len(_HEX.findall(text)) * 8 >= len(text) * 7
    return _ABBREVIATION.fullmatch(text) is not None and (len(text) >= _LONG or _stands_free(word))


def _stands_free(word: re.Match[str]) -> bool:
    joined_before = word.start() > 0 and word.string[word.start() - 1] in _JOINS_BEFORE
    return not joined_before and not _JOINED_AFTER.match(word.string, word.end())


class Markdown(Locator):
    """Facts in a document for people."""

    name = "markdown"
    reading = Reading.PROSE

    def unsupported(self, argument: str) -> str | None:
        """Only digests are read; commands and claims are not."""
        return None if argument == "all-digests" else f"markdown: {argument} is not built in this version"

    def parse(self, data: bytes, path: str) -> Page:
        """Any UTF-8 text is Markdown."""
        try:
            return Page(data.decode("utf-8"), path)
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise InputError(
                Code.UNREADABLE, f"byte {error.start} is not UTF-8", at=Location(path, line), fix="save the file as UTF-8"
            ) from None
