"""`compat.fields-unchanged` (catalogue FM-07): what stored data depends on is what it was, or the change is a declared one."""

from collections.abc import Iterator
from typing import ClassVar

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.attestations.findings import Finding
from countermark.contracts.checkers.base import Case, Checker, Parameters, Result
from countermark.contracts.checkers.differences import Difference, differences
from countermark.contracts.checkers.parameters import fields, many, text, texts
from countermark.contracts.locators.compose import ComposeFile
from countermark.contracts.locators.structured import Document
from countermark.contracts.lock import Lock, locked
from countermark.contracts.pins import shown
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
