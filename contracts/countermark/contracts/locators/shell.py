"""Flags and assignments of shell scripts and rendered command lines. They are read, never run.

A value is what the script writes down: a word, what it assigns to a name, or the default of a reference. What only a run would show,
like the output of a command or an argument of the script, is an error.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from countermark.attestations.errors import InputError, Location
from countermark.contracts.locators.base import NOTHING_BESIDE, Absent, Found, Locator, Reading, decoded
from countermark.contracts.locators.settings import Setting, Settings, expand, unknowable
from countermark.contracts.locators.words import LITERAL_DOLLAR, Command, Word, split

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_NUMBER = re.compile(r"-[0-9.]+")
_SPECIAL = re.compile(r"\$[0-9@*#?!-]")
_DECLARING = frozenset({"export", "readonly", "local", "declare", "typeset"})


def assignments(commands: Sequence[Command], path: str) -> dict[str, Setting]:
    """The value of each name that is assigned once, or always to the same; what differs is known to a run only."""
    seen: dict[str, Setting] = {}
    unknown: set[str] = set()
    for word in (word for command in commands for word in _assigning(command)):
        found = _ASSIGNMENT.match(word.text)
        if not found:
            continue
        name, value = found[1], replace(word, text=word.text[found.end() :], column=word.column + found.end())
        try:
            setting = _setting(value, path, {other: known for other, known in seen.items() if other != name})
        except InputError:
            unknown.add(name)
        else:
            if found[2] or seen.setdefault(name, setting).value != setting.value:
                unknown.add(name)
    return {name: setting for name, setting in seen.items() if name not in unknown}


def _assigning(command: Command) -> Sequence[Word]:
    words = command.words[1:] if command.words[0].text in _DECLARING else command.words
    others = (index for index, word in enumerate(words) if not _ASSIGNMENT.match(word.text) and not word.text.startswith("-"))
    return words[: next(others, len(words))]


def _setting(word: Word, path: str, known: Settings, *, strict: bool = True) -> Setting:
    at = Location(path, word.line, word.column)
    if word.dynamic or (strict and _SPECIAL.search(word.text)):
        raise unknowable(word.shown or "the output of a command", at)
    setting = expand(word.text, at, known, strict=strict)
    return Setting(setting.value.replace(LITERAL_DOLLAR, "$"), setting.at)


def flag_values(commands: Sequence[Command], flag: str, path: str, known: Settings, *, strict: bool = True) -> list[Found]:
    """What stands behind `flag`, as `flag value` or `flag=value`; `true` for one that takes no value.

    With `strict`, a name that nothing gives a value to is an `InputError`; without, it is empty text.
    """
    found: list[Setting] = []
    for command in commands:
        for word, following in zip(command.words, (*command.words[1:], None), strict=True):
            if word.text.startswith(f"{flag}="):
                behind = replace(word, text=word.text[len(flag) + 1 :], column=word.column + len(flag) + 1)
                found.append(_setting(behind, path, known, strict=strict))
            elif word.text == flag and (following is None or _is_flag(following)):
                found.append(Setting("true", Location(path, word.line, word.column)))
            elif word.text == flag and following:
                found.append(_setting(following, path, known, strict=strict))
    return [Found(setting.value, setting.at) for setting in found]


def strip_flag(word: str) -> str:
    """The name of a flag without its value; vLLM takes `_` and `-` for one sign, so they are one here."""
    return word.partition("=")[0].replace("_", "-")


def _is_flag(word: Word) -> bool:
    return word.text.startswith("-") and not _NUMBER.fullmatch(word.text)


@dataclass(frozen=True, slots=True)
class Script:
    """The commands of a script and the names it assigns."""

    path: str
    commands: tuple[Command, ...]
    known: Settings

    def find(self, argument: str) -> Sequence[Found | Absent]:
        """Each value that the flag is given."""
        return tuple(flag_values(self.commands, argument, self.path, self.known)) or (Absent(Location(self.path, 1)),)


class Arguments(Locator):
    """Flags of the commands in a shell script or a file with rendered command lines."""

    name = "args"
    reading = Reading.TEXT

    def parse(self, data: bytes, path: str, beside: Mapping[str, bytes] = NOTHING_BESIDE) -> Script:
        """Split the script into words; `InputError` with the place of a quote that is not closed."""
        del beside
        commands = split(decoded(data, path), path)
        return Script(path, commands, assignments(commands, path))
