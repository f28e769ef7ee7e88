"""Compose files after interpolation: pointers to values, and flags in the commands of services.

References are replaced from `.env` beside the file, or from the published `.env.example` where there is no `.env`; the environment of
whoever runs this is never asked (Compose specification, "Interpolation"). A value that comes from there as a whole stands there.
"""

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from countermark.attestations import yamltext
from countermark.attestations.errors import Location
from countermark.attestations.located import JsonValue, pointer_join
from countermark.contracts.locators.base import NOTHING_BESIDE, Absent, Found, Locator, Reading, decoded
from countermark.contracts.locators.env import EnvFile
from countermark.contracts.locators.nested import nested, texts_run
from countermark.contracts.locators.settings import Settings, expand
from countermark.contracts.locators.shell import flag_values
from countermark.contracts.locators.structured import Document
from countermark.contracts.locators.words import Command, Word, split

_ENV_FILES = (".env", ".env.example")


@dataclass(frozen=True, slots=True)
class ComposeFile:
    """A Compose file and what its references stand for. A value is interpolated when it is asked for."""

    document: Document
    known: Settings

    def at(self, pointer: str) -> Location:
        """Where `pointer` stands in the Compose file itself."""
        return self.document.at(pointer)

    def find(self, argument: str) -> Sequence[Found | Absent]:
        """The values that the pointer names; `InputError` when one needs a variable that is required and not set."""
        return tuple(it if isinstance(it, Absent) else self._interpolated(it) for it in self.document.find(argument))

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

    def find(self, argument: str) -> Sequence[Found | Absent]:
        """Each value that the flag is given in `entrypoint` or `command` of a service."""
        path = self.file.at("").file
        found: list[Found] = []
        for service in self._services():
            found.extend(flag_values([self._direct(service)], argument, path, self.file.known, strict=False))
            found.extend(flag_values(list(self._run_by_a_shell(service)), argument, path, {}))
        return tuple(self._exact(value, argument) for value in found) or (Absent(Location(path, 1)),)

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

    def _run_by_a_shell(self, service: Command) -> Iterator[Command]:
        """The commands in texts that are handed to a shell with `-c`."""
        path = self.file.at("").file
        for word in texts_run(service):
            text = expand(word.text, Location(path, word.line, word.column), self.file.known).value
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
    settings = [EnvFile().parse(content, name).settings for name, content in beside.items()]
    return ComposeFile(Document(yamltext.loads_located(data, path)), settings[0] if settings else {})


def _env_files(path: str) -> Sequence[str]:
    folder = posixpath.dirname(path)
    return tuple(posixpath.join(folder, name) for name in _ENV_FILES)


class ComposePointers(Locator):
    """Places in a Compose file."""

    name = "compose"
    reading = Reading.TYPED

    def companions(self, path: str) -> Sequence[str]:
        """The environment files beside it."""
        return _env_files(path)

    def parse(self, data: bytes, path: str, beside: Mapping[str, bytes] = NOTHING_BESIDE) -> ComposeFile:
        """Parse the YAML strictly, and the environment file."""
        return _read(data, path, beside)


class ComposeArguments(Locator):
    """Flags in the commands of a Compose file."""

    name = "compose-args"
    reading = Reading.TEXT

    def companions(self, path: str) -> Sequence[str]:
        """The environment files beside it."""
        return _env_files(path)

    def parse(self, data: bytes, path: str, beside: Mapping[str, bytes] = NOTHING_BESIDE) -> ServiceCommands:
        """Parse the YAML strictly, and the environment file."""
        return ServiceCommands(_read(data, path, beside), tuple(decoded(data, path).split("\n")))
