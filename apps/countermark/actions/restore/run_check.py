"""A restore-run against the trace that it was signed with: a pure function, which needs neither snapshot nor device.

Each rank's numbers are compared with the events that they count, each timing with its own arithmetic, and every undisturbed trace with
the engine's invariants. Disturbed ones, which name their fault, break them on purpose.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.errors import Location
from countermark.attestations.findings import Finding
from countermark.cuda_restore.events import Completed, FaultInjected, Requested, Verified
from countermark.cuda_restore.occupancy import high_water
from countermark.cuda_restore.timing import check_timing
from countermark.cuda_restore.trace import Trace
from countermark.cuda_restore.trace_rules import check_trace

MENDS: Final = "qualify again, and supersede what does not hold"

_Fact = tuple[str, object, object]
"""A pointer, what is told there, and what the trace shows."""


def check_run(run: Mapping[str, Any], traces: Sequence[Trace], index: int) -> Iterator[Finding]:
    """Everything that does not hold in a `restore-run/v1` that fits its schema; `index` is its entry.

    The traces of the ranks come first, in the order of the ranks; those behind them are of the bundled oracle.
    """
    for pointer, told, shown in _facts(run, traces):
        if told != shown:
            at = Location(f"entry {index}", pointer=f"/predicate{pointer}")
            required = f"{shown}, by the trace"
            yield Finding(
                Code.RECORD_CONTRADICTED,
                Outcome.FAIL,
                MENDS,
                checker="restore.counters",
                location=at,
                required=required,
                observed=str(told),
            )
    for rank in run["ranks"]:
        yield from check_timing(rank["timing"]) if rank["structural"] == Outcome.PASS else ()  # a refusal takes no time to attribute
    for number, trace in enumerate(traces):
        disturbed = any(isinstance(event, FaultInjected) for event in trace.events)
        if number < len(run["ranks"]) or not disturbed:
            yield from check_trace(trace, f"trace {number} of entry {index}")


def _facts(run: Mapping[str, Any], traces: Sequence[Trace]) -> Iterator[_Fact]:
    yield "/trace/events", run["trace"]["events"], sum(len(trace.events) for trace in traces)
    for place, rank in enumerate(run["ranks"]):
        for pointer, told, shown in _rank_facts(rank, traces[place : place + 1]):
            yield f"/ranks/{place}{pointer}", told, shown


def _rank_facts(rank: Mapping[str, Any], traces: Sequence[Trace]) -> Iterator[_Fact]:
    """What a rank says, and what the events of its trace say of the same."""
    first = traces[0].events[0] if traces else None
    if not isinstance(first, Requested):
        yield "", "a rank", "no restore of it"
        return
    (trace,) = traces
    verified = isinstance(trace.events[-1], Verified)
    marks = high_water(trace)
    yield "/rank", rank["rank"], first.rank
    yield "/manifest", rank["manifest"], str(first.manifest)
    yield "/objects", rank["objects"], first.objects
    yield "/bytes", rank["bytes"], first.encoded_bytes if verified else 0
    yield "/readers_max", rank["readers_max"], marks.readers
    yield "/retained_bytes_max", rank["retained_bytes_max"], marks.retained_bytes
    if rank["structural"] == Outcome.PASS:
        yield "/structural", Outcome.PASS, Outcome.PASS if verified else Outcome.FAIL
    for event in trace.events:
        if isinstance(event, Completed):
            for name in ("source_bytes", "slabs", "launches", "device_error"):
                yield f"/counters/{name}", rank["counters"][name], getattr(event, name)
