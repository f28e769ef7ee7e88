"""Rules about status words: which there are, and what each of them says of the data beside it (QA-01 to QA-05, QA-24)."""

import itertools
import re
from collections.abc import Iterator

from countermark.attestations.codes import Status
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.contracts.checkers.base import Case, Parameters, Result
from countermark.contracts.checkers.parameters import Schema, choice, many, operand, pointer, pointers, table, text, texts
from countermark.contracts.checkers.records import Block, RecordChecker, blocks, integer, record_fields
from countermark.contracts.locators.base import Found
from countermark.contracts.pins import same, shown

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


class Transitions(RecordChecker):
    """Reads the history of a status."""

    name = "status.transitions"
    rule = "A status rises only with new evidence, and from rejected only by a retraction."
    ids = ("QA-02",)
    parameters = record_fields(
        "status",
        "evidence",
        status=pointer("the status of an entry; `each` names the entries of one history, oldest first"),
        evidence=pointer("the evidence of an entry"),
        retraction=pointer("the retraction of the rejection before it"),
        words=_MAPPED,
    )

    def check(self, case: Case, given: Parameters) -> Result:
        """One finding for each step up without evidence, and one for each way back from a rejection."""
        history = list(blocks(case, given))
        steps = [(before, after) for before, after in itertools.pairwise(history) if before.record.path == after.record.path]
        return Result(len(steps), tuple(finding for before, after in steps for finding in self._step(before, after)))

    def judge(self, block: Block) -> Iterator[Finding]:
        """An entry alone is no step."""
        del block
        yield from ()

    def _step(self, before: Block, after: Block) -> Iterator[Finding]:
        old, new = before.one("status"), after.one("status")
        was, now = _status(before, old.value), _status(after, new.value)
        if was is None or now is None:
            unknown = old if was is None else new
            required = f"one of {', '.join(_WORDS)}"
            yield self.violation(unknown.at, required=required, observed=shown(unknown.value), fix="write a word of the vocabulary")
            return
        evidence, earlier = after.maybe("evidence"), before.maybe("evidence")
        is_new = evidence is not None and not (earlier and same(evidence.value, earlier.value))
        if _RANK[Status(now)] > _RANK[Status(was)] and not is_new:
            required = f"new evidence for the step from {was} to {now}"
            yield self.violation(new.at, required=required, observed="none", fix="record the evidence, or keep the status")
        if was == Status.REJECTED and now != Status.REJECTED and not after.maybe("retraction"):
            yield self.violation(
                new.at,
                required="a retraction of the rejection",
                observed="none",
                fix="retract the rejection, by somebody else, with a reason",
            )


_UPWARDS = (Status.REJECTED, Status.UNSUPPORTED, Status.UNQUALIFIED, Status.IMPLEMENTED, Status.RESEARCH_ONLY, Status.QUALIFIED)
_RANK = {status: rank for rank, status in enumerate(_UPWARDS)}
_PENDING = re.compile(r"(?i)\b(?:pending|planned|todo|tbd|to be done|not[- ]yet|awaiting|remaining)\b")
