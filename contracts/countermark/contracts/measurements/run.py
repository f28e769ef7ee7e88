"""A benchmark run as it is computed with: exact operands, and the samples that its summary is over.

Reading is strict and does not need the schema: the gate sees predicates that nobody has checked. Durations become fractions, so that a
value is compared with what its operands give exactly, and not with the rounding of either.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final, Self

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.attestations.located import JsonValue, as_integer, as_list, as_object
from countermark.contracts.measurements.definitions import DEFINITIONS, Definition
from countermark.contracts.measurements.estimate import Interval, Summary

_DECIMAL: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,31})(?:\.[0-9]{1,31})?", re.ASCII)
FINISHED: Final = ("stop", "length")
"""How a request ends that was answered; one that failed or was given up is no sample."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One request: tokens, and durations in seconds. `task` is what was asked, the same text for each repetition of it."""

    id: str
    boot: str
    task: str
    prompt_tokens: int
    completion_tokens: int
    wall: Fraction
    ttft: Fraction | None
    finish: str
    bytes: int | None
    window: str | None
    response: str | None

    @property
    def finished(self) -> bool:
        """Whether it was answered."""
        return self.finish in FINISHED

    def value(self, definition: Definition) -> Fraction | None:
        """What its operands give; none where one is not recorded, or where they make no number (nothing took no time)."""
        known: dict[str, int | Fraction | None] = {
            "completion": self.completion_tokens,
            "prompt": self.prompt_tokens,
            "wall": self.wall,
            "ttft": self.ttft,
            "bytes": self.bytes,
            "seconds": self.wall,
        }
        return computed(definition, known)


@dataclass(frozen=True, slots=True)
class Window:
    """A span of time, in seconds, over which something was counted; `delta` is by how much a counter of the server grew in it."""

    id: str
    boot: str
    seconds: Fraction
    delta: int | None


@dataclass(frozen=True)
class BenchmarkRun:
    """A run. `stated` is the predicate; everything else is read from it, and `samples` are computed."""

    stated: Mapping[str, JsonValue]
    observations: tuple[Observation, ...]
    windows: tuple[Window, ...]
    definition: str
    unit: str
    summary: Summary
    n: int
    sampling_unit: str
    value: Fraction
    interval: Interval | None
    repeats: int
    boots: int

    @classmethod
    def of(cls, predicate: Mapping[str, JsonValue]) -> Self:
        """Read a predicate; `InputError` with the pointer of the first thing that has no meaning."""
        root = Reader(predicate)
        metric, summary = root.object("metric"), root.object("summary")
        definition = metric.text("definition")
        if definition not in DEFINITIONS:
            raise metric.wrong("definition", "is no definition of the closed list")
        method = summary.maybe_text("method")
        return cls(
            predicate,
            tuple(map(_observation, root.objects("observations"))),
            tuple(map(_window, root.objects("windows"))) if "windows" in predicate else (),
            definition,
            metric.text("unit"),
            Summary(summary.text("statistic"), summary.maybe_decimal("percentile"), method),
            summary.count("n"),
            summary.text("sampling_unit"),
            summary.decimal("value"),
            _interval(summary),
            root.count("repeats_of_identical_task"),
            root.count("boots"),
        )

    @property
    def finished(self) -> tuple[Observation, ...]:
        """The observations that were answered."""
        return tuple(item for item in self.observations if item.finished)

    def values(self, definition: str) -> list[tuple[str, str, Fraction | None]]:
        """Task, boot and value of each finished observation, or of each window, under a definition of the closed list."""
        rule = DEFINITIONS[definition]
        if rule.over_window:
            return [(window.id, window.boot, self._over(window, rule)) for window in self.windows]
        return [(item.task, item.boot, item.value(rule)) for item in self.finished]

    def samples(self, definition: str | None = None) -> list[Fraction] | None:
        """The samples that the summary is over, in the order of the run; none where an operand of one is not recorded.

        A request, rank or run is one observation (or window). A prompt is the mean of its repetitions, a boot the mean of what ran in it.
        """
        found = self.values(definition or self.definition)
        groups: dict[str, list[Fraction]] = {}
        for number, (task, boot, value) in enumerate(found):
            if value is None:
                return None
            key = {"prompt": task, "boot": boot}.get(self.sampling_unit, str(number))
            groups.setdefault(key, []).append(value)
        return [sum(values, Fraction(0)) / len(values) for values in groups.values()]

    @cached_property
    def tasks(self) -> dict[str, list[Observation]]:
        """The finished observations of each task."""
        found: dict[str, list[Observation]] = {}
        for item in self.finished:
            found.setdefault(item.task, []).append(item)
        return found

    @property
    def repeats_seen(self) -> int:
        """How often the task was run that was run the fewest times."""
        return min(map(len, self.tasks.values()), default=0)

    @property
    def boots_seen(self) -> int:
        """How many server starts the observations and windows name."""
        return len({item.boot for item in self.finished} | {window.boot for window in self.windows})

    def _over(self, window: Window, rule: Definition) -> Fraction | None:
        within = [item for item in self.finished if item.window == window.id]
        total = sum(item.completion_tokens for item in within) if within else None
        return computed(rule, {"completion": total, "window": window.seconds, "delta": window.delta})


def computed(definition: Definition, known: Mapping[str, int | Fraction | None]) -> Fraction | None:
    """The value of operands under a definition; none where one of them is missing or nothing is divided by nothing."""
    operands = [known.get(name) for name in definition.operands]
    if any(operand is None for operand in operands):
        return None
    try:
        return Fraction(definition.compute(*(Fraction(operand) for operand in operands if operand is not None)))
    except ZeroDivisionError:
        return None


def _observation(item: "Reader") -> Observation:
    name = item.text("id")
    return Observation(
        name,
        item.text("boot"),
        item.maybe_text("group") or name,
        item.count("prompt_tokens"),
        item.count("completion_tokens"),
        item.decimal("wall_s"),
        item.maybe_decimal("ttft_s"),
        item.text("finish"),
        item.count("bytes") if "bytes" in item.fields else None,
        item.maybe_text("window"),
        item.maybe_text("response"),
    )


def _window(item: "Reader") -> Window:
    counted = {"counter_before", "counter_after"} <= item.fields.keys()
    delta = item.count("counter_after") - item.count("counter_before") if counted else None
    return Window(item.text("id"), item.text("boot"), item.decimal("duration_s"), delta)


def _interval(summary: "Reader") -> Interval | None:
    if summary.fields.get("interval") is None:
        return None
    stated = summary.object("interval")
    return Interval(stated.decimal("low"), stated.decimal("high"), stated.decimal("level"), stated.text("method"))


class Reader:
    """The members of an object, each of the type that is asked for, or an `InputError` that says where it is not."""

    def __init__(self, fields: Mapping[str, JsonValue], pointer: str = "") -> None:
        self.fields = fields
        self.pointer = pointer

    def wrong(self, name: str, why: str) -> InputError:
        """The error that a member `why`."""
        return InputError(Code.SCHEMA_INVALID, f"{name} {why}", at=Location("", pointer=f"{self.pointer}/{name}"), fix=f"mend {name}")

    def object(self, name: str) -> "Reader":
        """A member that is an object."""
        if not isinstance(self.fields.get(name), dict):
            raise self.wrong(name, "is no object")
        return Reader(as_object(self.fields[name]), f"{self.pointer}/{name}")

    def objects(self, name: str) -> Iterator["Reader"]:
        """A member that is a list of objects."""
        if not isinstance(self.fields.get(name), list):
            raise self.wrong(name, "is no list")
        for number, item in enumerate(as_list(self.fields[name])):
            if not isinstance(item, dict):
                raise self.wrong(f"{name}/{number}", "is no object")
            yield Reader(item, f"{self.pointer}/{name}/{number}")

    def text(self, name: str) -> str:
        """A member that is text, and not empty."""
        value = self.maybe_text(name)
        if not value:
            raise self.wrong(name, "is no text")
        return value

    def maybe_text(self, name: str) -> str | None:
        """A member that is text or not there."""
        value = self.fields.get(name)
        if not isinstance(value, str | None):
            raise self.wrong(name, "is no text")
        return value

    def count(self, name: str) -> int:
        """A member that is an integer from 0."""
        value = as_integer(self.fields.get(name))
        if value is None or value < 0:
            raise self.wrong(name, "is no count")
        return value

    def decimal(self, name: str) -> Fraction:
        """A member that is a decimal text."""
        value = self.maybe_decimal(name)
        if value is None:
            raise self.wrong(name, "is not there")
        return value

    def maybe_decimal(self, name: str) -> Fraction | None:
        """A member that is a decimal text of at most 32 digits before and 31 behind the point, or not there."""
        value = self.fields.get(name)
        if value is None:
            return None
        if not isinstance(value, str) or not _DECIMAL.fullmatch(value):
            raise self.wrong(name, "is no decimal text of reasonable length")
        return Fraction(value)


def decimal(value: Fraction | float) -> str:
    """A number as decimal text: the shortest that reads back as the same double, without an exponent."""
    import decimal as arithmetic

    text = format(arithmetic.Decimal(repr(float(value))), "f")
    return text.removesuffix(".0")
