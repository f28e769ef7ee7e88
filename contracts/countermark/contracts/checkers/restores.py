"""Rules about what a restore shows: the exact answer, a control that could have failed, and that it happened (QA-06 to QA-08, FM-04)."""

import hashlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from countermark.attestations.codes import Outcome
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.contracts.checkers.parameters import choice, many, operand, pointer, pointers, texts
from countermark.contracts.checkers.records import Block, RecordChecker, integer, record_fields
from countermark.contracts.locators.base import Found
from countermark.contracts.pins import same, shown

_STEPS: Mapping[str, Callable[[str], str]] = {"none": str, "strip": str.strip, "lower": str.lower, "casefold": str.casefold}
_HEALTHY = 200
_HAPPENED = frozenset(("verified", "pass", "passed"))


def _normalised(value: str, steps: Sequence[str]) -> str:
    for step in steps:
        value = _STEPS[step](value)
    return value


def _likely_raw(observed: str) -> Iterator[str]:
    """What a model may have answered that a careless reader writes down as `observed`."""
    spelled = dict.fromkeys((observed, observed.capitalize(), observed.title(), observed.upper(), observed.lower()))
    for text, before, behind in itertools.product(spelled, ("", " ", "\n"), ("", "\n", " ", ".")):
        yield f"{before}{text}{behind}"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class SemanticOracle(RecordChecker):
    """Recomputes the hash and the verdict of an answer."""

    name = "restore.semantic-oracle"
    rule = "An answer is kept raw by its hash, and judged by equality under a declared normalisation."
    ids = ("QA-06",)
    parameters = record_fields(
        "expected",
        "observed",
        "sha256",
        expected=pointer("the answer that is required"),
        observed=pointer("the answer that was written down"),
        sha256=pointer("the SHA-256 of the raw answer"),
        raw=pointer("the raw answer, where it is kept"),
        passed=pointer("the verdict of the record; without it, the answer must be right"),
        normalisation=many("the declared steps from the raw answer to the one written down", choice("a step", *_STEPS), minimum=0),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for a hash of something else, for a normalisation that nobody declared, and for a verdict that is untrue."""
        expected, observed, digest = block.one("expected"), block.one("observed"), block.one("sha256")
        steps = texts(block.given.get("normalisation"))
        raw = self._raw(block, str(observed.value), str(digest.value))
        if raw is None:
            required, fix = "the SHA-256 of a raw answer that is here", "keep the raw answer"
            yield self.violation(digest.at, required=required, observed=shown(digest.value), fix=fix, outcome=Outcome.INCONCLUSIVE)
        elif _sha256(raw) != digest.value:
            required = f"{_sha256(raw)}, of the raw answer {raw!r}"
            yield self.violation(digest.at, required=required, observed=shown(digest.value), fix="record the hash of the raw answer")
        elif _normalised(raw, steps) != observed.value:
            required = f"{_normalised(raw, steps)!r}: the hash is of {raw!r}, normalised by {' and '.join(steps) or 'nothing'}"
            fix = "write the raw answer down, or declare the normalisation"
            yield self.violation(observed.at, required=required, observed=repr(observed.value), fix=fix)
        yield from self._verdict(block, expected, observed, raw, steps)

    @staticmethod
    def _raw(block: Block, observed: str, digest: str) -> str | None:
        kept = block.maybe("raw")
        if kept:
            return str(kept.value)
        return next((raw for raw in _likely_raw(observed) if _sha256(raw) == digest), None)

    def _verdict(self, block: Block, expected: Found, observed: Found, raw: str | None, steps: Sequence[str]) -> Iterator[Finding]:
        right = _normalised(raw, steps) == expected.value if raw is not None else same(observed.value, expected.value)
        passed = block.maybe("passed")
        if passed and passed.value is not right:
            required = f"{'true' if right else 'false'}: {shown(observed.value)!r} where {shown(expected.value)!r} is required"
            yield self.violation(passed.at, required=required, observed=shown(passed.value), fix="judge by equality")
        elif "passed" not in block.given and not right:
            required = f"{shown(expected.value)!r} exactly"
            yield self.violation(observed.at, required=required, observed=repr(observed.value), fix="reject the artifact")


class NegativeControl(RecordChecker):
    """Compares a control with the request that it controls."""

    name = "restore.negative-control"
    rule = "A control is as long as the request, of another prompt, requires another answer, is not served from the cache, and passes."
    ids = ("QA-07",)
    parameters = record_fields(
        "prompt",
        "tokens",
        "expected",
        "control_prompt",
        "control_tokens",
        "control_expected",
        "control_hits",
        prompt=pointer("the hash of the stored prompt"),
        tokens=pointer("its length"),
        expected=pointer("the answer that it requires"),
        control_prompt=pointer("the hash of the control's prompt"),
        control_tokens=pointer("its length"),
        control_expected=pointer("the answer that it requires"),
        control_hits=pointer("how many of its tokens came from the external cache"),
        control_passed=pointer("whether it passed"),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each way in which the control controls nothing."""
        prompt, tokens, expected = block.one("prompt"), block.one("tokens"), block.one("expected")
        control, length, required = block.one("control_prompt"), block.one("control_tokens"), block.one("control_expected")
        if same(control.value, prompt.value):
            yield self._no_control(control, "another prompt", "change one token of the prompt")
        if not same(length.value, tokens.value):
            yield self._no_control(length, f"{shown(tokens.value)}, the length of the request", "keep the length")
        if same(required.value, expected.value):
            fix = "choose a prompt that requires another answer, so that one cannot stand for the other"
            yield self._no_control(required, f"another answer than {shown(expected.value)!r}", fix)
        hits = block.maybe("control_hits")
        if hits is None:
            fix = "record the counters of the external cache"
            at = block.place("control_hits")
            yield self.violation(at, required="no external hits", observed="nothing", fix=fix, outcome=Outcome.INCONCLUSIVE)
        elif integer(hits) != 0:
            yield self._no_control(hits, "no external hits", "run the control so that it recomputes")
        passed = block.maybe("control_passed")
        if "control_passed" in block.given and (passed is None or passed.value is not True):
            yield self.violation(
                block.place("control_passed"), required="a pass", observed=shown(passed.value if passed else None), fix="run the control"
            )

    def _no_control(self, found: Found, required: str, fix: str) -> Finding:
        return self.violation(found.at, required=required, observed=shown(found.value), fix=fix)


class HitAttribution(RecordChecker):
    """Reads the counters that show where tokens came from."""

    name = "restore.hit-attribution"
    rule = "A restore has external hits and no local ones, lies behind a restart, and was verified on every rank."
    ids = ("QA-08", "BM-20")
    parameters = record_fields(
        "external",
        "local",
        external=pointer("tokens from the external cache"),
        local=pointer("tokens from the engine's own prefix cache"),
        boundary=pointer("the restart before it"),
        outcomes=pointers("the outcome of each rank"),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each sign that nothing was restored."""
        external, local = block.one("external"), block.one("local")
        if integer(external) <= 0:
            yield self._not_shown(external, "external hits")
        if integer(local) != 0:
            yield self._not_shown(local, "no local hits")
        if "boundary" in block.given:
            boundary = block.one("boundary")
            if boundary.value in (False, "", 0):
                yield self._not_shown(boundary, "a restart before the request")
        for found in block.all("outcomes"):
            if found.value not in _HAPPENED:
                yield self._not_shown(found, "verified")

    def _not_shown(self, found: Found, required: str) -> Finding:
        return self.violation(
            found.at, required=required, observed=shown(found.value), fix="repeat the restore behind a restart, and record its counters"
        )


class RecomputeEquivalent(RecordChecker):
    """Compares what came of a rejected load with a clean run."""

    name = "restore.recompute-equivalent"
    rule = "A load that was rejected and recomputed answers exactly as a clean run does."
    ids = ("GC-28",)
    parameters = record_fields(
        "recovered",
        "clean",
        recovered=pointer("the raw answer, or its hash, after the rejected load"),
        clean=operand("the same of a clean run: a pointer, or a fact"),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding when the two differ."""
        recovered, clean = block.one("recovered"), block.operand("clean")
        if not same(recovered.value, clean.value):
            required = f"{shown(clean.value)}, as in the clean run at {clean.at.file}:{clean.at.line}"
            yield self.violation(
                recovered.at, required=required, observed=shown(recovered.value), fix="find out what the rejected load left behind"
            )


class PostCanary(RecordChecker):
    """Reads the request after a restore."""

    name = "restore.post-canary"
    rule = "A fresh request after a restore is answered exactly, and the server is healthy."
    ids = ("GC-30",)
    parameters = record_fields(
        "expected",
        "observed",
        expected=pointer("the answer that the request requires"),
        observed=pointer("the answer"),
        health=pointer("the status of the health request"),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for the answer, and one for the health."""
        expected, observed = block.one("expected"), block.one("observed")
        if not same(expected.value, observed.value):
            yield self.violation(
                observed.at, required=f"{shown(expected.value)!r}", observed=repr(observed.value), fix="reject the restore"
            )
        if "health" in block.given and (health := block.one("health")).value != _HEALTHY:
            yield self.violation(health.at, required=str(_HEALTHY), observed=shown(health.value), fix="reject the restore")


class StreamDigest(RecordChecker):
    """Reads whether the digest of the whole stream was verified."""

    name = "restore.stream-digest"
    rule = "The digest of the whole stream was verified, follows from the objects, or was waived for a reason."
    ids = ("FM-04",)
    parameters = record_fields("digest", digest=pointer("what was done about it"), reason=pointer("why it was waived"))

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding when nothing was done, or nobody says why."""
        found, reason = block.maybe("digest"), block.maybe("reason")
        waived = found is not None and found.value == "waived" and _said(reason.value if reason else None)
        if found is None or not (found.value in ("verified", "implied") or waived):
            observed = shown(found.value) if found else "nothing"
            required, fix = "verified, implied, or waived with a reason", "recompute the digest of the stream"
            yield self.violation(block.place("digest"), required=required, observed=observed, fix=fix)


def _said(value: JsonValue) -> bool:
    return isinstance(value, str) and value.strip() != ""
