"""Dockerfiles and Containerfiles: base images, build arguments and labels (Dockerfile reference, "FROM", "ARG", "LABEL").

A reference to a build argument stands for its default, so the value is found where the default is written.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from countermark.attestations.errors import Location
from countermark.contracts.locators.base import NOTHING_BESIDE, Absent, Found, Locator, Reading, decoded
from countermark.contracts.locators.settings import Setting, expand
from countermark.contracts.locators.words import LITERAL_DOLLAR, Word, split

_INSTRUCTION = re.compile(r"\s*([A-Za-z]+)\s")
_HEREDOC = re.compile(r"<<-?['\"]?([A-Za-z_][A-Za-z0-9_]*)['\"]?")
_DIRECTIVE = re.compile(r"#\s*escape\s*=\s*(\S)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Instructions:
    """The words of each instruction whose facts can be asked for, by the instruction's name."""

    path: str
    instructions: tuple[tuple[str, tuple[Word, ...]], ...]

    def find(self, argument: str) -> Sequence[Found | Absent]:
        """For `FROM`, the images that come from outside; for `ARG NAME`, its defaults; for `LABEL name`, its values."""
        name, _, key = argument.partition(" ")
        scope = _Scope(self.path)
        found = [Found(it.value, it.at) for instruction in self.instructions for it in scope.take(*instruction, name, key)]
        return tuple(found) or (Absent(Location(self.path, 1)),)


@dataclass(slots=True)
class _Scope:
    """What the names mean at one instruction: defaults before the first FROM hold for FROM lines only, unless declared again."""

    path: str
    outside: dict[str, Setting] = field(default_factory=dict)
    inside: dict[str, Setting] = field(default_factory=dict)
    stages: set[str] = field(default_factory=set)
    begun: bool = False

    def take(self, instruction: str, words: Sequence[Word], wanted: str, key: str) -> Iterator[Setting]:
        """Go over one instruction, and give what it says to whoever wants this."""
        match instruction:
            case "FROM":
                image = self._from(words)
                if wanted == "FROM" and image:
                    yield image
            case "ARG":
                yield from (setting for name, setting in self._arguments(words) if wanted == "ARG" and name == key)
            case "ENV":
                self.inside.update(self._pairs(words))
            case "LABEL" if wanted == "LABEL":
                yield from (setting for name, setting in self._pairs(words) if name == key)

    def _expanded(self, word: Word, text: str, column: int) -> Setting:
        known = self.inside if self.begun else self.outside
        setting = expand(text, Location(self.path, word.line, column), known)
        return Setting(setting.value.replace(LITERAL_DOLLAR, "$"), setting.at)

    def _from(self, words: Sequence[Word]) -> Setting | None:
        self.begun = False
        plain = [word for word in words if not word.text.startswith("--")]
        image = self._expanded(plain[0], plain[0].text, plain[0].column) if plain else None
        self.begun, self.inside = True, {}
        is_stage = image is not None and (image.value.lower() in self.stages or image.value == "scratch")
        if len(plain) > 2 and plain[1].text.upper() == "AS":
            self.stages.add(plain[2].text.lower())
        return None if is_stage else image

    def _arguments(self, words: Sequence[Word]) -> Iterator[tuple[str, Setting]]:
        known = self.inside if self.begun else self.outside
        for word in words:
            name, equals, default = word.text.partition("=")
            if equals:
                known[name] = self._expanded(word, default, word.column + len(name) + 1)
                yield name, known[name]
            elif name in self.outside:
                known[name] = self.outside[name]

    def _pairs(self, words: Sequence[Word]) -> Iterator[tuple[str, Setting]]:
        if len(words) == 2 and "=" not in words[0].text:
            yield words[0].text, self._expanded(words[1], words[1].text, words[1].column)
            return
        for word in words:
            name, equals, value = word.text.partition("=")
            if equals:
                yield name, self._expanded(word, value, word.column + len(name) + 1)


class Dockerfile(Locator):
    """Facts of a Dockerfile."""

    name = "dockerfile"
    reading = Reading.TEXT

    def parse(self, data: bytes, path: str, beside: Mapping[str, bytes] = NOTHING_BESIDE) -> Instructions:
        """Read the instructions; `InputError` with the place of a quote that is not closed."""
        del beside
        text = decoded(data, path)
        directive = _DIRECTIVE.match(text)
        escape = directive[1] if directive else "\\"
        read = [_instruction(number, lines, path) for number, lines in _logical_lines(text.split("\n"), escape)]
        return Instructions(path, tuple(instruction for instruction in read if instruction))


def _logical_lines(lines: Sequence[str], escape: str) -> Iterator[tuple[int, list[str]]]:
    """Each instruction with the number of its first line: continued lines joined, comments and here-documents left out."""
    number = 0
    while number < len(lines):
        first, block = number, []
        while number < len(lines):
            line = lines[number].rstrip("\r")
            number += 1
            is_comment = line.lstrip().startswith("#")
            block.append("" if is_comment else line.rstrip().removesuffix(escape))
            if not (is_comment and len(block) > 1) and not line.rstrip().endswith(escape):
                break
        for mark in _HEREDOC.findall(" ".join(block)) if block[0].split(None, 1)[:1] in (["RUN"], ["COPY"]) else ():
            while number < len(lines) and lines[number].strip() != mark:
                number += 1
            number += 1
        yield first + 1, block


def _instruction(number: int, block: Sequence[str], path: str) -> tuple[str, tuple[Word, ...]] | None:
    found = _INSTRUCTION.match("\n".join(block))
    if not found or found[1].upper() not in ("FROM", "ARG", "ENV", "LABEL"):
        return None
    words = [word for command in split("\\\n".join(block), path, number) for word in command.words]
    return found[1].upper(), tuple(words[1:])
