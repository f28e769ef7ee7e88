"""Rules about the requests of a run (catalogue BM-15, 21 to 23, 42, 43)."""

from collections.abc import Iterator

from countermark.attestations.codes import Severity
from countermark.attestations.findings import Finding
from countermark.contracts.checkers.metrics import values
from countermark.contracts.checkers.parameters import operand, pointer, pointers, whole
from countermark.contracts.checkers.records import Block, RecordChecker, integer, real, record_fields
from countermark.contracts.pins import same, shown


class StopReason(RecordChecker):
    """Reads why requests ended."""

    name = "bench.stop-reason"
    rule = "All requests ended in one way, naturally or by length."
    ids = ("BM-15",)
    parameters = record_fields("reasons", reasons=pointers("why each request ended"))

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each end of another kind than the first."""
        found = values(block, "reasons")
        for it in found:
            if it.value not in ("stop", "length"):
                yield self.violation(it.at, required="stop or length", observed=shown(it.value), fix="leave the request out, and say so")
            elif it.value != found[0].value:
                required = f"{found[0].value}, as at line {found[0].at.line}"
                yield self.violation(it.at, required=required, observed=shown(it.value), fix="let all requests end alike")


class ConcurrencyReached(RecordChecker):
    """Compares the requests that were to run at once with those that did."""

    name = "bench.concurrency-reached"
    rule = "As many requests ran at once as were asked for, and nothing held them back."
    ids = ("BM-21",)
    parameters = record_fields(
        "requested",
        "effective",
        requested=operand("how many requests at once were asked for"),
        effective=pointer("how many ran at once"),
        flags=pointers("flags that say that something held them back; each must be false"),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for another number, and one for each flag that is not false."""
        requested, effective = block.operand("requested"), block.one("effective")
        if integer(requested) != integer(effective):
            required = f"{requested.value} at once"
            yield self.violation(
                effective.at, required=required, observed=shown(effective.value), fix="quote what was reached, or reach more"
            )
        for it in values(block, "flags") if "flags" in block.given else ():
            if it.value is not False:
                yield self.violation(it.at, required="false", observed=shown(it.value), fix="measure a cell that nothing holds back")


class ErrorsZero(RecordChecker):
    """Reads counts of what went wrong."""

    name = "bench.errors-zero"
    rule = "No request failed, and no server was killed or started again."
    ids = ("BM-22",)
    parameters = record_fields("counts", counts=pointers("counts of errors, kills, restarts and counter jumps"))

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each count that is not zero."""
        for it in values(block, "counts"):
            if integer(it):
                yield self.violation(it.at, required="0", observed=shown(it.value), fix="find the cause, and measure again")


class DurationWarmup(RecordChecker):
    """Reads how long a cell was measured, and what came before."""

    name = "bench.duration-warmup"
    rule = "A cell was measured for long enough, behind a warm-up of its own that did not time out."
    ids = ("BM-23",)
    parameters = record_fields(
        "seconds",
        "warmup",
        seconds=pointer("how long it was measured, in seconds"),
        warmup=pointer("the warm-up: requests or seconds"),
        timed_out=pointer("whether the warm-up timed out"),
        least_seconds=whole("how long is enough; 10 by default", minimum=1),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each that does not hold."""
        seconds, warmup, least = block.one("seconds"), block.maybe("warmup"), block.given.get("least_seconds", 10)
        if isinstance(least, int) and real(seconds) < least:
            yield self.violation(seconds.at, required=f"{least} s", observed=shown(seconds.value), fix="measure for longer")
        if warmup is None or real(warmup) <= 0:
            at = warmup.at if warmup else block.place("warmup")
            yield self.violation(
                at, required="a warm-up", observed=shown(warmup.value) if warmup else "nothing", fix="warm up, and record it"
            )
        timed_out = block.maybe("timed_out")
        if timed_out and timed_out.value is not False:
            yield self.violation(timed_out.at, required="false", observed=shown(timed_out.value), fix="wait until the server is warm")


class AccuracyInPerformance(RecordChecker):
    """Compares responses of a performance run with what they must be."""

    name = "bench.accuracy-in-performance"
    rule = "The sampled responses of a performance run are what its oracle demands."
    ids = ("BM-42",)
    parameters = record_fields(
        "expected",
        "observed",
        expected=pointers("what each sampled response must be"),
        observed=pointers("the responses, in the same order"),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each response that is another."""
        expected, observed = values(block, "expected"), values(block, "observed")
        if len(expected) != len(observed) or not expected:
            required = f"{len(expected) or 'some'} sampled responses"
            yield self.violation(
                block.place("observed"), required=required, observed=str(len(observed)), fix="sample responses, and keep them"
            )
            return
        for wanted, it in zip(expected, observed, strict=True):
            if not same(wanted.value, it.value):
                yield self.violation(it.at, required=shown(wanted.value), observed=shown(it.value), fix="claim no rate for wrong answers")


class RepeatProbe(RecordChecker):
    """Compares a repeated request with its first time."""

    name = "bench.repeat-probe"
    rule = "A request that is repeated does not get implausibly faster where no cache is declared."
    ids = ("BM-43",)
    parameters = record_fields(
        "first",
        "repeats",
        first=pointer("the time of the first request"),
        repeats=pointers("the times of its repetitions"),
        cached=pointer("whether a cache is declared to hold it"),
        least_percent=whole("the least share of the first time; 50 by default", minimum=1, maximum=100),
    )

    def applies(self, block: Block) -> bool:
        """No cache is declared."""
        cached = block.maybe("cached")
        return not (cached and cached.value is True)

    def judge(self, block: Block) -> Iterator[Finding]:
        """A warning for each repetition that is too fast, and a finding for a time that is none."""
        timed, least = block.one("first"), block.given.get("least_percent", 50)
        first = real(timed)
        if first <= 0:
            yield self.violation(timed.at, required="a time above 0", observed=shown(timed.value), fix="record the time as measured")
        for it in values(block, "repeats"):
            if isinstance(least, int) and real(it) * 100 < least * first:
                required, fix = f"at least {least} % of {first:g}", "declare the cache, or turn it off"
                yield self.violation(it.at, required=required, observed=shown(it.value), fix=fix, severity=Severity.WARN)
