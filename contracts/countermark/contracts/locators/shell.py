"""Flags and assignments of shell scripts and rendered command lines. They are read, never run.

A value is what the script writes down: a word, what it assigns to a name, or the default of a reference. What only a run would show,
like the output of a command or an argument of the script, is an error.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.contracts.locators.base import NOTHING_BESIDE, Absent, Found, Locator, Reading, decoded
from countermark.contracts.locators.names import Names
from countermark.contracts.locators.nested import expansions, nested
from countermark.contracts.locators.settings import Setting, Settings, expand, unknowable
from countermark.contracts.locators.words import LITERAL_DOLLAR, Command, Word, split
from countermark.contracts.pins import shown

_NUMBER = re.compile(r"-[0-9.]+")
_SPECIAL = re.compile(r"\$[0-9@*#?!-]")


def assignments(commands: Sequence[Command], path: str) -> dict[str, Setting]:
    """The value of each name that a script assigns; one that is known to a run only is marked so."""
    names = Names(path, lambda word, known: _setting(word, path, known))
    for command in commands:
        names.take(command)
    return names.settings()


def _setting(word: Word, path: str, known: Settings, *, strict: bool = True) -> Setting:
    at = Location(path, word.line, word.column)
    if word.dynamic or (strict and _SPECIAL.search(word.text)):
        raise unknowable(word.shown or "the output of a command", at)
    setting = expand(word.text, at, known, strict=strict)
    return Setting(setting.value.replace(LITERAL_DOLLAR, "$"), setting.at)


def flag_values(commands: Sequence[Command], flag: str, path: str, known: Settings, *, strict: bool = True) -> list[Found]:
    """What stands behind `flag`, as `flag value` or `flag=value`; `true` for one that takes no value. In `--flags`, `_` and `-` are one.

    With `strict`, a name that nothing gives a value to is an `InputError`; without, it is empty text. An error is also a word that
    has the flag in it and was not read as an option, unless its command only shows it.
    """
    found: list[Setting] = []
    for command in commands:
        for word, following in zip(command.words, (*command.words[1:], None), strict=True):
            if word.text.startswith("-") and strip_flag(word.text) == strip_flag(flag) and not word.opaque:
                found.append(_value(word, following, path, known, strict=strict))
            elif not command.shows and _hides(word, flag):
                raise _unread(word, flag, path)
    return [Found(setting.value, setting.at) for setting in found]


def _value(word: Word, following: Word | None, path: str, known: Settings, *, strict: bool) -> Setting:
    name, equals, value = word.text.partition("=")
    if equals:
        return _setting(replace(word, text=value, column=word.column + len(name) + 1), path, known, strict=strict)
    if following is None or _is_flag(following):
        return Setting("true", Location(path, word.line, word.column))
    return _setting(following, path, known, strict=strict)


def _hides(word: Word, flag: str) -> bool:
    """Whether the flag stands in a word that is no option, or in what its braces come to."""
    pattern = re.compile(rf"(?<![\w-]){re.escape(_one_sign(flag))}(?![\w-])")
    return any(pattern.search(_one_sign(text)) for text in expansions(word))


def _unread(word: Word, flag: str, path: str) -> InputError:
    what = "a here-document" if word.opaque else shown(word.shown)
    fix = f"write {flag} as a word of the command that takes it, or point `text` at it"
    message = f"{flag} stands in {what}: what becomes of it is known only when this runs"
    return InputError(Code.UNSUPPORTED, message, at=Location(path, word.line, word.column), fix=fix)


def strip_flag(word: str) -> str:
    """The name of a flag without its value; vLLM takes `_` and `-` for one sign, so they are one here."""
    return _one_sign(word.partition("=")[0])


def _one_sign(text: str) -> str:
    return text.replace("_", "-")


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
        commands = tuple(nested(split(decoded(data, path), path), path))
        return Script(path, commands, assignments(commands, path))
