"""Rules about compatibility: what stored data depends on is what it was, and versions fit each other (catalogue FM-07, GC-19)."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.attestations.findings import Finding
from countermark.contracts.checkers.base import Case, Checker, Parameters, Result
from countermark.contracts.checkers.differences import Difference, differences
from countermark.contracts.checkers.parameters import fields, flag, many, pointer, table, text, texts
from countermark.contracts.checkers.records import Block, RecordChecker, record, record_fields
from countermark.contracts.locators.base import Found
from countermark.contracts.locators.compose import ComposeFile
from countermark.contracts.locators.structured import Document
from countermark.contracts.lock import Lock, locked
from countermark.contracts.pins import same, shown
from countermark.contracts.places import Occurrence


class FieldsUnchanged(Checker):
    """Compares facts with a baseline."""

    name = "compat.fields-unchanged"
    rule = "Every listed fact has the value that the baseline holds."
    ids = ("FM-07",)
    parameters = fields(
        "baseline",
        "fields",
        baseline=text("the path of a lock that `contract lock` wrote"),
        fields=many("names of facts of the contract", text("a fact"), minimum=0),
    )
    listed: ClassVar[int] = 8
    """How many parts of a fact are told one by one; where more differ, the fact is told as a whole."""

    def check(self, case: Case, given: Parameters) -> Result:
        """One finding for each part of a fact that differs, where it stands."""
        path = str(given["baseline"])
        lock = Lock.load(case.tree.read(path), path)
        if lock.id != case.contract:
            message = f"{path} is the baseline of {lock.id}, not of {case.contract}"
            raise InputError(Code.SCHEMA_INVALID, message, at=case.at, fix="name the baseline of this contract")
        names = texts(given["fields"])
        findings = [finding for name in names for finding in self._changed(case, name, lock)]
        return Result(len(names), tuple(findings))

    def _changed(self, case: Case, name: str, lock: Lock) -> Iterator[Finding]:
        occurrences = case.fact(name)
        before = lock.fact(name, case.at)
        now = locked(occurrences)
        found = list(differences(before, now))
        if len(found) > self.listed:
            found = [Difference("", shown(before), shown(now))]
        fix = f"put the value back, or give stored data a new identity and write a new baseline than {lock.id}@{lock.version}"
        for it in found:
            at = _place(case, occurrences, it.pointer)
            yield self.violation(at, required=f"{it.before}, as in the baseline of {name}", observed=it.after, fix=fix)


def _place(case: Case, occurrences: list[Occurrence], pointer: str) -> Location:
    """Where a part of a fact stands; of a fact with several values, the first part of the pointer says in which."""
    own = occurrences[0]
    if len(occurrences) > 1:
        index, slash, rest = pointer[1:].partition("/")
        own, pointer = (occurrences[int(index)] if index.isdecimal() else own), slash + rest
    parsed = case.files.parsed(own.at.file, own.place.locator)
    if pointer and isinstance(parsed, Document | ComposeFile):
        return parsed.at((own.at.pointer or "") + pointer)
    return own.at


class Pair(RecordChecker):
    """Looks versions up in a list of those that fit and those that do not."""

    name = "compat.pair"
    rule = "The versions in use are on no list of pairs that do not fit, and on the list of those that do where that is demanded."
    ids = ("GC-19",)
    parameters = record_fields(
        "versions",
        "list",
        versions=table("pointers to the versions, by the name that the list has for them", pointer("a version")),
        list=text("the path of the list: `deny` and `allow`, each a list of objects of versions by name"),
        strict=flag("whether the versions must be on the list of those that fit"),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for versions that do not fit, or that nobody tried."""
        pointers = block.given["versions"]
        found = {name: it for name, at in (pointers.items() if isinstance(pointers, dict) else ()) for it in block.find(str(at))[:1]}
        path = str(block.given["list"])
        listed = record(block.case, path)
        at = next(iter(found.values())).at if found else block.at()
        used = ", ".join(f"{name} {shown(it.value)}" for name, it in found.items())
        for row in listed.find("/deny/*"):
            if _on(row, found):
                required = f"other versions than the row at {path}:{row.at.line}"
                yield self.violation(at, required=required, observed=used, fix="use versions that fit")
        if block.given.get("strict") is True and not any(_on(row, found) for row in listed.find("/allow/*")):
            yield self.violation(
                at, required=f"versions on the list of {path}", observed=used, fix="try them together, and add them to the list"
            )


def _on(row: Found, used: Mapping[str, Found]) -> bool:
    """Whether a row of a list is about the versions in use."""
    versions = row.value if isinstance(row.value, dict) else {}
    return bool(versions) and all(name in used and same(used[name].value, version) for name, version in versions.items())
