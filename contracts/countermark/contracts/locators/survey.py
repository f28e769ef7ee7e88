"""Everything in the files of a repository that a contract could be about, and the locator that leads to it."""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from countermark.attestations.errors import InputError
from countermark.attestations.located import JsonValue, as_object, pointer_parts, walk
from countermark.contracts.locators.base import Found, Parsed
from countermark.contracts.locators.compose import ComposeFile
from countermark.contracts.locators.dockerfile import Instructions
from countermark.contracts.locators.env import Environment
from countermark.contracts.locators.markdown import Page
from countermark.contracts.locators.registry import LOCATORS
from countermark.contracts.locators.shell import Script
from countermark.contracts.locators.structured import Document
from countermark.contracts.locators.sums import ChecksumList
from countermark.contracts.places import Resolver
from countermark.contracts.tree import Tree

MAX_FILES = 5000
_CONTEXT = 24
"""Characters of a line that tell a digest in it from others."""
_DIGEST = re.compile(r"(?:([^@\s]+)@)?(sha256:)?([0-9a-f]{64}|[0-9a-f]{40})")
_ALL_ONE = re.compile(r"([0-9a-f])\1+")
_SKIPPED = re.compile(
    r"(?:^|/)(?:tests?|\.git|\.venv|venv|node_modules|vendor|third_party|\.tox|__pycache__|\.mypy_cache|\.ruff_cache|\.hypothesis|dist|build)/"
)
_SPECIAL = re.compile(r"[][.^$*+?{}\\|()]")
_ANY_HEX = re.compile(r"^(?=[a-f]*[0-9])[0-9a-f]+|(?<![0-9A-Za-z])(?=[a-f]*[0-9])[0-9a-f]{7,}(?![0-9A-Za-z])")
"""A digest, or the end of one at which a line was cut."""
_ESCAPE = r"\\\g<0>"
_LEAST_NUMBER = 256
_LOCKS = re.compile(r"(?:package-lock\.json|composer\.lock|poetry\.lock|\.lock\.json|requirements.*\.txt)$")


@dataclass(frozen=True, slots=True)
class Sighting:
    """One value, what leads to it, and what it is called there."""

    file: str
    locator: str
    argument: str
    words: tuple[str, ...]
    hex: str = ""
    number: int = 0
    is_typed: bool = False
    is_reference: bool = False
    is_prose: bool = False
    keys: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What the value is called: the last word of the path to it."""
        return self.words[-1] if self.words else ""


@dataclass(slots=True)
class Survey:
    """What was seen, by kind; `prose` holds the digests that each document quotes, `lists` the paths of checksum lists."""

    files: int = 0
    digests: list[Sighting] = field(default_factory=list)
    numbers: list[Sighting] = field(default_factory=list)
    objects: list[Sighting] = field(default_factory=list)
    prose: dict[str, list[str]] = field(default_factory=dict)
    lists: list[str] = field(default_factory=list)


def survey(tree: Tree) -> Survey:
    """Look through the files of a tree; one that cannot be read as what its name says it is left out."""
    seen = Survey()
    files = Resolver(tree)
    kinds = ((path, _kind(path)) for path in tree.glob("**") if not _SKIPPED.search(path) and not _LOCKS.search(path))
    for path, kind in itertools.islice(((path, kind) for path, kind in kinds if kind), MAX_FILES):
        try:
            _read(path, kind, files.parsed(path, LOCATORS[kind]), seen)
        except InputError:
            continue
        seen.files += 1
    return seen


def _kind(path: str) -> str | None:
    name = path.rpartition("/")[2]
    if name.endswith((".yaml", ".yml")):
        return "compose" if "compose" in name else "yaml"
    if name.startswith(".env") or name.endswith(".env"):
        return "env"
    if re.match(r"(?:Docker|Container)file", name) or name.endswith((".Dockerfile", ".dockerfile")):
        return "dockerfile"
    if re.match(r"(?i)sha256sums?", name):
        return "sums"
    endings = {".json": "json", ".toml": "toml", ".md": "markdown", ".sh": "args"}
    return endings.get(name[name.rfind(".") :] if "." in name else "")


def _read(path: str, kind: str, parsed: Parsed, seen: Survey) -> None:
    if isinstance(parsed, Document | ComposeFile):
        _structured(path, kind, parsed, seen)
    elif isinstance(parsed, Page):
        _page(path, parsed, seen)
    elif isinstance(parsed, Script):
        _script(path, parsed, seen)
    else:
        seen.lists.extend([path] if isinstance(parsed, ChecksumList) else [])
        for argument, words, value in _named(parsed):
            _value(Sighting(path, kind, argument, words), value, seen)


def _named(parsed: Parsed) -> Iterator[tuple[str, tuple[str, ...], JsonValue]]:
    """Argument, words and value of everything in a file whose values have names."""
    if isinstance(parsed, Environment):
        yield from ((name, (name,), setting.value) for name, setting in parsed.lines)
    elif isinstance(parsed, ChecksumList):
        yield from ((entry.path, tuple(entry.path.split("/")), entry.digest) for entry in parsed.entries)
    elif isinstance(parsed, Instructions):
        for argument, words in _instructions(parsed):
            yield from ((argument, words, found.value) for found in parsed.find(argument) if isinstance(found, Found))


def _page(path: str, page: Page, seen: Survey) -> None:
    found = [it for it in page.find("all-digests") if isinstance(it, Found)]
    seen.prose[path] = [str(it.value) for it in found]
    lines = page.text.split("\n")
    for it in found:
        line, column = it.at.line or 1, it.at.column or 1
        before = lines[line - 1][max(0, column - 1 - _CONTEXT) : column - 1]
        # What tells a digest from others must not be another digest, which moves with the next pin.
        pattern = f"{_ANY_HEX.sub('[0-9a-f]+', _SPECIAL.sub(_ESCAPE, before))}([0-9a-fA-F]{{7,64}})"
        if _DIGEST.fullmatch(str(it.value)) and {match for each in lines for match in re.findall(pattern, each)} == {it.value}:
            words = tuple(part for part in re.split(r"[^A-Za-z0-9]+", before) if part)
            seen.digests.append(Sighting(path, "text", pattern, words, hex=str(it.value), is_prose=True))


def _structured(path: str, kind: str, parsed: Document | ComposeFile, seen: Survey) -> None:
    document = parsed if isinstance(parsed, Document) else parsed.document
    if _is_ours(document.located.value):
        return
    for pointer, node in walk(document.located.value):
        words = tuple(pointer_parts(pointer))
        if isinstance(node, dict):
            seen.objects.append(Sighting(path, kind, pointer, words, keys=tuple(node)))
        elif isinstance(node, str) and "$" in node and kind == "compose":
            for found in parsed.values(pointer) if isinstance(parsed, ComposeFile) else ():
                if isinstance(found, Found):
                    _value(Sighting(path, kind, pointer, words), found.value, seen)
        else:
            _value(Sighting(path, kind, pointer, words), node, seen)


def _is_ours(value: JsonValue) -> bool:
    """Whether a document is a contract or policy of ours: what it pins stands elsewhere, and it is no place to hold to itself."""
    return str(as_object(value).get("apiVersion")).startswith("countermark.dev/")


def _value(at: Sighting, value: JsonValue, seen: Survey) -> None:
    """Note a value that is a digest, or a number with a name of its own."""
    digest = _DIGEST.fullmatch(value) if isinstance(value, str) else None
    if digest and not _ALL_ONE.fullmatch(digest[3]):
        reference, typed = bool(digest[1]), bool(digest[2])
        seen.digests.append(Sighting(at.file, at.locator, at.argument, at.words, hex=digest[3], is_typed=typed, is_reference=reference))
    elif isinstance(value, int) and not isinstance(value, bool) and value >= _LEAST_NUMBER and not at.name.isdecimal():
        seen.numbers.append(Sighting(at.file, at.locator, at.argument, at.words, number=value))


def _instructions(parsed: Instructions) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "FROM", ("base", "image")
    for name, words in parsed.instructions:
        for word in words if name in ("ARG", "LABEL") else ():
            key = word.text.partition("=")[0]
            yield f"{name} {key}", tuple(re.split(r"[._-]", key))


def _script(path: str, script: Script, seen: Survey) -> None:
    words = [word.text for command in script.commands for word in command.words]
    for name, setting in ((name, setting) for name, setting in script.known.items() if setting.known):
        _value(Sighting(path, "text", rf"^\s*(?:export )?{name}=[\"']?([^\"'\s]+)", (name,)), setting.value, seen)
    for flag in dict.fromkeys(word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)):
        try:
            values = script.find(flag)
        except InputError:
            continue
        for found in values:
            if isinstance(found, Found):
                _value(Sighting(path, "args", flag, tuple(flag.strip("-").split("-"))), found.value, seen)
