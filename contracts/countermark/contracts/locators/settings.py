"""Names with values, and texts that refer to them: `$NAME`, `${NAME}`, `${NAME:-default}` and their relatives.

Compose files, environment files, Dockerfiles and shell scripts share this notation (Compose specification, "Interpolation"; POSIX
shell, 2.6.2). A text that is nothing but one reference stands where the name got its value, so one change is found in one place.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BRACED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(:?[-?+=])?")
_MAX_DEPTH = 16


@dataclass(frozen=True, slots=True)
class Setting:
    """A text and where it stands; one that is not `known` is known only when the file runs."""

    value: str
    at: Location
    known: bool = True


Settings = Mapping[str, Setting]


@dataclass(frozen=True, slots=True)
class Reference:
    """One `${NAME…}`; `operator` is empty, or one of `:-` `-` `:?` `?` `:+` `+` `:=` `=`, and `word` stands behind it."""

    name: str
    operator: str = ""
    word: str = ""


def pieces(text: str, at: Location) -> Iterator[str | Reference]:
    """The literal parts and the references of a text; `$$` is one `$`."""
    start = 0
    while (mark := text.find("$", start)) >= 0:
        if text[start:mark]:
            yield text[start:mark]
        if text.startswith("$$", mark):
            yield "$"
            start = mark + 2
        elif braced := _BRACED.match(text, mark):
            end = _closing(text, braced.end(), at)
            if not braced[2] and end != braced.end():
                raise _not_understood(text[mark : end + 1], at)
            yield Reference(braced[1], braced[2] or "", text[braced.end() : end])
            start = end + 1
        elif name := _NAME.match(text, mark + 1):
            yield Reference(name.group())
            start = name.end()
        elif text.startswith("${", mark):
            raise _not_understood(text[mark:], at)
        else:
            yield "$"
            start = mark + 1
    if text[start:]:
        yield text[start:]


def expand(text: str, at: Location, known: Settings, *, strict: bool = False, depth: int = 0) -> Setting:
    """The text with its references replaced.

    A name without a value is empty text, as in Compose, unless `strict`; that and an unmet `:?` are an `InputError`.
    """
    if depth > _MAX_DEPTH:
        raise InputError(Code.TOO_LARGE, "references are nested too deep", at=at, fix="write the value out")
    settings = [Setting(part, at) if isinstance(part, str) else _value(part, at, known, strict, depth) for part in pieces(text, at)]
    return settings[0] if len(settings) == 1 else Setting("".join(setting.value for setting in settings), at)


def _value(reference: Reference, at: Location, known: Settings, strict: bool, depth: int) -> Setting:
    setting = known.get(reference.name)
    if setting and not setting.known:
        raise unknowable(f"${reference.name}", at)
    is_set = setting is not None and (setting.value != "" or not reference.operator.startswith(":"))
    kind = reference.operator[-1:]
    if kind == "+" and not is_set:
        return Setting("", at)
    if kind == "+" or (kind in ("-", "=") and not is_set):
        return expand(reference.word, at, known, strict=strict, depth=depth + 1)
    if kind == "?" and not is_set:
        why = reference.word or "it is required"
        raise InputError(Code.UNREADABLE, f"{reference.name} is not set: {why}", at=at, fix=f"set {reference.name}")
    if setting is None and strict:
        raise unknowable(f"${reference.name}", at)
    return setting or Setting("", at)


def unknowable(text: str, at: Location) -> InputError:
    """The error for a value that no reader of the file can tell."""
    fix = "write the value out, or point at where it is assigned"
    return InputError(Code.UNSUPPORTED, f"{text!r} is known only when this runs", at=at, fix=fix)


def _closing(text: str, start: int, at: Location) -> int:
    depth = 1
    for index in range(start, len(text)):
        depth += (text[index] == "{" and text[index - 1] == "$") - (text[index] == "}")
        if not depth:
            return index
    raise InputError(Code.SCHEMA_INVALID, "a ${ is not closed", at=at, fix="close it with }")


def _not_understood(text: str, at: Location) -> InputError:
    return InputError(Code.UNSUPPORTED, f"{text[:40]!r} is a reference of an unknown form", at=at, fix="write the value out")
