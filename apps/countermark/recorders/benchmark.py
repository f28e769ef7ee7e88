"""A benchmark-run document from disk, as the statement to be: whole by its schema, with what was bound, and judged."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.documents import MAX_FILE
from countermark.attestations.errors import CannotTellError, InputError, Location, NothingError
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue, as_object
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import Subject
from countermark.contracts.adapters.bindings import Binding
from countermark.contracts.adapters.fields import Field, File
from countermark.contracts.adapters.own_kinds import checked
from countermark.contracts.measurements.bound import bound
from countermark.contracts.measurements.broken import findings
from countermark.contracts.measurements.estimate import ORDER_STATISTIC, bootstrap_method, interval, known_method
from countermark.contracts.measurements.judged import JudgedRun, judge
from countermark.contracts.measurements.run import BenchmarkRun, decimal
from countermark.contracts.measurements.vllm_serve import merged
from countermark.recorders.files import read_bytes
from countermark.recorders.recording import Recording


@dataclass(frozen=True, slots=True)
class WantedInterval:
    """An interval to compute where the document has none: its method, and its level between 0 and 1."""

    method: str
    level: Fraction

    @classmethod
    def parse(cls, text: str, level: str) -> "WantedInterval":
        """`order-statistic`, `bootstrap` or `bootstrap:SEED`, or the whole name of a method; `InputError` for anything else."""
        name, _, seed = text.partition(":")
        method = bootstrap_method(int(seed or 0)) if name == "bootstrap" and (seed or "0").isdecimal() and len(seed) < 10 else text
        try:
            share = Fraction(level)
        except (ValueError, ZeroDivisionError):
            share = Fraction(0)
        if not known_method(method) or not 0 < share < 1:
            raise InputError(
                Code.SCHEMA_INVALID,
                f"{text!r} at {level!r} is no interval",
                at=Location("--interval"),
                fix=f"write --interval {ORDER_STATISTIC} or bootstrap:SEED, and --level between 0 and 1",
            )
        return cls(method, share)


@dataclass(frozen=True, slots=True)
class BenchmarkRecording:
    """A run that was read: the document, its predicate with what was bound, and what it was judged to be without its quality report."""

    document: Field
    predicate: Mapping[str, JsonValue]
    judged: JudgedRun

    def judged_with(self, quality: JsonValue) -> "BenchmarkRecording":
        """The same, judged with the predicate of the quality report that it names."""
        return replace(self, judged=judge(self.predicate, quality))

    @property
    def contradictions(self) -> tuple[Finding, ...]:
        """What speaks against the run within itself, each at its place."""
        return findings(self.judged.contradictions, self.document.document.at)

    @property
    def limits(self) -> tuple[Finding, ...]:
        """What the run lacks for a serving claim, each at its place."""
        return findings(self.judged.limits, self.document.document.at)

    @property
    def recording(self) -> Recording:
        """The statement to be, about the image alone."""
        image = Digest.parse(str(as_object(self.predicate["tuple"]).get("image")))
        return Recording(PredicateName.BENCHMARK_RUN, (Subject.of(image),), dict(self.predicate))


def read_benchmark(path: Path, binds: Iterable[Binding] = (), wanted: WantedInterval | None = None) -> BenchmarkRecording:
    """Read a benchmark-run. `InputError` for what is none, and for a binding against it; `CannotTellError` for too few samples."""
    document = Field.of(File(path.name, read_bytes(path, MAX_FILE)))
    return benchmark_of(document, binds, wanted)


def import_results(
    paths: Sequence[Path], frame: Path, binds: Iterable[Binding] = (), wanted: WantedInterval | None = None
) -> BenchmarkRecording:
    """Results of `vllm bench serve`, each of one server start by its file's name, as one run; the frame says what they do not.

    The frame is a benchmark-run without observations, boots, repetitions, and without `n` and `value` in its summary, which are computed.
    Raises as `read_benchmark` does, and `RefusedError` for a result that contradicts itself.
    """
    names = [path.name.partition(".")[0] for path in paths]
    if len(set(names)) < len(names):
        raise InputError(
            Code.DUPLICATE_KEY, "two results have one name", at=Location(str(paths[-1])), fix="name each file by its server start"
        )
    results = {name: Field.of(File(path.name, read_bytes(path, MAX_FILE))) for name, path in zip(names, paths, strict=True)}
    document = Field.of(File(frame.name, read_bytes(frame, MAX_FILE)))
    if not isinstance(document.value, dict):
        raise InputError(Code.SCHEMA_INVALID, "a frame is an object", at=document.at, fix="see `countermark schema benchmark-run`")
    stated = {"summary": {}, **document.value}
    whole = merged(results, {**stated, "summary": {"n": 0, "value": "0", "interval": None, **as_object(stated["summary"])}})
    checked(PredicateName.BENCHMARK_RUN, replace(document, value=bound(PredicateName.BENCHMARK_RUN, whole, tuple(binds))))
    run = BenchmarkRun.of(whole)
    samples = run.samples()
    if samples:
        whole["summary"] = {**as_object(whole["summary"]), "n": len(samples), "value": decimal(run.summary.of(samples))}
    return benchmark_of(replace(document, value=whole), binds, wanted)


def benchmark_of(document: Field, binds: Iterable[Binding] = (), wanted: WantedInterval | None = None) -> BenchmarkRecording:
    """As `read_benchmark`, of a document that is read already."""
    if not isinstance(document.value, dict):
        raise InputError(Code.SCHEMA_INVALID, "a benchmark run is an object", at=document.at, fix="see `countermark schema benchmark-run`")
    fields = bound(PredicateName.BENCHMARK_RUN, document.value, binds)
    whole = dict(checked(PredicateName.BENCHMARK_RUN, replace(document, value=fields)))
    if wanted:
        whole = _with_interval(whole, wanted, document)
    if not whole["observations"] and not whole.get("windows"):
        at = document.document.at("/observations")
        raise NothingError(Code.NOTHING_EVALUATED, "the run observed nothing", at=at, fix="record the requests that were measured")
    found = judge(whole)
    return BenchmarkRecording(document, {name: value for name, value in whole.items() if name != "image"}, found)


def _with_interval(fields: dict[str, Any], wanted: WantedInterval, document: Field) -> dict[str, Any]:
    """The run with an interval where it has none; `CannotTellError` where its samples are too few for one."""
    run = BenchmarkRun.of(fields)
    samples = run.samples()
    if run.interval is not None or not samples:
        return fields
    made = interval(samples, run.summary, wanted.level, wanted.method)
    if made is None:
        raise CannotTellError(
            Code.RUNS_TOO_FEW,
            f"{len(samples)} samples have no interval at {decimal(wanted.level)} by {wanted.method}",
            at=document.document.at("/summary/n"),
            fix="measure more often, or record the run without --interval",
        )
    stated = {"low": decimal(made.low), "high": decimal(made.high), "level": decimal(made.level), "method": made.method}
    return {**fields, "summary": {**fields["summary"], "interval": stated}}
