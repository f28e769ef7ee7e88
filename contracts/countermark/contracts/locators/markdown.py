"""Facts in Markdown: the digests that a document quotes, the commands that it shows, and the claims that it marks.

`all-digests` takes every word that is, or was once, a digest: 40 or 64 hex digits; a word of 32 characters or more that is nearly all hex
digits, as a slip of the pen leaves it; and a shorter word that looks like an abbreviated or broken one. That has 7 or more lower-case
hex digits, a letter and a digit among them, and with fewer than 16 it stands free: the parts of a UUID, of a version or of a file's
name do not. `commands` takes each command of a fenced block that names a shell as its language; in a block that shows prompts, what has
none is output. `claims` takes the text of each HTML comment that begins with `claim:`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from countermark.attestations.errors import Location
from countermark.contracts.locators.base import NOTHING_BESIDE, Absent, Found, Locator, Reading, decoded
from countermark.contracts.locators.words import Command, split

_WORD = re.compile(r"[0-9A-Za-z]{7,}")
_HEX = re.compile(r"[0-9A-Fa-f]")
_ABBREVIATION = re.compile(r"(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,31}")
_JOINS_BEFORE = "-_.+~#\\"
_JOINED_AFTER = re.compile(r"[-_+~]|\.\w")
_LONG = 16
_WHOLE = 32
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^\s`{]*)[^`]*$")
_COMMENT = re.compile(r" {0,3}<!--")
"""An HTML block (CommonMark 4.6, kind 2): it goes on to the line that ends the comment."""
_SHELLS = frozenset({"bash", "sh", "shell", "zsh", "console", "shell-session", "sh-session"})
_PROMPT = re.compile(r"[ \t]*[$%] ")
_CLAIM = re.compile(r"<!--\s*claim:\s*(.*?)\s*-->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Page:
    """The text of a Markdown file."""

    text: str
    path: str

    def find(self, argument: str) -> Sequence[Found | Absent]:
        """The facts of the kind that is asked for, in reading order."""
        readers = {"all-digests": self._digests, "commands": self._commands, "claims": self._claims}
        return tuple(readers[argument]()) or (Absent(Location(self.path, 1)),)

    def commands(self) -> Iterator[Command]:
        """The commands of the fenced blocks; `InputError` with the place of a quote that is not closed."""
        for first, block in self._fenced():
            yield from split(block, self.path, first)

    def _digests(self) -> Iterator[Found]:
        for number, line in enumerate(self.text.split("\n"), start=1):
            for word in _WORD.finditer(line):
                if _is_digest(word):
                    yield Found(word.group(), Location(self.path, number, word.start() + 1))

    def _commands(self) -> Iterator[Found]:
        for command in self.commands():
            first = command.words[0]
            yield Found(" ".join(word.shown for word in command.words), Location(self.path, first.line, first.column))

    def _claims(self) -> Iterator[Found]:
        for claim in _CLAIM.finditer(self.text):
            start = claim.start(1)
            line = self.text.count("\n", 0, start) + 1
            yield Found(" ".join(claim[1].split()), Location(self.path, line, start - self.text.rfind("\n", 0, start)))

    def _fenced(self) -> Iterator[tuple[int, str]]:
        """Each fenced block of shell commands that a reader sees, with the number of its first line."""
        lines = [line.rstrip("\r") for line in self.text.split("\n")]
        number = 0
        while number < len(lines):
            if _COMMENT.match(lines[number]):
                number = next((index for index in range(number, len(lines)) if "-->" in lines[index]), len(lines)) + 1
                continue
            opening = _FENCE.match(lines[number])
            number += 1
            if opening:
                end = next((index for index in range(number, len(lines)) if _closes(lines[index], opening[1])), len(lines))
                if opening[2].lower() in _SHELLS:
                    yield number + 1, "\n".join(_without_output(lines[number:end]))
                number = end + 1


def _closes(line: str, fence: str) -> bool:
    closing = line.strip()
    return len(closing) >= len(fence) and set(closing) == {fence[0]} and not line.startswith("    ")


def _without_output(lines: Sequence[str]) -> list[str]:
    """The lines with prompts and output blanked, so that what is left stays where it is."""
    if not any(map(_PROMPT.match, lines)):
        return list(lines)
    shown: list[str] = []
    for line in lines:
        prompt = _PROMPT.match(line)
        goes_on = bool(shown) and shown[-1].endswith("\\")
        shown.append(" " * prompt.end() + line[prompt.end() :] if prompt else line if goes_on else "")
    return shown


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

    def parse(self, data: bytes, path: str, beside: Mapping[str, bytes] = NOTHING_BESIDE) -> Page:
        """Any UTF-8 text is Markdown."""
        del beside
        return Page(decoded(data, path), path)
