"""What the names of a shell script stand for: a value where it is always the same, else something that is known only when it runs.

A name counts as known when every way to set it that the script has gives one value. What a loop, `read`, arithmetic, a sourced file or
an evaluated text sets no reader can tell.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from countermark.attestations.errors import InputError, Location
from countermark.contracts.locators.settings import Setting, Settings
from countermark.contracts.locators.words import Command, Word

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[^]]*\])?(\+?)=")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BY_DEFAULT = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*):?=")
_RESERVED = frozenset({"if", "then", "else", "elif", "do", "while", "until", "!", "{", "time", "command", "builtin", "exec"})
_DECLARING = frozenset({"export", "readonly", "local", "declare", "typeset", "env"})
_KEEPING = frozenset({"export", "readonly", "env"})
"""Those of which a name without a value leaves the value as it is."""
_SETTING = frozenset({"for", "select", "read", "unset", "mapfile", "readarray", "getopts", "let", "wait"})
_RUNNING = frozenset({".", "source", "eval"})

Read = Callable[[Word, Settings], Setting]
"""The value of a word, or an `InputError` for one that only a run would show."""


@dataclass(slots=True)
class Names:
    """The names seen so far. Those in `unknown` have more than one value, or one that is known only when the script runs."""

    path: str
    read: Read
    seen: dict[str, Setting] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)

    def settings(self) -> dict[str, Setting]:
        """Every name with its value, or as one that has none which can be told."""
        nowhere = Location(self.path)
        known = {name: setting for name, setting in self.seen.items() if name not in self.unknown}
        return known | {name: replace(self.seen.get(name, Setting("", nowhere)), known=False) for name in self.unknown}

    def take(self, command: Command) -> None:
        """Go over one command."""
        words = _without_reserved(command.words)
        for word in command.words:
            self.unknown.update(name[1] for name in _BY_DEFAULT.finditer(word.text) if name[1] in self.seen)
        if command.computes:
            self._computed(command.words[0].text)
        elif words:
            self._command(words)

    def _command(self, words: Sequence[Word]) -> None:
        first = words[0].text
        leading = list(_leading(words))
        for word in words:
            found = _ASSIGNMENT.match(word.text)
            if found and (word in leading or found[1] in self.seen):
                self._assign(found, word)
        if first in _SETTING or (first == "printf" and any(word.text.startswith("-v") for word in words)):
            self.unknown.update(name for word in words[1:] for name in _NAME.findall(word.text))
        elif first in _DECLARING - _KEEPING:
            self.unknown.update(word.text for word in words[1:] if _NAME.fullmatch(word.text))
        elif first in _RUNNING:
            self.unknown.update(self.seen)

    def _computed(self, text: str) -> None:
        """Arithmetic that assigns (bash, "Shell Arithmetic")."""
        if re.search(r"(?<![=!<>])=(?!=)|\+\+|--|<<=|>>=", text):
            self.unknown.update(_NAME.findall(text))

    def _assign(self, found: re.Match[str], word: Word) -> None:
        name = found[1]
        value = replace(word, text=word.text[found.end() :], column=word.column + found.end())
        try:
            setting = self.read(value, {other: known for other, known in self.settings().items() if other != name})
        except InputError:
            self.unknown.add(name)
            return
        if found[2] or found[3] or self.seen.setdefault(name, setting).value != setting.value:
            self.unknown.add(name)


def _without_reserved(words: Sequence[Word]) -> Sequence[Word]:
    start = next((index for index, word in enumerate(words) if word.text not in _RESERVED), len(words))
    return words[start:]


def _leading(words: Sequence[Word]) -> Iterator[Word]:
    """The words that are assignments because of where they stand."""
    declaring = words[0].text in _DECLARING
    for word in words[1:] if declaring else words:
        if _ASSIGNMENT.match(word.text):
            yield word
        elif not word.text.startswith("-"):
            return
