"""Whether a benchmark run is what its own operands give. A run that contradicts itself is not recorded, and bears nothing.

Rules of the catalogue: BM-02, 05, 07, 08, 09, 13, 24, 25, 30 and 39, as far as a run can break them against itself.
"""

from collections import Counter
from collections.abc import Iterator

from countermark.attestations.codes import Outcome
from countermark.attestations.errors import InputError
from countermark.attestations.located import JsonValue, as_list, as_object
from countermark.attestations.times import Instant
from countermark.contracts.measurements.broken import Broken
from countermark.contracts.measurements.definitions import DEFINITIONS, close
from countermark.contracts.measurements.estimate import Interval, interval, known_method
from countermark.contracts.measurements.run import BenchmarkRun, decimal

_MEDIAN_METHODS = (None, "mean-of-middle")
_PERCENTILE_METHODS = ("nearest-rank", "linear")


def contradictions(run: BenchmarkRun) -> Iterator[Broken]:
    """Everything in a run that speaks against something else in it."""
    yield from _subject(run)
    yield from _operands(run)
    yield from _coverage(run)
    yield from _counts(run)
    yield from _unit(run)
    named = list(_statistic(run))
    yield from named
    if not named:
        yield from _value(run)
        yield from _interval(run)
    yield from _times(run)
    yield from _tested(run)


def _subject(run: BenchmarkRun) -> Iterator[Broken]:
    """Tuple, scope and file name one image, one target and one draft."""
    used, scope = as_object(run.stated.get("tuple")), as_object(run.stated.get("scope"))
    stated = {"/image": run.stated.get("image", used.get("image")), "/scope/image": scope.get("image")}
    for pointer, image in stated.items():
        if image != used.get("image"):
            yield Broken(
                checker="evidence.subject",
                pointer=pointer,
                required=f"{used.get('image')}, the image of the tuple",
                observed=str(image),
                fix="name one image in tuple, scope and file",
            )
    for name in ("model", "draft"):
        if used.get(name) and scope.get(name) and used[name] != scope[name]:
            yield Broken(
                checker="evidence.subject",
                pointer=f"/scope/{name}",
                required=f"{_named(used[name])}, the {name} of the tuple",
                observed=_named(scope[name]),
                fix=f"name one {name} in tuple and scope",
            )


def _named(model: JsonValue) -> str:
    fields = as_object(model)
    return f"{fields.get('repository')}@{fields.get('revision')}" if fields else str(model)


def _operands(run: BenchmarkRun) -> Iterator[Broken]:
    """Times run forwards, and a first token comes before the last one."""
    for number, item in enumerate(run.observations):
        if item.wall <= 0 or (item.ttft is not None and not 0 < item.ttft <= item.wall):
            yield Broken(
                checker="bench.finite-numbers",
                pointer=f"/observations/{number}",
                required="0 < ttft_s <= wall_s",
                observed=f"wall_s {decimal(item.wall)}, ttft_s {'not recorded' if item.ttft is None else decimal(item.ttft)}",
                fix="record the durations as they were measured",
            )
    for number, window in enumerate(run.windows):
        if window.seconds <= 0 or (window.delta is not None and window.delta < 0):
            yield Broken(
                checker="bench.finite-numbers",
                pointer=f"/windows/{number}",
                required="a duration above 0, and a counter that does not fall",
                observed=f"duration_s {decimal(window.seconds)}, counter delta {window.delta}",
                fix="record one window of one server start",
            )


def _coverage(run: BenchmarkRun) -> Iterator[Broken]:
    """Each observation and window stands there once, and each window that is named is there."""
    for name, ids in (("observations", [item.id for item in run.observations]), ("windows", [item.id for item in run.windows])):
        for repeated, times in Counter(ids).items():
            if times > 1:
                yield Broken(
                    checker="bench.coverage-exact",
                    pointer=f"/{name}",
                    required=f"{repeated} once",
                    observed=f"{times} times",
                    fix="give each observation an id of its own, and count none twice",
                )
    known = {window.id for window in run.windows}
    for number, item in enumerate(run.observations):
        if item.window is not None and item.window not in known:
            yield Broken(
                checker="bench.coverage-exact",
                pointer=f"/observations/{number}/window",
                required="a window of this run",
                observed=item.window,
                fix="record the window with its duration",
            )


def _counts(run: BenchmarkRun) -> Iterator[Broken]:
    """Boots and repetitions are those that the observations show."""
    if run.boots != run.boots_seen:
        yield Broken(
            checker="bench.boot-identity",
            pointer="/boots",
            required=f"{run.boots_seen}, the server starts that the observations name",
            observed=str(run.boots),
            fix="count the server starts",
        )
    if run.repeats > run.repeats_seen and not DEFINITIONS[run.definition].over_window:
        yield Broken(
            checker="bench.repetitions",
            pointer="/repeats_of_identical_task",
            required=f"at most {run.repeats_seen}: so often the rarest task was run; what has no group is a task of its own",
            observed=str(run.repeats),
            fix="count the repetitions of one task, and give them one group",
        )


def _unit(run: BenchmarkRun) -> Iterator[Broken]:
    unit, wanted = run.unit, DEFINITIONS[run.definition].unit
    fits = unit.endswith("/s") if run.definition == "server.counter" else unit == wanted
    if not fits:
        yield Broken(
            checker="bench.unit-consistent",
            pointer="/metric/unit",
            required=f"{wanted}, the unit of {run.definition}",
            observed=unit,
            fix="state the unit of the definition",
        )


def _statistic(run: BenchmarkRun) -> Iterator[Broken]:
    """The statistic is named so fully that it can be computed in one way only."""
    summary = run.summary
    problem = None
    if summary.statistic not in ("median", "mean", "percentile"):
        problem = "one of median, mean, percentile"
    elif summary.statistic == "percentile" and not (summary.percentile is not None and 0 <= summary.percentile <= 100):
        problem = "a percentile from 0 to 100"
    elif summary.statistic == "percentile" and summary.method not in _PERCENTILE_METHODS:
        problem = "a percentile by nearest-rank or linear"
    elif summary.statistic == "median" and summary.method not in _MEDIAN_METHODS:
        problem = "a median as the mean of the middle two"
    if problem:
        observed = f"{summary.statistic} {summary.percentile or ''} by {summary.method or 'no method'}"
        yield Broken(
            checker="bench.statistic-named",
            pointer="/summary",
            required=problem,
            observed=observed,
            fix="name the statistic, its rank and its method",
        )


def _value(run: BenchmarkRun) -> Iterator[Broken]:
    """The value is that of the samples under the declared definition; another definition that gives it is named."""
    samples = run.samples()
    if not samples:
        operands = ", ".join(DEFINITIONS[run.definition].operands)
        yield Broken(
            checker="bench.recompute",
            pointer="/observations" if not run.windows else "/windows",
            required=f"samples with every operand of {run.definition} ({operands})",
            observed="none that is whole" if samples is None else "no finished observation",
            fix="record the operands of every observation, or do not state a value",
            outcome=Outcome.INCONCLUSIVE,
        )
        return
    if run.n != len(samples):
        yield Broken(
            checker="bench.recompute",
            pointer="/summary/n",
            required=f"{len(samples)} samples, one each {run.sampling_unit}",
            observed=str(run.n),
            fix="count the samples that the value is over",
        )
    made = run.summary.of(samples)
    if not close(run.value, made):
        others = [name for name in DEFINITIONS if name != run.definition and _gives(run, name)]
        which = f", which is {' and '.join(others)}" if others else ""
        yield Broken(
            checker="bench.denominator-declared" if others else "bench.recompute",
            pointer="/metric/definition" if others else "/summary/value",
            required=f"{decimal(made)}, the {run.summary.statistic} by {run.definition}",
            observed=f"{decimal(run.value)}{which}",
            fix=f"declare {others[0]}" if others else "recompute the value from its observations",
        )


def _gives(run: BenchmarkRun, definition: str) -> bool:
    samples = run.samples(definition)
    return bool(samples) and close(run.value, run.summary.of(samples or []))


def _interval(run: BenchmarkRun) -> Iterator[Broken]:
    """The interval holds the value, and is the one that its method gives for these samples."""
    stated, samples = run.interval, run.samples()
    if stated is None or not samples:
        return
    problem: str | None = None
    if not 0 < stated.level < 1 or stated.low > stated.high or not stated.holds(run.value):
        problem = f"low <= {decimal(run.value)} <= high, at a level between 0 and 1"
    elif known_method(stated.method):
        made = interval(samples, run.summary, stated.level, stated.method)
        if made is None:
            problem = f"another number of samples: no interval at {decimal(stated.level)} is computed over {len(samples)}"
        elif not made.agrees_with(stated):
            problem = f"{_shown(made)}, by {stated.method}"
    if problem:
        yield Broken(
            checker="bench.uncertainty",
            pointer="/summary/interval",
            required=problem,
            observed=f"{_shown(stated)} at {decimal(stated.level)}",
            fix="compute the interval from the samples, or leave it out",
        )


def _shown(found: Interval) -> str:
    return f"{decimal(found.low)} to {decimal(found.high)}"


def _times(run: BenchmarkRun) -> Iterator[Broken]:
    observed = as_object(run.stated.get("observed"))
    try:
        ends = [Instant.parse(text) for text in (observed.get("from"), observed.get("to")) if isinstance(text, str)]
    except InputError as error:
        yield Broken(
            checker="bench.date-window",
            pointer="/observed",
            required="times with an offset",
            observed=error.message,
            fix="write the times by RFC 3339",
        )
        return
    if len(ends) == 2 and ends[0] > ends[1]:
        yield Broken(
            checker="bench.date-window",
            pointer="/observed",
            required="from before to",
            observed=f"{ends[0]} to {ends[1]}",
            fix="record when the run began and when it ended",
        )


def _tested(run: BenchmarkRun) -> Iterator[Broken]:
    """A cell states no longer context than an observation reached."""
    longest = max((item.prompt_tokens + item.completion_tokens for item in run.finished), default=0)
    for number, cell in enumerate(as_list(as_object(run.stated.get("scope")).get("cells"))):
        claimed = as_object(cell).get("context_tokens")
        if isinstance(claimed, int) and claimed > longest and run.observations:
            yield Broken(
                checker="bench.tested-vs-configured",
                pointer=f"/scope/cells/{number}/context_tokens",
                required=f"at most {longest}, the longest context of an observation",
                observed=str(claimed),
                fix="state what was tested, not what is configured",
            )
