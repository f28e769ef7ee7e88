"""Dockerfiles and Containerfiles: base images, build arguments and labels (Dockerfile reference, "FROM", "ARG", "LABEL").

A reference to a build argument stands for its default, so the value is found where the default is written. A stage has what the stage that
it is built from has, and a variable hides an argument of its name. A label is in the image only if the last stage, or one that it is built
from, gives it; then those of all stages count.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.contracts.locators.base import NOTHING_BESIDE, Absent, Found, Locator, Reading, decoded
from countermark.contracts.locators.settings import Setting, expand
from countermark.contracts.locators.words import LITERAL_DOLLAR, Word, split

_INSTRUCTION = re.compile(r"\s*([A-Za-z]+)\s")
_WORD = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*'|"(?:\\.|[^"\\])*")+""")
_HEREDOC = re.compile(r"\d*<<(-?)([^<]+)")
_WITH_HEREDOCS = re.compile(r"\s*(?:ONBUILD\s+)?(?:RUN|COPY|ADD)\s", re.IGNORECASE)
_QUOTES = re.compile(r"['\"\\]")
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
        found: list[Found] = []
        stages: list[str] = []
        for instruction in self.instructions:
            taken = [Found(it.value, it.at) for it in scope.take(*instruction, name, key)]
            found.extend(taken)
            stages.extend([scope.stage] if taken else [])
        seen = name != "LABEL" or any(stage in scope.stages[scope.stage].built_on for stage in stages)
        return tuple(found) if found and seen else (Absent(Location(self.path, 1)),)


@dataclass(frozen=True, slots=True)
class _Stage:
    """What a stage begins with; `built_on` holds its own name and those of the stages that it is built from."""

    built_on: frozenset[str] = frozenset()
    arguments: dict[str, Setting] = field(default_factory=dict)
    variables: dict[str, Setting] = field(default_factory=dict)


@dataclass(slots=True)
class _Scope:
    """What the names mean at one instruction: defaults before the first FROM hold for FROM lines only, unless declared again."""

    path: str
    outside: dict[str, Setting] = field(default_factory=dict)
    stages: dict[str, _Stage] = field(default_factory=lambda: {"": _Stage()})
    stage: str = ""

    @property
    def here(self) -> _Stage:
        """The stage that the instruction is in."""
        return self.stages[self.stage]

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
                self.here.variables.update(self._pairs(words))
            case "LABEL" if wanted == "LABEL":
                yield from (setting for name, setting in self._pairs(words) if name == key)

    def _expanded(self, word: Word, text: str, column: int) -> Setting:
        known = {**self.here.arguments, **self.here.variables} if self.stage else self.outside
        setting = expand(text, Location(self.path, word.line, column), known)
        return Setting(setting.value.replace(LITERAL_DOLLAR, "$"), setting.at)

    def _from(self, words: Sequence[Word]) -> Setting | None:
        self.stage = ""
        plain = [word for word in words if not word.text.startswith("--")]
        image = self._expanded(plain[0], plain[0].text, plain[0].column) if plain else None
        base = self.stages.get(image.value.lower()) if image and image.value else None
        name = plain[2].text.lower() if len(plain) > 2 and plain[1].text.upper() == "AS" else f"stage {len(self.stages)}"
        start = base or _Stage()
        self.stages[name] = _Stage(start.built_on | {name}, dict(start.arguments), dict(start.variables))
        self.stage = name
        return None if base or (image and image.value == "scratch") else image

    def _arguments(self, words: Sequence[Word]) -> Iterator[tuple[str, Setting]]:
        known = self.here.arguments if self.stage else self.outside
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
        text = decoded(data, path).removeprefix("\ufeff")
        directive = _DIRECTIVE.match(text)
        escape = directive[1] if directive else "\\"
        read = [_instruction(number, lines, path) for number, lines in _logical_lines(text.split("\n"), escape, path)]
        return Instructions(path, tuple(instruction for instruction in read if instruction))


def _logical_lines(lines: Sequence[str], escape: str, path: str) -> Iterator[tuple[int, list[str]]]:
    """Each instruction with the number of its first line: continued lines joined; comments, empty lines in a continued instruction and
    here-documents left out."""
    number = 0
    while number < len(lines):
        first, block = number, []
        while number < len(lines):
            line = lines[number].rstrip("\r")
            number += 1
            is_left_out = line.lstrip().startswith("#") or not line.strip()
            block.append("" if is_left_out else line.rstrip().removesuffix(escape))
            if not (is_left_out and len(block) > 1) and not line.rstrip().endswith(escape):
                break
        for strips_tabs, mark in _heredocs(" ".join(block)):
            number = _behind(lines, number, mark, path, strips_tabs=strips_tabs)
        yield first + 1, block


def _heredocs(instruction: str) -> Iterator[tuple[bool, str]]:
    """The here-documents of an instruction: of its words those that begin with `<<`, in no quotes (Dockerfile reference)."""
    for word in _WORD.findall(instruction) if _WITH_HEREDOCS.match(instruction) else ():
        if found := _HEREDOC.fullmatch(word):
            yield bool(found[1]), _QUOTES.sub("", found[2])


def _behind(lines: Sequence[str], start: int, mark: str, path: str, *, strips_tabs: bool) -> int:
    for number in range(start, len(lines)):
        line = lines[number].rstrip("\r")
        if (line.lstrip("\t") if strips_tabs else line) == mark:
            return number + 1
    message = f"a here-document <<{mark} is not closed"
    raise InputError(Code.SCHEMA_INVALID, message, at=Location(path, start), fix=f"end it with a line {mark}")


def _instruction(number: int, block: Sequence[str], path: str) -> tuple[str, tuple[Word, ...]] | None:
    found = _INSTRUCTION.match("\n".join(block))
    if not found or found[1].upper() not in ("FROM", "ARG", "ENV", "LABEL"):
        return None
    words = [word for command in split("\\\n".join(block), path, number) for word in command.words]
    return found[1].upper(), tuple(words[1:])
