"""Records: files of evidence and configuration that a rule reads by pointers, block by block.

`file` names the records and `each` the blocks in them; every other pointer counts from a block. What a parameter points at and a block
does not have was not looked at, so it is a finding of its own and never a pass; an empty list is no block at all.
"""

import posixpath
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location, NothingError
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue, pointer_join, pointer_parts
from countermark.contracts.checkers.base import Case, Checker, Parameters, Result
from countermark.contracts.checkers.parameters import Schema, fields, pointer, text, texts
from countermark.contracts.locators.base import Found
from countermark.contracts.locators.compose import ComposeFile
from countermark.contracts.locators.registry import LOCATORS
from countermark.contracts.locators.structured import Document
from countermark.contracts.places import finding_of

_READERS = {".json": "json", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml"}


@dataclass(frozen=True, slots=True)
class Record:
    """One structured file."""

    path: str
    parsed: Document | ComposeFile

    def at(self, pointer: str = "") -> Location:
        """Where `pointer` stands in the file, or its nearest parent."""
        return self.parsed.at(pointer)

    def find(self, pointer: str) -> list[Found]:
        """The values at the pointer; none where nothing stands."""
        values = self.parsed.values(pointer) if isinstance(self.parsed, ComposeFile) else self.parsed.find(pointer)
        return [found for found in values if isinstance(found, Found)]

    def parts(self, pointer: str) -> list[str]:
        """The pointer of each value that `pointer`, which may have `*` in it, names."""
        document = self.parsed if isinstance(self.parsed, Document) else self.parsed.document
        return [found.at.pointer or "" for found in document.find(pointer) if isinstance(found, Found)]


def record(case: Case, path: str) -> Record:
    """A JSON, YAML, TOML or Compose file of the repository; `InputError` for what cannot be read."""
    name = posixpath.basename(path)
    kind = _READERS.get(posixpath.splitext(name)[1])
    if kind is None:
        fix = "name a JSON, YAML or TOML file"
        raise InputError(Code.UNSUPPORTED, f"{path} has no structure that pointers lead into", at=case.at, fix=fix)
    parsed = case.files.parsed(path, LOCATORS["compose" if kind == "yaml" and "compose" in name else kind])
    assert isinstance(parsed, Document | ComposeFile)
    return Record(path, parsed)


def records(case: Case, pattern: str) -> list[Record]:
    """The records that match; `NothingError` when none does."""
    paths = case.tree.glob(pattern)
    if not paths:
        message = f"no file matches {pattern}"
        raise NothingError(Code.NOTHING_EVALUATED, message, at=case.at, fix="correct the path, or add the file")
    return [record(case, path) for path in paths]


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a record of a case that a rule is held against, and the parameters that say where in it things stand."""

    case: Case
    record: Record
    pointer: str
    given: Parameters

    def at(self, pointer: str = "") -> Location:
        """Where a pointer, counted from the block, stands."""
        return self.record.at(self.pointer + pointer)

    def place(self, parameter: str) -> Location:
        """Where the value that a parameter points at stands, or would stand."""
        return self.at(next(iter(texts(self.given.get(parameter))), ""))

    def find(self, pointer: str) -> list[Found]:
        """The values at a pointer counted from the block."""
        return self.record.find(self.pointer + pointer)

    def all(self, parameter: str) -> list[Found]:
        """The values that a parameter points at; `NothingError` for a pointer that finds none. Empty when it is left out."""
        return [found for pointer in texts(self.given.get(parameter)) for found in self._some(pointer)]

    def one(self, parameter: str) -> Found:
        """The value that a parameter points at; `NothingError` when there is none, also when it says that none is recorded."""
        found = self.maybe(parameter)
        if found is None:
            raise missing(self.place(parameter))
        return found

    def maybe(self, parameter: str) -> Found | None:
        """The value that a parameter points at; none when the parameter, the value or what it records is missing."""
        found = [found for pointer in texts(self.given.get(parameter)) for found in self.find(pointer)]
        return found[0] if found and found[0].value is not None else None

    def number(self, parameter: str) -> int | None:
        """A parameter that is an integer or points at one; `InputError` when something else stands there."""
        value = self.given.get(parameter)
        if value is None or isinstance(value, int):
            return value
        return integer(self.one(parameter))

    def operand(self, parameter: str) -> Found:
        """A parameter that is a value itself, points at one, or is the name of a fact of the contract with one value."""
        value = self.given.get(parameter)
        if isinstance(value, str) and (value == "" or value.startswith("/")):
            return self.one(parameter)
        if not isinstance(value, str):
            return Found(value, self.case.at)
        found = self.case.fact(value)[0]
        return Found(found.value, found.at)

    def _some(self, pointer: str) -> list[Found]:
        found = self.find(pointer)
        if not found:
            raise missing(self.at(pointer))
        return found


def integer(found: Found) -> int:
    """The integer that was found; `InputError` for anything else."""
    if not isinstance(found.value, int) or isinstance(found.value, bool):
        raise InputError(Code.BAD_NUMBER, f"{found.value!r} is no integer", at=found.at, fix="write an integer")
    return found.value


def real(found: Found) -> float:
    """The number that was found; `InputError` for anything else."""
    if not isinstance(found.value, int | float) or isinstance(found.value, bool):
        raise InputError(Code.BAD_NUMBER, f"{found.value!r} is no number", at=found.at, fix="write a number")
    return float(found.value)


def missing(at: Location) -> NothingError:
    """The error that nothing stands where it is looked for."""
    message = f"nothing at {at.pointer or 'the place'}"
    return NothingError(Code.NOTHING_EVALUATED, message, at=at, fix="record the value, or correct the pointer in the contract")


def blocks(case: Case, given: Parameters) -> Iterator[Block]:
    """The blocks of the records that `file` and `each` name. `NothingError` when a record has not what `each` points at."""
    each = str(given.get("each", ""))
    for it in records(case, str(given["file"])):
        found = it.parts(each)
        if not found and not _is_empty(it, each):
            raise missing(it.at(each))
        yield from (Block(case, it, pointer, given) for pointer in found)


def _is_empty(it: Record, each: str) -> bool:
    """Whether `each` ends in `*` and the list or object before it is there, and has no element."""
    parts = pointer_parts(each)
    if not parts or parts[-1] != "*":
        return False
    parent = "".join(pointer_join("", part) for part in parts[:-1])
    return any(found.value in ([], {}) for found in it.find(parent))


def record_fields(*required: str, **properties: Schema) -> Mapping[str, JsonValue]:
    """The parameters of a rule about records."""
    file = text("path or glob of the records")
    each = pointer("the blocks of a record that the other pointers count from; without it, the record itself")
    return fields("file", *required, file=file, each=each, **properties)


class RecordChecker(Checker):
    """A rule about each block of some records."""

    def check(self, case: Case, given: Parameters) -> Result:
        """Judge each block that the rule applies to; one that lacks a value costs itself only."""
        evaluated = 0
        findings: list[Finding] = []
        for block in blocks(case, given):
            try:
                if self.applies(block):
                    findings.extend(self.judge(block))
                    evaluated += 1
            except (InputError, NothingError) as error:
                findings.append(finding_of(error))
        return Result(evaluated, tuple(findings))

    def applies(self, block: Block) -> bool:
        """Whether the rule says anything about the block."""
        del block
        return True

    @abstractmethod
    def judge(self, block: Block) -> Iterator[Finding]:
        """What breaks the rule in a block."""
