"""The trace: written canonically, read strictly, and every invariant of the engine broken once."""

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countermark.attestations.codes import Code, Severity
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError
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
    ReadBack,
    ReadBegun,
    Recompute,
    Requested,
    Submitted,
    TraceEvent,
    Verified,
)
from countermark.cuda_restore.occupancy import HighWater, high_water
from countermark.cuda_restore.timing import Phase
from countermark.cuda_restore.trace import Recorder, Trace, encode_traces, parse_traces
from countermark.cuda_restore.trace_rules import check_trace

MANIFEST = Digest.of(DigestKind.FILE, b"manifest")
LAYOUT = Digest.of(DigestKind.FILE, b"layout")
OBJECT = Digest.of(DigestKind.OBJECT, b"object")
Events = list[TraceEvent]


def read(index: int, slot: int, size: int = 100) -> Events:
    return [ReadBegun(index, index, slot, size), Authenticated(index, OBJECT)]


def sound(batch: int = 1) -> Events:
    """Four objects of 100 bytes through two slots, 20 bytes of header."""
    return [
        Requested(0, MANIFEST, 4, 400, 2, 200, batch),
        ManifestReread(MANIFEST),
        *read(0, 0),
        HeaderParsed(LAYOUT, 20),
        Planned(4, 8, 380),
        Ordered(),
        *read(1, 1),
        Submitted(0, 2, 80),
        Submitted(1, 2, 100),
        ReadBegun(2, 2, 0, 100),
        ReadBegun(3, 3, 1, 100),
        Authenticated(3, OBJECT),
        Authenticated(2, OBJECT),
        Submitted(2, 2, 100),
        Submitted(3, 2, 100),
        Completed(400, 4, 4, 380, 0),
        ReadBack(9),
        Verified(),
    ]


def failed() -> Events:
    """The third object is not what was promised."""
    return [
        *sound()[:12],
        ReadBegun(3, 3, 1, 100),
        Discarded(2),
        Discarded(3),
        Failed(Phase.READER_WAIT, 2, "BAD_DIGEST"),
        Recompute(),
    ]


def aborted() -> Events:
    events = failed()
    return [*events[:13], Aborted(), *events[13:]]


def without(events: Events, kind: type[TraceEvent]) -> Events:
    return [event for event in events if not isinstance(event, kind)]


def swapped(events: Events, first: int, second: int) -> Events:
    changed = list(events)
    changed[first], changed[second] = events[second], events[first]
    return changed


def changed(events: Events, index: int, event: TraceEvent) -> Events:
    return [*events[:index], event, *events[index + 1 :]]


def checkers(events: Events) -> list[str | None]:
    return [finding.checker for finding in check_trace(Trace(tuple(events)))]


def test_sound_traces_have_no_findings() -> None:
    assert checkers(sound()) == []
    assert checkers(sound(batch=2)) == []
    assert checkers(aborted()) == []


def at(events: Events, kind: type[TraceEvent], number: int = 0) -> int:
    return [index for index, event in enumerate(events) if isinstance(event, kind)][number]


BROKEN: list[tuple[str, Events]] = [
    ("restore.terminal-completion", []),
    ("restore.terminal-completion", sound()[1:]),
    ("restore.terminal-completion", sound()[:-1]),
    ("restore.terminal-completion", [*sound(), Verified()]),
    ("restore.terminal-completion", [*sound()[:-1], Verified(), ReadBack(1)]),
    ("restore.terminal-completion", [sound()[0], *sound()]),
    ("restore.manifest-reread", without(sound(), ManifestReread)),
    ("restore.manifest-reread", swapped(sound(), 1, 2)),
    ("restore.manifest-reread", changed(sound(), 1, ManifestReread(LAYOUT))),
    ("restore.parse-after-auth", swapped(sound(), 3, 4)),
    ("restore.parse-after-auth", without(sound(), HeaderParsed)),
    ("restore.batch-authenticated", swapped(sound(), at(sound(), Authenticated, 2), at(sound(), Submitted, 2))),
    ("restore.batch-authenticated", swapped(sound(batch=2), at(sound(), Authenticated, 1), at(sound(), Submitted, 0))),
    ("restore.batch-authenticated", swapped(sound(), at(sound(), Submitted, 2), at(sound(), Submitted, 3))),
    ("restore.bounds", changed(sound(), 0, Requested(0, MANIFEST, 4, 400, 1, 200, 1))),
    ("restore.bounds", changed(sound(), 0, Requested(0, MANIFEST, 4, 400, 2, 199, 1))),
    ("restore.fence", without(sound(), Ordered)),
    ("restore.fence", swapped(sound(), at(sound(), Ordered), at(sound(), Submitted))),
    ("restore.fence", [*sound()[:7], Ordered(), *sound()[7:]]),
    ("restore.placement-exact", without(sound(), Planned)),
    ("restore.placement-exact", changed(sound(), at(sound(), Planned), Planned(4, 8, 379))),
    ("restore.placement-exact", changed(sound(), at(sound(), Submitted), Submitted(0, 2, 79))),
    ("restore.slot-ticket", [*sound()[:3], ReadBegun(1, 1, 0, 100), *sound()[3:7], *sound()[8:]]),
    ("restore.slot-ticket", [*sound()[:3], *sound()[3:7], Submitted(3, 1, 100), *sound()[7:]]),
    ("restore.counters", changed(sound(), at(sound(), Completed), Completed(380, 4, 4, 380, 0))),
    ("restore.counters", changed(sound(), at(sound(), Completed), Completed(400, 3, 4, 380, 0))),
    ("restore.counters", changed(sound(), at(sound(), Completed), Completed(400, 4, 5, 380, 0))),
    ("restore.counters", changed(sound(), at(sound(), Completed), Completed(400, 4, 4, 379, 0))),
    ("restore.counters", changed(sound(), at(sound(), Completed), Completed(400, 4, 4, 380, 1))),
    ("restore.counters", without(sound(), Completed)),
    ("restore.every-object", [event for event in sound() if event != Authenticated(3, OBJECT)]),
    ("restore.every-object", [*sound()[:4], Authenticated(0, OBJECT), *sound()[4:]]),
    ("restore.every-object", [*sound()[:4], Authenticated(9, OBJECT), *sound()[4:]]),
    ("restore.abort-safe", failed()),
    ("restore.abort-safe", without(aborted(), Failed)),
    ("restore.abort-safe", [*aborted()[:-2], Submitted(1, 2, 100), *aborted()[-2:]]),
    ("restore.abort-safe", [*sound()[:-1], Failed(Phase.READBACK, None, "DRIVER_ERROR"), Verified()]),
    ("restore.undisturbed", [sound()[0], FaultInjected("page-swap"), *sound()[1:]]),
]  # fmt: skip


@pytest.mark.parametrize(("checker", "events"), BROKEN)
def test_a_broken_invariant_is_found(checker: str, events: Events) -> None:
    assert checker in checkers(events)


def test_every_rule_is_broken_somewhere() -> None:
    rules = {checker for checker, _ in BROKEN}
    everything = {found for _, events in BROKEN for found in checkers(events)}
    assert everything == rules
    assert len(rules) == 12


def test_a_finding_names_the_line_and_what_must_hold() -> None:
    finding = check_trace(Trace(tuple(swapped(sound(), 3, 4))), "rank0.trace")[0]
    assert finding.code is Code.CONTRACT_VIOLATED
    assert finding.severity is Severity.BLOCK
    assert str(finding.location) == "rank0.trace:4"
    assert finding.required
    assert finding.observed
    assert finding.fix


def test_high_water_counts_what_slots_hold() -> None:
    assert high_water(Trace(tuple(sound()))) == HighWater(2, 200)
    assert high_water(Trace(())) == HighWater(0, 0)
    assert high_water(Trace((*sound()[:3], Discarded(0), ReadBegun(1, 1, 1, 50)))) == HighWater(1, 100)


VOCABULARY: tuple[type[TraceEvent], ...] = get_args(TraceEvent)


def test_the_vocabulary_is_closed_and_its_names_are_distinct() -> None:
    names = [kind.name for kind in VOCABULARY]
    assert len(set(names)) == len(names) == 16


def test_one_of_everything_is_read_as_it_was_written() -> None:
    traces = (Trace(tuple(sound())), Trace((*aborted(), FaultInjected("ü"), Failed(Phase.LOOKUP, None, "X"))))
    data = encode_traces(traces)
    assert parse_traces(data, "trace") == traces
    assert {type(event) for trace in traces for event in trace.events} == set(VOCABULARY)
    assert traces[0].digest == Digest.of(DigestKind.FILE, traces[0].encode())


def test_no_trace_is_no_trace() -> None:
    assert parse_traces(b"", "trace") == ()


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b'{"event":"restored"}\n', Code.UNKNOWN_NAME),
        (b"{}\n", Code.UNKNOWN_NAME),
        (b'{"event":"ordered","object":1}\n', Code.SCHEMA_INVALID),
        (b'{"event":"discarded"}\n', Code.SCHEMA_INVALID),
        (b'{"event":"discarded","slab":"1"}\n', Code.BAD_NUMBER),
        (b'{"event":"discarded","slab":true}\n', Code.BAD_NUMBER),
        (b'{"event":"failed","cause":"X","object":null,"phase":"lunch"}\n', Code.UNKNOWN_NAME),
        (b'{"event":"manifest-reread","manifest":"file:sha256:abc123"}\n', Code.BAD_DIGEST),
        (b'{"event":"verified"}', Code.SCHEMA_INVALID),
        (b'{"event": "verified"}\n', Code.SCHEMA_INVALID),
        (b"\n", Code.SCHEMA_INVALID),
        (b"[]\n", Code.SCHEMA_INVALID),
    ],
)
def test_what_the_engine_does_not_write_is_refused(line: bytes, code: Code) -> None:
    with pytest.raises(InputError) as caught:
        parse_traces(line, "trace")
    assert caught.value.code is code


def test_a_recorder_ends_once() -> None:
    recorder = Recorder()
    ended = [recorder.ended]
    recorder.record(Ordered())
    ended.append(recorder.ended)
    recorder.end(Recompute())
    recorder.end(Verified())
    assert [*ended, recorder.ended] == [False, False, True]
    assert recorder.trace.events == (Ordered(), Recompute())


@settings(deadline=None)
@given(st.permutations(sound()))
def test_any_order_is_judged_without_failing(events: Events) -> None:
    """Checking is total: whatever order a trace is in, there are findings, never an exception."""
    assert (check_trace(Trace(tuple(events))) == []) <= (events[-1] == Verified())
