"""Rules about status words: which there are, and what each of them says of the data beside it (QA-01, QA-03, QA-04, QA-05, QA-24)."""

import re
from collections.abc import Iterator

from countermark.attestations.codes import Status
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.contracts.checkers.parameters import Schema, choice, many, operand, pointer, pointers, table, text, texts
from countermark.contracts.checkers.records import Block, RecordChecker, integer, record_fields
from countermark.contracts.locators.base import Found
from countermark.contracts.pins import shown

_WORDS = tuple(str(status) for status in Status)
_MAPPED: Schema = table(
    "what words of the record's own mean; a word that is neither here nor in the vocabulary is refused", choice("a status", *_WORDS)
)
_PASSED = frozenset(("pass", "passed", "qualified", "verified", "ok"))


def _status(block: Block, value: JsonValue) -> str | None:
    """The status that a word means; none for a word without a meaning."""
    words = block.given.get("words")
    mapped = words.get(value) if isinstance(words, dict) and isinstance(value, str) else None
    return str(mapped) if mapped else value if isinstance(value, str) and value in _WORDS else None


def _is_true(value: JsonValue) -> bool:
    """Whether a value states a pass: true, or one of the words for it."""
    return value is True or (isinstance(value, str) and value.lower() in _PASSED)


class Vocabulary(RecordChecker):
    """Reads the status words of records."""

    name = "status.vocabulary"
    rule = "Every status is a word of the closed vocabulary, or one that the contract maps to it."
    ids = ("QA-01",)
    parameters = record_fields("status", status=pointers("the statuses: words, or objects of words by what they are about"), words=_MAPPED)

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each word that is not in the vocabulary, and one for each status that is no word."""
        for it in block.all("status"):
            parts = block.record.find(f"{it.at.pointer or ''}/*") if isinstance(it.value, dict) else [it]
            for found in parts:
                if _status(block, found.value) is None:
                    fix = "write a word of the vocabulary, or map this one in the contract"
                    yield self.violation(found.at, required=f"one of {', '.join(_WORDS)}", observed=shown(found.value), fix=fix)


class NotDeployable(RecordChecker):
    """Reads what a record with a low status says about deployment."""

    name = "status.not-deployable"
    rule = "What is research-only or rejected is marked neither deployable nor qualified."
    ids = ("QA-03",)
    parameters = record_fields(
        "status", "flags", status=pointer("the status"), flags=pointers("the flags that must be false"), words=_MAPPED
    )

    def applies(self, block: Block) -> bool:
        """Other statuses say nothing about these flags."""
        return _status(block, block.one("status").value) in (Status.RESEARCH_ONLY, Status.REJECTED)

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each flag that is not false."""
        status = block.one("status")
        for found in block.all("flags"):
            if found.value is not False:
                required = f"false under the status {status.value}"
                yield self.violation(
                    found.at, required=required, observed=shown(found.value), fix="set it to false, or qualify the artifact"
                )


class SemanticFailRejects(RecordChecker):
    """Reads the status of a restore that was whole and wrong."""

    name = "status.semantic-fail-rejects"
    rule = "An artifact whose restore passed every structural check and answered wrong is rejected."
    ids = ("QA-04",)
    parameters = record_fields(
        "structural",
        "semantic",
        "status",
        structural=pointers("whether the structure was verified"),
        semantic=pointers("whether the answer was right"),
        status=pointer("the status or conclusion of the record"),
        words=_MAPPED,
    )

    def applies(self, block: Block) -> bool:
        """Only a right structure with a wrong answer says anything."""
        structural, semantic = block.all("structural"), block.all("semantic")
        return all(_is_true(found.value) for found in structural) and not all(_is_true(found.value) for found in semantic)

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding when the status is another one."""
        status = block.one("status")
        if _status(block, status.value) != Status.REJECTED:
            required = "rejected: the structure was verified and the answer was wrong"
            yield self.violation(status.at, required=required, observed=shown(status.value), fix="reject the artifact")


class QualifiedComplete(RecordChecker):
    """Reads the controls behind the word `qualified`."""

    name = "status.qualified-complete"
    rule = "What is qualified has a structural pass on every rank, a right answer, a recompute control and a negative control."
    ids = ("QA-05",)
    parameters = record_fields(
        "status",
        "structural",
        "world",
        "semantic",
        "recompute",
        "negative",
        status=pointer("the status"),
        structural=pointers("the structural result of each rank"),
        world=operand("the number of ranks"),
        semantic=pointers("whether the answer was right"),
        recompute=pointers("whether the recompute control passed"),
        negative=pointers("whether the negative controls passed"),
        words=_MAPPED,
    )

    def applies(self, block: Block) -> bool:
        """Other words promise less."""
        return _status(block, block.one("status").value) == Status.QUALIFIED

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each control that is missing or did not pass."""
        world = integer(block.operand("world"))
        for control in ("structural", "semantic", "recompute", "negative"):
            found = [it for pointer in texts(block.given[control]) for it in block.find(pointer) if it.value is not None]
            least = world if control == "structural" else 1
            if len(found) < least:
                required, fix = (
                    f"{least} × {control}, because the status is qualified",
                    f"record the {control} control, or lower the status",
                )
                yield self.violation(block.place(control), required=required, observed=str(len(found)), fix=fix)
            yield from (self._failed(control, it) for it in found if not _is_true(it.value))

    def _failed(self, control: str, found: Found) -> Finding:
        required = f"a pass of the {control} control, because the status is qualified"
        return self.violation(found.at, required=required, observed=shown(found.value), fix="lower the status")


class PlannedNotPassed(RecordChecker):
    """Reads gates that are still to come."""

    name = "evidence.planned-not-passed"
    rule = "No gate that is planned or pending is read as passed: each has a result."
    ids = ("QA-24",)
    parameters = record_fields(
        "gates",
        gates=pointers("the results of the gates"),
        pending=many("regular expressions of words that are no result", text("an expression")),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each gate without a result."""
        own = [block.case.expression(pattern) for pattern in texts(block.given.get("pending"))]
        for found in block.all("gates"):
            if found.value is None or any(pattern.search(str(found.value)) for pattern in (_PENDING, *own)):
                yield self.violation(found.at, required="a result", observed=shown(found.value), fix="run the gate, and record its result")


_PENDING = re.compile(r"(?i)\b(?:pending|planned|todo|tbd|to be done|not[- ]yet|awaiting|remaining)\b")
