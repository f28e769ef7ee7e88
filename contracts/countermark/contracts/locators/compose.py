"""Compose files after interpolation: pointers to values, and flags in the commands of services.

References are replaced from `.env` beside the file, or from the published `.env.example` where there is no `.env`; the environment of
whoever runs this is never asked (Compose specification, "Interpolation"). A value that comes from there as a whole stands there; the
default of a reference that is set there is a copy too, and counts beside it. So does what an override file says, which Compose merges
into a file of a default name; other files that `COMPOSE_FILE` merges are not read, which is an error.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from countermark.attestations import yamltext
from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.attestations.located import JsonValue, pointer_join
from countermark.contracts.locators.base import NOTHING_BESIDE, Absent, Found, Locator, Reading, decoded
from countermark.contracts.locators.env import EnvFile
from countermark.contracts.locators.nested import nested, texts_run
from countermark.contracts.locators.settings import Settings, expand
from countermark.contracts.locators.shell import flag_values
from countermark.contracts.locators.structured import Document
from countermark.contracts.locators.words import Command, Word, split

_ENV_FILES = (".env", ".env.example")
_MERGED = {
    f"{stem}{ending}": tuple(f"{stem}.override{other}" for stem in ("compose", "docker-compose") for other in (".yml", ".yaml"))
    for stem in ("compose", "docker-compose")
    for ending in (".yml", ".yaml")
}
_DEFAULTED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*):?-")
_REQUIRED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*):?\?")


@dataclass(frozen=True, slots=True)
class ComposeFile:
    """A Compose file and what its references stand for. A value is interpolated when it is asked for."""

    document: Document
    known: Settings
    override: "ComposeFile | None" = None

    def at(self, pointer: str) -> Location:
        """Where `pointer` stands in the Compose file itself."""
        return self.document.at(pointer)

    def find(self, argument: str) -> Sequence[Found | Absent]:
        """The values that the pointer names, here and in the override, and the defaults that differ from what is set."""
        own = self.values(argument)
        written = [Found(it.value, it.at) for it in self.document.find(argument) if isinstance(it, Found)]
        beside = [default for it in written if isinstance(it.value, str) for default in self._default(it.value, it.at)]
        merged = [it for it in self.override.find(argument) if isinstance(it, Found)] if self.override else []
        return (*(it for it in own if not (merged and isinstance(it, Absent))), *beside, *merged)

    def values(self, argument: str) -> Sequence[Found | Absent]:
        """The values that the pointer names in this file; `InputError` when one needs a variable that is required and not set."""
        return tuple(it if isinstance(it, Absent) else self._interpolated(it) for it in self.document.find(argument))

    def without_defaulted(self, text: str) -> Settings:
        """What is set, but for the names that have a default in a text."""
        hidden = set(_DEFAULTED.findall(text)) - set(_REQUIRED.findall(text))
        return {name: setting for name, setting in self.known.items() if name not in hidden}

    def _default(self, text: str, at: Location) -> Iterator[Found]:
        """What a text is where nothing is set, if that differs: it is written down, and runs without the environment file."""
        value = expand(text, at, self.without_defaulted(text)).value
        if value != expand(text, at, self.known).value:
            yield Found(value, at)

    def _interpolated(self, found: Found) -> Found:
        if isinstance(found.value, str):
            setting = expand(found.value, found.at, self.known)
            return Found(setting.value, setting.at)
        return Found(self._below(found.value, found.at), found.at)

    def _below(self, value: JsonValue, at: Location) -> JsonValue:
        if isinstance(value, dict):
            return {key: self._below(child, self.at(pointer_join(at.pointer or "", key))) for key, child in value.items()}
        if isinstance(value, list):
            return [self._below(child, self.at(pointer_join(at.pointer or "", index))) for index, child in enumerate(value)]
        return expand(value, at, self.known).value if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class ServiceCommands:
    """The commands that a Compose file gives its services."""

    file: ComposeFile
    lines: tuple[str, ...]
    override: "ServiceCommands | None" = None

    def find(self, argument: str) -> Sequence[Found | Absent]:
        """Each value that the flag is given in `entrypoint` or `command` of a service."""
        found = [self._exact(value, argument) for service in self._services() for value in self._values(service, argument)]
        merged = [it for it in self.override.find(argument) if isinstance(it, Found)] if self.override else []
        return (*found, *merged) or (Absent(Location(self.file.at("").file, 1)),)

    def _values(self, service: Command, flag: str) -> Iterator[Found]:
        """The values in one command, and those that a default gives where nothing is set and that differ."""
        path = self.file.at("").file
        without = self.file.without_defaulted(" ".join(word.text for word in service.words))
        values = self._given(service, flag, path, self.file.known)
        yield from values
        yield from (it for it in self._given(service, flag, path, without) if it.value not in {value.value for value in values})

    def _given(self, service: Command, flag: str, path: str, known: Settings) -> list[Found]:
        by_a_shell = list(self._run_by_a_shell(service, known))
        return [*flag_values([self._direct(service)], flag, path, known, strict=False), *flag_values(by_a_shell, flag, path, {})]

    def _services(self) -> Iterator[Command]:
        """The command of each service as one line: what `command` says stands behind the entrypoint (Compose specification)."""
        for service in self.file.document.find("/services/*"):
            pointer = service.at.pointer or ""
            parts = [part for name in ("entrypoint", "command") for part in self.file.document.find(f"{pointer}/{name}")]
            words = tuple(word for part in parts if isinstance(part, Found) for word in self._words(part))
            if words:
                yield Command(words)

    def _direct(self, service: Command) -> Command:
        """The words that reach the program as they are."""
        texts = texts_run(service)
        return Command(tuple(word for word in service.words if word not in texts))

    def _run_by_a_shell(self, service: Command, known: Settings) -> Iterator[Command]:
        """The commands in texts that are handed to a shell with `-c`."""
        path = self.file.at("").file
        for word in texts_run(service):
            text = expand(word.text, Location(path, word.line, word.column), known).value
            yield from nested(split(text, path, word.line, word.column), path)

    def _words(self, found: Found) -> Iterator[Word]:
        """The words that Compose itself splits and interpolates, whatever their quotes."""
        if isinstance(found.value, str):
            commands = split(found.value, found.at.file, found.at.line or 1)
            yield from (replace(word, text=word.shown) for command in commands for word in command.words)
        else:
            yield from (Word(text, at.line or 1, at.column or 1) for text, at in self._items(found))

    def _items(self, found: Found) -> Iterator[tuple[str, Location]]:
        for index, item in enumerate(found.value if isinstance(found.value, list) else ()):
            yield str(item), self.file.at(pointer_join(found.at.pointer or "", index))

    def _exact(self, found: Found, flag: str) -> Found:
        """A scalar over several lines is known by its first; the flag itself says on which of them it is."""
        start = (found.at.line or 1) - 1 if found.at.file == self.file.at("").file else len(self.lines)
        for number, line in enumerate(self.lines[start:], start=start + 1):
            if flag in line and (column := line.find(str(found.value), line.find(flag))) >= 0:
                return Found(found.value, Location(found.at.file, number, column + 1))
        return found


def _read(data: bytes, path: str, beside: Mapping[str, bytes]) -> ComposeFile:
    merged = _MERGED.get(posixpath.basename(path), ())
    settings = [EnvFile().parse(content, name).settings for name, content in beside.items() if posixpath.basename(name) in _ENV_FILES]
    known = settings[0] if settings else {}
    _refuse_merged(path, known)
    overrides = [_read(content, name, {}) for name, content in beside.items() if posixpath.basename(name) in merged]
    override = replace(overrides[0], known=known) if overrides else None
    return ComposeFile(Document(yamltext.loads_located(data, path)), known, override)


def _refuse_merged(path: str, known: Settings) -> None:
    """`COMPOSE_FILE` names files that Compose merges (Compose, "Pre-defined environment variables")."""
    setting = known.get("COMPOSE_FILE")
    files = re.split("[:;]", setting.value) if setting else []
    if setting and len(files) > 1 and posixpath.basename(path) in map(posixpath.basename, files):
        message = f"COMPOSE_FILE merges {setting.value}; what comes of that is known only when this runs"
        fix = "name one file, or make each of them a place and remove COMPOSE_FILE"
        raise InputError(Code.UNSUPPORTED, message, at=setting.at, fix=fix)


def _companions(path: str) -> Sequence[Sequence[str]]:
    folder = posixpath.dirname(path)
    groups = (_ENV_FILES, _MERGED.get(posixpath.basename(path), ()))
    return [[posixpath.join(folder, name) for name in group] for group in groups]


class ComposePointers(Locator):
    """Places in a Compose file."""

    name = "compose"
    reading = Reading.TYPED

    def companions(self, path: str) -> Sequence[Sequence[str]]:
        """The environment file and the override beside it."""
        return _companions(path)

    def parse(self, data: bytes, path: str, beside: Mapping[str, bytes] = NOTHING_BESIDE) -> ComposeFile:
        """Parse the YAML strictly, and the environment file."""
        return _read(data, path, beside)


class ComposeArguments(Locator):
    """Flags in the commands of a Compose file."""

    name = "compose-args"
    reading = Reading.TEXT

    def companions(self, path: str) -> Sequence[Sequence[str]]:
        """The environment file and the override beside it."""
        return _companions(path)

    def parse(self, data: bytes, path: str, beside: Mapping[str, bytes] = NOTHING_BESIDE) -> ServiceCommands:
        """Parse the YAML strictly, and the environment file."""
        file = _read(data, path, beside)
        override = file.override.at("").file if file.override else ""
        texts = [tuple(decoded(content, name).split("\n")) for name, content in ((path, data), (override, beside.get(override, b"")))]
        return ServiceCommands(file, texts[0], ServiceCommands(file.override, texts[1]) if file.override else None)
