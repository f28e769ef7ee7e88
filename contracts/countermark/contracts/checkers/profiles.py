"""What checks read of a profile: its fields, its configuration keys and its command line, each value with its place."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location, NothingError
from countermark.attestations.located import pointer_join
from countermark.contracts.checkers.base import Case
from countermark.contracts.checkers.records import Record, record
from countermark.contracts.locators.base import Found
from countermark.contracts.locators.shell import strip_flag
from countermark.contracts.locators.words import split
from countermark.contracts.terms import Profile

_FLAG: Final = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")


@dataclass(frozen=True, slots=True)
class Configuration:
    """The configuration keys of a profile."""

    profile: Profile
    at: Location
    values: Mapping[str, Found]


def configuration(case: Case, profile: Profile) -> Configuration:
    """The keys at the `config` of a profile, an object or the `NAME=value` list of a Compose service."""
    if profile.config is None:
        raise _not_said(profile, "config", "where its configuration stands")
    file = _file(case, profile)
    found = _stands(file, profile.config, profile)
    if isinstance(found.value, dict):
        values = {key: value for key in found.value for value in file.find(pointer_join(profile.config, key))}
    elif isinstance(found.value, list):
        items = [item for item in file.find(f"{profile.config}/*") if isinstance(item.value, str)]
        values = {str(item.value).partition("=")[0]: Found(str(item.value).partition("=")[2], item.at) for item in items}
    else:
        raise InputError(Code.SCHEMA_INVALID, "this is no object with keys", at=found.at, fix="point `config` at the object")
    return Configuration(profile, file.at(profile.config), values)


def command_line(case: Case, profile: Profile) -> Sequence[Found]:
    """The words at the `argv` of a profile: a list as it is, a text split as a shell splits it."""
    if profile.argv is None:
        raise _not_said(profile, "argv", "where its command line stands")
    file = _file(case, profile)
    found = _stands(file, profile.argv, profile)
    if isinstance(found.value, list):
        return file.find(f"{profile.argv}/*")
    if not isinstance(found.value, str):
        raise InputError(Code.SCHEMA_INVALID, "this is no command line", at=found.at, fix="point `argv` at the list or the text")
    lines = case.tree.read(profile.file).decode("utf-8").split("\n")
    words = [word for command in split(found.value, found.at.file, found.at.line or 1) for word in command.words]
    return [Found(word.shown, _within(lines, found.at, word.shown)) for word in words]


def _within(lines: Sequence[str], at: Location, text: str) -> Location:
    """Where a text stands from `at` on: a scalar over several lines is known by the first of them only."""
    start = (at.line or 1) - 1
    numbers = [number for number, line in enumerate(lines[start:], start=start + 1) if text in line]
    return Location(at.file, numbers[0], lines[numbers[0] - 1].find(text) + 1, at.pointer) if numbers else at


def field_of(case: Case, profile: Profile, name: str) -> Found:
    """The value of a named field of a profile; `InputError` for a field that the contract does not give it."""
    pointer = profile.fields.get(name)
    if pointer is None:
        raise _not_said(profile, f"fields: {name}", f"where its {name} stands")
    found = _stands(_file(case, profile), pointer, profile)
    if found.value is None:
        raise _nothing(found.at, profile)
    return found


def flags(words: Sequence[Found]) -> list[tuple[str, Found]]:
    """The flags of the words, each by its name without a value, `_` and `-` being one sign.

    A word with blanks in it is what a shell is given to run, or several words that somebody wrote as one: every flag in it counts.
    """
    return [(strip_flag(name), word) for word in words for name in _flags_in(str(word.value))]


def _flags_in(text: str) -> list[str]:
    if any(map(str.isspace, text.strip())):
        return _FLAG.findall(text)
    return [text] if text.startswith("-") else []


def _file(case: Case, profile: Profile) -> Record:
    return record(case, profile.file)


def _stands(file: Record, pointer: str, profile: Profile) -> Found:
    found = file.find(pointer)
    if not found:
        raise _nothing(file.at(pointer), profile)
    return found[0]


def _nothing(at: Location, profile: Profile) -> NothingError:
    message = f"nothing at {at.pointer} for profile {profile.name}"
    return NothingError(Code.NOTHING_EVALUATED, message, at=at, fix="write the value, or correct the pointer in the contract")


def _not_said(profile: Profile, field: str, what: str) -> InputError:
    message = f"profile {profile.name} does not say {what}"
    return InputError(Code.SCHEMA_INVALID, message, at=profile.at, fix=f"give the profile `{field}`")
