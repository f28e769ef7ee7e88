"""What happened in a restore, in order, as canonical JSON lines; recorded by the engine, read again by whoever checks it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Final, get_args, get_type_hints

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.jsontext import loads
from countermark.attestations.located import JsonValue
from countermark.cuda_restore.events import Requested, Terminal, TraceEvent
from countermark.cuda_restore.timing import Phase
from countermark.cuda_restore.wire import Fields, canonical, placed, refusal

_Value = int | str | Digest | Phase | None

_KINDS: Final[dict[str, type[TraceEvent]]] = {event.name: event for event in get_args(TraceEvent)}


@dataclass(frozen=True, slots=True)
class Trace:
    """The events of one restore on one rank."""

    events: tuple[TraceEvent, ...]

    def encode(self) -> bytes:
        """One canonical JSON object a line."""
        return b"".join(canonical(_wire(event)) + b"\n" for event in self.events)

    @property
    def digest(self) -> Digest:
        """The SHA-256 of the lines, as of a file."""
        return Digest.of(DigestKind.FILE, self.encode())


class Recorder:
    """Takes events from all threads of one restore; appending to a list is atomic, so its order is theirs."""

    def __init__(self) -> None:
        self._events: list[TraceEvent] = []

    def record(self, event: TraceEvent) -> None:
        """Add an event."""
        self._events.append(event)

    def end(self, event: Terminal) -> None:
        """Add the terminal event; only the first one counts."""
        if not self.ended:
            self._events.append(event)

    @property
    def ended(self) -> bool:
        """Whether the restore has reached its terminal state."""
        return bool(self._events) and isinstance(self._events[-1], Terminal)

    @property
    def trace(self) -> Trace:
        """What was recorded so far."""
        return Trace(tuple(self._events))


def encode_traces(traces: Sequence[Trace]) -> bytes:
    """The traces of several ranks in one file, one behind the other."""
    return b"".join(trace.encode() for trace in traces)


def parse_traces(data: bytes, source: str) -> tuple[Trace, ...]:
    """Read a trace file; each `requested` begins the trace of a rank. `InputError` names the line that is not of the vocabulary."""
    runs: list[list[TraceEvent]] = []
    for number, line in enumerate(data.splitlines(), start=1):
        event = _parse(line, f"{source}:{number}")
        if isinstance(event, Requested) or not runs:
            runs.append([])
        runs[-1].append(event)
    if encode_traces(traces := tuple(Trace(tuple(run)) for run in runs)) != data:
        raise refusal(source, "", "the lines are not in canonical form", "keep the file as it was written")
    return traces


def _wire(event: TraceEvent) -> dict[str, JsonValue]:
    return {"event": event.name, **dict(_members(event))}


def _members(event: TraceEvent) -> Iterator[tuple[str, JsonValue]]:
    for field in fields(event):
        value: _Value = getattr(event, field.name)
        yield field.name, value if value is None or isinstance(value, int) else str(value)


def _parse(line: bytes, source: str) -> TraceEvent:
    found = Fields.of(loads(line, source), source)
    name = found.text("event") if "event" in found.members else ""
    if name not in _KINDS:
        raise found.refuse("event", f"{name!r} is no event of a restore", "give the trace that the engine wrote", Code.UNKNOWN_NAME)
    kinds = _field_kinds(_KINDS[name])
    found.exact(("event", *kinds))
    make: Callable[..., TraceEvent] = _KINDS[name]
    return make(**{field: _value(found, field, kind) for field, kind in kinds.items()})


def _field_kinds(event: type[TraceEvent]) -> dict[str, object]:
    hints = get_type_hints(event)
    return {field.name: hints[field.name] for field in fields(event)}


def _value(found: Fields, name: str, kind: object) -> _Value:
    if kind is int:
        return found.integer(name)
    if kind is Phase:
        return found.choice(name, Phase)
    if kind is Digest:
        with placed(found.source, f"/{name}"):
            return Digest.parse(found.text(name))
    if kind is str:
        return found.text(name)
    return None if found.members[name] is None else found.integer(name)
