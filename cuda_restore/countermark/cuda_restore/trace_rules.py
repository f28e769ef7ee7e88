"""The invariants of the engine, checked from the trace alone.

A pure function from events to findings, so that whoever receives a trace can check it again without the engine, the snapshot or a
device. Each rule is one function that yields the number of an event and what is wrong with it. (Contract catalogue RE-01 to RE-14.)
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.errors import Location
from countermark.attestations.findings import Finding
from countermark.cuda_restore.events import (
    Aborted,
    Authenticated,
    Completed,
    Discarded,
    Failed,
    FaultInjected,
    HeaderParsed,
    ManifestReread,
    Ordered,
    Planned,
    ReadBegun,
    Recompute,
    Requested,
    Submitted,
    Terminal,
    TraceEvent,
    Verified,
)
from countermark.cuda_restore.occupancy import occupancy
from countermark.cuda_restore.trace import Trace

_E = TypeVar("_E", bound=TraceEvent)
Events: TypeAlias = Sequence[TraceEvent]
Problems: TypeAlias = Iterator[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One invariant: the checker's name, the sentence that must hold, and the function that finds what breaks it."""

    checker: str
    required: str
    problems: Callable[[Requested, Events], Problems]


def check_trace(trace: Trace, source: str = "trace") -> list[Finding]:
    """Every broken invariant of one rank's trace; none for a sound one, whatever its outcome."""
    events = trace.events
    if not events or not isinstance(events[0], Requested):
        return [_finding(_RULES[0], source, 0, "the trace does not begin with a request")]
    found = [(rule, number, text) for rule in _RULES for number, text in rule.problems(events[0], events)]
    return [_finding(rule, source, number, text) for rule, number, text in found]


def _terminal(_request: Requested, events: Events) -> Problems:
    for number, event in enumerate(events):
        last = number == len(events) - 1
        if isinstance(event, Terminal) != last:
            yield number, f"{event.name} {'ends' if last else 'does not end'} the trace"
        if number and isinstance(event, Requested):
            yield number, "a second request"


def _manifest(request: Requested, events: Events) -> Problems:
    for number, event in _every(events, ManifestReread):
        if event.manifest != request.manifest:
            yield number, f"{event.manifest} was read again, {request.manifest} was looked up"
    yield from _none_before(events, ReadBegun, ManifestReread)


def _parse_after_authentication(_request: Requested, events: Events) -> Problems:
    authenticated: set[int] = set()
    for number, event in enumerate(events):
        if isinstance(event, Authenticated):
            authenticated.add(event.object)
        if isinstance(event, HeaderParsed) and 0 not in authenticated:
            yield number, "the header was parsed while the first object was not authenticated"
    yield from _none_before(events, Planned, HeaderParsed)


def _authenticated_before_placed(request: Requested, events: Events) -> Problems:
    batches: dict[int, set[int]] = {}  # batch -> the objects of its slabs
    for _, begun in _every(events, ReadBegun):
        batches.setdefault(begun.slab // request.batch, set()).add(begun.object)
    authenticated: set[int] = set()
    previous = -1
    for number, event in enumerate(events):
        if isinstance(event, Authenticated):
            authenticated.add(event.object)
        if not isinstance(event, Submitted):
            continue
        if missing := sorted(batches.get(event.slab // request.batch, set()) - authenticated):
            yield number, f"slab {event.slab} was submitted while objects {missing} of its batch were not authenticated"
        if event.slab <= previous:
            yield number, f"slab {event.slab} was submitted after slab {previous}"
        previous = event.slab


def _bounds(request: Requested, events: Events) -> Problems:
    for number, reading, held in occupancy(events):
        if len(reading) > request.readers:
            yield number, f"{len(reading)} objects were being read, {request.readers} are allowed"
        if sum(held.values()) > request.retained_bytes:
            yield number, f"slots held {sum(held.values())} bytes, {request.retained_bytes} are allowed"


def _fence(_request: Requested, events: Events) -> Problems:
    yield from _none_before(events, Submitted, Ordered)
    for number, _ in _every(events, Ordered)[1:]:
        yield number, "a second placement was opened"


def _placement_exact(request: Requested, events: Events) -> Problems:
    yield from _none_before(events, Submitted, Planned)
    header = sum(event.header_bytes for _, event in _every(events, HeaderParsed))
    for number, event in _every(events, Planned):
        if event.bytes != request.encoded_bytes - header:
            yield number, f"{event.bytes} bytes are planned of {request.encoded_bytes} with a header of {header}"
    placed = sum(event.bytes for _, event in _every(events, Submitted))
    for number, _ in _every(events, Verified):
        planned = sum(event.bytes for _, event in _every(events, Planned))
        if placed != planned:
            yield number, f"{placed} bytes were submitted of {planned} planned"


def _slot_ticket(_request: Requested, events: Events) -> Problems:
    filling: dict[int, int] = {}  # slot -> the slab that it was taken for and that was neither submitted nor discarded
    ended: set[int] = set()
    for number, event in enumerate(events):
        match event:
            case ReadBegun():
                if filling.get(event.slot, event.slab) != event.slab:
                    yield number, f"slot {event.slot} was taken for slab {event.slab} while it held slab {filling[event.slot]}"
                if event.slab in ended:
                    yield number, f"object {event.object} was read into slab {event.slab}, which is no longer in a slot"
                filling[event.slot] = event.slab
            case Submitted() | Discarded():
                if event.slab not in filling.values():
                    yield number, f"slab {event.slab} is in no slot"
                filling = {slot: slab for slot, slab in filling.items() if slab != event.slab}
                ended.add(event.slab)
            case _:
                pass


def _counters(request: Requested, events: Events) -> Problems:
    submitted = len(_every(events, Submitted))
    for number, event in _every(events, Completed):
        planned = next((plan for _, plan in _every(events, Planned)), None)
        wanted = (request.encoded_bytes, planned.slabs, submitted, planned.bytes, 0) if planned else ()
        got = (event.source_bytes, event.slabs, event.launches, event.placed_bytes, event.device_error)
        if got != wanted and _every(events, Verified):
            yield number, f"(source bytes, slabs, launches, placed bytes, device error) are {got}, not {wanted}"
    yield from _none_before(events, Verified, Completed)


def _every_object(request: Requested, events: Events) -> Problems:
    if not _every(events, Verified):
        return
    counts = Counter(event.object for _, event in _every(events, Authenticated))
    for index in range(request.objects):
        if counts[index] != 1:
            yield len(events) - 1, f"object {index} was authenticated {counts[index]} times"
    if counts.keys() - set(range(request.objects)):
        yield len(events) - 1, "an object was authenticated that the manifest does not have"


def _abort(_request: Requested, events: Events) -> Problems:
    ended = False
    for number, event in enumerate(events):
        if isinstance(event, Submitted) and ended:
            yield number, f"slab {event.slab} was submitted after the placement had ended"
        ended = ended or isinstance(event, Aborted | Completed | Failed)
    for number, _ in _every(events, Recompute):
        if _every(events, Ordered) and not _every(events, Aborted) and not _every(events, Completed):
            yield number, "the placement was left without waiting for submitted work"
        if not _every(events, Failed):
            yield number, "the prefix is recomputed and nothing says why"
    if _every(events, Verified):
        for number, bad in enumerate(events):
            if isinstance(bad, Failed | Aborted):
                yield number, f"verified in spite of {bad.name}"


def _undisturbed(_request: Requested, events: Events) -> Problems:
    for number, event in _every(events, FaultInjected):
        yield number, f"the fault {event.fault} was injected"


_RULES: Final = (
    Rule("restore.terminal-completion", "one request, and one terminal event at the end", _terminal),
    Rule("restore.manifest-reread", "the manifest is read again, and equal, before any object is read", _manifest),
    Rule("restore.parse-after-auth", "the first object is authenticated before its header is parsed", _parse_after_authentication),
    Rule(
        "restore.batch-authenticated",
        "nothing of a batch is placed before all of it is authenticated; in order",
        _authenticated_before_placed,
    ),
    Rule("restore.bounds", "readers and retained bytes stay within their bounds", _bounds),
    Rule("restore.fence", "the placement is ordered after the prerequisite before the first slab", _fence),
    Rule("restore.placement-exact", "every destination byte is planned once and submitted once", _placement_exact),
    Rule("restore.slot-ticket", "a slot is taken again only after its slab was submitted or discarded", _slot_ticket),
    Rule("restore.counters", "source bytes, slabs, launches and placed bytes as planned; device error 0", _counters),
    Rule("restore.every-object", "a verified restore authenticated every object once", _every_object),
    Rule("restore.abort-safe", "a failed restore says why, submits no more, and waits for what it submitted", _abort),
    Rule("restore.undisturbed", "no fault was injected", _undisturbed),
)


def _every(events: Events, kind: type[_E]) -> list[tuple[int, _E]]:
    return [(number, event) for number, event in enumerate(events) if isinstance(event, kind)]


def _none_before(events: Events, late: type[TraceEvent], early: type[TraceEvent]) -> Problems:
    """Every event of kind `late` stands behind one of kind `early`."""
    for number, event in enumerate(events):
        if isinstance(event, early):
            return
        if isinstance(event, late):
            yield number, f"{late.name} without {early.name} before it"


def _finding(rule: Rule, source: str, number: int, observed: str) -> Finding:
    return Finding(
        Code.CONTRACT_VIOLATED,
        Outcome.FAIL,
        "do not use the restored prefix; restore again with a sound engine",
        checker=rule.checker,
        location=Location(source, line=number + 1),
        required=rule.required,
        observed=observed,
    )
