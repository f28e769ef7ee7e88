"""Rules about what a record says of how a run was made (catalogue BM-02, 18, 19, 38 to 40, QA-26)."""

import math
from collections.abc import Iterator
from typing import Final

from countermark.attestations.codes import Outcome
from countermark.attestations.errors import InputError
from countermark.attestations.findings import Finding
from countermark.attestations.times import Instant
from countermark.contracts.checkers.metrics import values
from countermark.contracts.checkers.parameters import choice, flag, operand, pointer, pointers, table, whole
from countermark.contracts.checkers.records import Block, RecordChecker, integer, real, record_fields
from countermark.contracts.pins import ValueType, shown

_THINKING: Final = ("native-on", "native-off", "template-off", "none")


class BootIdentity(RecordChecker):
    """Counts the server starts that observations name."""

    name = "bench.boot-identity"
    rule = "Every observation names its server start, and a claim counts exactly those."
    ids = ("BM-02",)
    parameters = record_fields(
        "boots",
        boots=pointers("the server start of each observation"),
        claimed=operand("the number of server starts that is claimed"),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each observation without a start, and one for another count."""
        found = values(block, "boots")
        for it in found:
            if not isinstance(it.value, str | int) or isinstance(it.value, bool) or it.value == "":
                yield self.violation(it.at, required="the server start", observed=shown(it.value), fix="record which start it ran in")
        distinct = len({str(it.value) for it in found if it.value is not None})
        if "claimed" in block.given and integer(claimed := block.operand("claimed")) != distinct:
            yield self.violation(claimed.at, required=f"{distinct}, as observed", observed=shown(claimed.value), fix="count the starts")


class ThinkingMode(RecordChecker):
    """Reads how reasoning was switched."""

    name = "bench.thinking-mode"
    rule = "A run says whether reasoning was switched natively or by a template."
    ids = ("BM-18",)
    parameters = record_fields(
        "mode", mode=pointer("the mode"), words=table("what words of the record's own mean", choice("a mode", *_THINKING))
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for a mode that is missing or none of the list."""
        found, words = block.maybe("mode"), block.given.get("words")
        value = found.value if found else None
        mode = words.get(str(value), value) if isinstance(words, dict) else value
        if mode not in _THINKING:
            at = found.at if found else block.place("mode")
            observed = shown(value) if found else "nothing"
            yield self.violation(at, required=f"one of {', '.join(_THINKING)}", observed=observed, fix="record how it was switched")


class CacheState(RecordChecker):
    """Reads which caches were in use, and what the contexts shared."""

    name = "bench.cache-state"
    rule = "A run records its caches and what they held, and the shares of its contexts add up."
    ids = ("BM-19",)
    parameters = record_fields(
        "caches",
        "state",
        caches=pointers("whether each cache was on: a boolean, or on and off"),
        state=pointer("what they held: cold or warm"),
        shares=pointers("shares of the contexts in percent, which add up to 100"),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each cache or state that is not recorded, and one for shares that do not add up."""
        for it in values(block, "caches"):
            if not isinstance(it.value, bool) and it.value not in ("on", "off"):
                yield self.violation(it.at, required="on or off", observed=shown(it.value), fix="record whether the cache was on")
        state = block.maybe("state")
        if state is None or state.value not in ("cold", "warm"):
            at = state.at if state else block.place("state")
            observed = shown(state.value) if state else "nothing"
            yield self.violation(at, required="cold or warm", observed=observed, fix="record what the caches held")
        if "shares" in block.given:
            shares = values(block, "shares")
            total = math.fsum(real(it) for it in shares)
            if not math.isclose(total, 100, abs_tol=0.01):
                yield self.violation(shares[0].at, required="shares of 100 %", observed=f"{total:g} %", fix="account for every context")


class HarnessPinned(RecordChecker):
    """Reads which program measured."""

    name = "bench.harness-pinned"
    rule = "A run names the program that measured by name, version, digest and command line."
    ids = ("BM-38",)
    parameters = record_fields(
        "tool",
        "version",
        "digest",
        "command",
        tool=pointer("its name"),
        version=pointer("its version"),
        digest=pointer("the SHA-256 of its file"),
        command=pointer("the SHA-256 of the command line"),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each part that is missing or cut short."""
        for name in ("tool", "version", "digest", "command"):
            found = block.maybe(name)
            form = ValueType.SHA256.form if name in ("digest", "command") else None
            text = str(found.value).rpartition(":")[2] if found and form else found.value if found else None
            if not isinstance(text, str) or not text or (form and not form.fullmatch(text)):
                at, observed = (found.at, shown(found.value)) if found else (block.place(name), "nothing")
                required = "64 hex digits" if form else f"the {name}"
                yield self.violation(at, required=required, observed=observed, fix=f"record the {name} of the harness")


class DateWindow(RecordChecker):
    """Reads when a run was."""

    name = "bench.date-window"
    rule = "A run records when it began and ended, with offsets, in this order."
    ids = ("BM-39",)
    parameters = record_fields("began", "ended", began=pointer("when it began"), ended=pointer("when it ended"))

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each time that is missing or is none, and one for a wrong order."""
        times: list[Instant] = []
        for name in ("began", "ended"):
            found = block.maybe(name)
            try:
                times.append(Instant.parse(str(found.value) if found else ""))
            except InputError:
                at, observed = (found.at, shown(found.value)) if found else (block.place(name), "nothing")
                yield self.violation(at, required="a time with an offset", observed=observed, fix="record it like 2026-12-01T00:00:00Z")
        if len(times) == 2 and times[0] > times[1]:
            yield self.violation(block.place("ended"), required=f"after {times[0]}", observed=str(times[1]), fix="record both by one clock")


class SourceState(RecordChecker):
    """Reads who has seen a result."""

    name = "evidence.source-state"
    rule = "A result says whether its source reports it, whether the site reproduced it, and how many others did."
    ids = ("QA-26", "BM-40")
    parameters = record_fields(
        "reported",
        "reproduced",
        "runs",
        reported=pointer("whether the source reports it"),
        reproduced=pointer("whether the site reproduced it"),
        runs=pointer("the number of independent runs"),
        least_runs=whole("how many independent runs are needed; 0 by default", minimum=0),
        must_reproduce=flag("whether the site must have reproduced it; false by default"),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each that is not recorded, or is less than is needed."""
        for name in ("reported", "reproduced"):
            found = block.one(name)
            if not isinstance(found.value, bool):
                yield self.violation(found.at, required="true or false", observed=shown(found.value), fix="record who has seen it")
            elif name == "reproduced" and block.given.get("must_reproduce") is True and found.value is False:
                fix, outcome = "reproduce it here", Outcome.INCONCLUSIVE
                yield self.violation(found.at, required="true", observed=shown(found.value), fix=fix, outcome=outcome)
        runs, least = block.one("runs"), block.given.get("least_runs", 0)
        if isinstance(least, int) and integer(runs) < least:
            fix, outcome = "have it repeated by others", Outcome.INCONCLUSIVE
            yield self.violation(runs.at, required=f"{least} runs", observed=shown(runs.value), fix=fix, outcome=outcome)
