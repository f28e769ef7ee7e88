"""A contract: terms, and the invariants that must hold over them. Documents page, section 3."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.documents import Document, load_document
from countermark.attestations.errors import InputError, InvalidDocumentError, Location, NothingError
from countermark.attestations.located import pointer_join
from countermark.contracts.checkers.base import Checker, Parameters
from countermark.contracts.checkers.registry import checker_for, parameter_problems
from countermark.contracts.locators.base import Reading
from countermark.contracts.locators.registry import LOCATORS, locator_for
from countermark.contracts.pins import Pin, ValueType
from countermark.contracts.terms import ANY_KNOWN, Place, Profile, Terms, lookup

_IMAGE_LEAVES = frozenset({"commit", "tree", "source_sha256"})


@dataclass(frozen=True, slots=True)
class Invariant:
    """One thing that must hold: a checker with its parameters."""

    id: str
    checker: Checker
    parameters: Parameters
    at: Location


@dataclass(frozen=True, slots=True)
class Contract(Terms):
    """A contract that can be evaluated: every name in it is known, and it has at least one invariant."""

    id: str
    version: int
    digest: Digest
    source: str
    invariants: tuple[Invariant, ...]

    @classmethod
    def load(cls, data: bytes, source: str) -> Self:
        """Read a contract from the bytes of a YAML or JSON file; `source` names it in findings.

        Raises `InputError` with every mistake in it, and `NothingError` for one without invariants.
        """
        document = load_document(data, source, "Contract")
        reader = _Reader(document)
        contract = cls(
            pins=reader.pins(),
            binds_image=reader.binds_image(),
            places=reader.places(),
            profiles=reader.profiles(),
            commands={label: tuple(command["argv"]) for label, command in document.spec.get("commands", {}).items()},
            facts=reader.facts(),
            id=document.id,
            version=document.version,
            digest=document.digest,
            source=source,
            invariants=reader.invariants(),
        )
        if reader.mistakes:
            raise InvalidDocumentError(reader.mistakes)
        if not contract.invariants:
            at = document.at("/spec/invariants")
            raise NothingError(Code.NOTHING_EVALUATED, "the contract has no invariants", at=at, fix="add at least one invariant")
        return contract


class _Reader:
    """Reads the parts of a valid document, and keeps what the schema cannot see: names that lead nowhere."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._spec: Mapping[str, Any] = document.spec
        self._pins: dict[str, Pin] = {}
        self.mistakes: list[InputError] = []

    def pins(self) -> Mapping[str, Pin]:
        for name, leaves in self._spec["pins"].items():
            for leaf, value in leaves.items():
                at = self._document.at(_pointer("pins", name, leaf))
                self._pins[f"{name}.{leaf}"] = Pin(f"{name}.{leaf}", value, ValueType.of_leaf(leaf, value), at)
        return self._pins

    def binds_image(self) -> tuple[str, ...]:
        names = tuple(self._spec.get("binds_image", ()))
        for index, name in enumerate(names):
            pointer = _pointer("binds_image", index)
            if self._known(name, self._spec["pins"], "pin", pointer) and _IMAGE_LEAVES.isdisjoint(self._spec["pins"][name]):
                self._mistake(Code.SCHEMA_INVALID, f"pin {name!r} has nothing that an image is built from", pointer, "pin its commit")
        return names

    def places(self) -> tuple[Place, ...]:
        read = (self._place(fields, _pointer("places", index)) for index, fields in enumerate(self._spec["places"]))
        return tuple(place for place in read if place)

    def facts(self) -> Mapping[str, Place]:
        read = {name: self._place(fields, _pointer("facts", name)) for name, fields in self._spec.get("facts", {}).items()}
        return {name: place for name, place in read.items() if place}

    def profiles(self) -> Mapping[str, Profile]:
        profiles = self._spec.get("profiles", {})
        for name, fields in profiles.items():
            self._check_path(fields["file"], _pointer("profiles", name, "file"))
        return {name: self._profile(name, fields) for name, fields in profiles.items()}

    def invariants(self) -> tuple[Invariant, ...]:
        seen: set[str] = set()
        read = []
        for index, fields in enumerate(self._spec["invariants"]):
            pointer = _pointer("invariants", index)
            if fields["id"] in seen:
                self._mistake(Code.DUPLICATE_KEY, f"two invariants have the id {fields['id']!r}", f"{pointer}/id", "give each its own id")
            seen.add(fields["id"])
            read.append(self._invariant(fields, pointer))
        return tuple(invariant for invariant in read if invariant)

    def _place(self, fields: Mapping[str, Any], pointer: str) -> Place | None:
        self._check_path(fields["file"], f"{pointer}/file")
        name = next(name for name in LOCATORS if name in fields)
        kind = ValueType(fields["type"]) if "type" in fields else None
        try:
            locator = locator_for(name, fields[name], self._document.at(f"{pointer}/{name}"))
        except InputError as error:
            self.mistakes.append(error)
            return None
        place = Place(fields["file"], locator, fields[name], self._document.at(pointer), fields.get("is"), kind, fields.get("unit"))
        if place.target and name == "markdown" and place.argument != "all-digests":
            message = f"markdown: {place.argument} finds no value of a pin"
            self._mistake(Code.SCHEMA_INVALID, message, f"{pointer}/markdown", "make it a fact, or write `markdown: all-digests`")
        elif place.target not in (None, ANY_KNOWN):
            self._check_target(place, pointer)
        return place

    def _check_target(self, place: Place, pointer: str) -> None:
        target = place.target or ""
        if not self._known(target, self._pins, "pin", f"{pointer}/is"):
            return
        pin = self._pins[target]
        try:
            place.expected(pin)
        except InputError as error:
            self._mistake(error.code, error.message, f"{pointer}/type", error.fix)
        if place.locator.reading is Reading.PROSE and not pin.type.is_digest:
            self._mistake(
                Code.SCHEMA_INVALID,
                f"{place.locator.name} finds digests, and {target} is none",
                f"{pointer}/is",
                "name a pin that is a digest",
            )

    def _invariant(self, fields: Mapping[str, Any], pointer: str) -> Invariant | None:
        try:
            checker = checker_for(fields["check"], self._document.at(f"{pointer}/check"))
        except InputError as error:
            self.mistakes.append(error)
            return None
        given = fields.get("with", {})
        for problem in parameter_problems(checker, given):
            self._mistake(Code.SCHEMA_INVALID, f"{checker.name}: {problem.message}", f"{pointer}/with{problem.pointer}", problem.fix)
        return Invariant(fields["id"], checker, given, self._document.at(pointer))

    def _profile(self, name: str, fields: Mapping[str, Any]) -> Profile:
        at = self._document.at(_pointer("profiles", name))
        return Profile(name, fields["file"], fields["class"] == "serving", fields.get("config"), fields.get("argv"), fields["fields"], at)

    def _check_path(self, path: str, pointer: str) -> None:
        """A path of a contract stays in the repository that it is about."""
        if path.startswith("/") or "\0" in path or not {"", ".", ".."}.isdisjoint(path.split("/")):
            self._mistake(
                Code.SCHEMA_INVALID,
                f"{path!r} is not a plain relative path",
                pointer,
                "write it from the root of the repository, with / between",
            )

    def _known(self, name: str, known: Mapping[str, object], what: str, pointer: str) -> bool:
        try:
            lookup(name, known, what, self._document.at(pointer))
        except InputError as error:
            self.mistakes.append(error)
            return False
        return True

    def _mistake(self, code: Code, message: str, pointer: str, fix: str) -> None:
        self.mistakes.append(InputError(code, message, at=self._document.at(pointer), fix=fix))


def _pointer(*parts: str | int) -> str:
    pointer = "/spec"
    for part in parts:
        pointer = pointer_join(pointer, part)
    return pointer
