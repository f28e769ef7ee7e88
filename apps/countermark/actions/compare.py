"""`compare`: whether two benchmark runs may be compared, and then by how much they differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from countermark.actions.evidence import Gatherer
from countermark.actions.workspace import Workspace, open_reader
from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.digests import Digest
from countermark.attestations.documents import exists
from countermark.attestations.errors import InputError, Location, RefusedError
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue, as_object
from countermark.attestations.predicate_types import PredicateName
from countermark.contracts.measurements.broken import Broken, Places, findings
from countermark.contracts.measurements.comparability import incomparable, unrecorded
from countermark.contracts.measurements.consistency import contradictions
from countermark.contracts.measurements.difference import Difference, difference
from countermark.contracts.measurements.run import BenchmarkRun
from countermark.recorders.benchmark import read_benchmark


@dataclass(frozen=True, slots=True)
class Compared:
    """What forbids the comparison, or the difference; what else is to be known; and whether a limit was kept, where one was given."""

    base: BenchmarkRun
    candidate: BenchmarkRun
    refused: tuple[Finding, ...]
    notes: tuple[Finding, ...]
    difference: Difference | None
    limit: Fraction | None = None

    @property
    def exit(self) -> ExitCode:
        """0 they may be compared and it is told what differs; 1 they may not, or the limit is broken; 4 nothing can be told."""
        if self.refused:
            return ExitCode.NO
        if self.difference is None or not self.difference.conclusive:
            return ExitCode.CANNOT_TELL
        if self.limit is None:
            return ExitCode.YES
        return {True: ExitCode.NO, False: ExitCode.YES, None: ExitCode.CANNOT_TELL}[self.difference.regressed(self.limit)]


@dataclass(frozen=True, slots=True)
class _Run:
    run: BenchmarkRun
    at: Places


def compare(workspace: Workspace, base: str, candidate: str, variables: Sequence[str], max_regression: str | None) -> Compared:
    """Compare two runs, each a file or an entry of the ledger. `RefusedError` for a run that contradicts itself."""
    limit = _limit(max_regression) if max_regression is not None else None
    left, right = _run(workspace, base), _run(workspace, candidate)
    refused = findings(incomparable(left.run, right.run, variables), right.at)
    if refused:
        return Compared(left.run, right.run, refused, (), None, limit)
    found = difference(left.run, right.run)
    return Compared(left.run, right.run, (), findings(unrecorded(left.run), right.at), found, limit)


def _run(workspace: Workspace, text: str) -> _Run:
    """A run by file, entry number or payload digest."""
    path = Path(text)
    if exists(path):
        read = read_benchmark(path)
        found = _Run(read.judged.run, read.document.document.at)
    else:
        found = _Run(BenchmarkRun.of(as_object(_recorded(workspace, text))), lambda pointer: Location(text, pointer=pointer or None))
    against: Broken | None = next(contradictions(found.run), None)
    if against:
        message = f"the run contradicts itself: {against.checker}, required {against.required}, observed {against.observed}"
        raise RefusedError(Code.RECORD_CONTRADICTED, message, at=found.at(against.pointer), fix=against.fix)
    return found


def _recorded(workspace: Workspace, text: str) -> JsonValue:
    at = Location(text)
    digest = None if text.isdecimal() else Digest.stated(text)
    if not text.isdecimal() and digest is None:
        raise InputError(Code.UNREADABLE, "there is no such file or entry", at=at, fix="give a file, an entry number or a payload digest")
    workspace.check_ledger()
    trust = workspace.trust()
    with open_reader(workspace, trust) as reader:
        indices = (int(text),) if digest is None else reader.find_payload(digest.raw)
        records = Gatherer(reader, trust).statements(indices)
    runs = [item for item in records if item.statement.predicate_type == PredicateName.BENCHMARK_RUN.uri]
    if not runs:
        raise InputError(
            Code.REF_NOT_HERE, "it is no benchmark run of this ledger", at=at, fix="give the entry that `record benchmark` printed"
        )
    good = [item for item in runs if item.code is Code.OK]
    if not good:
        raise RefusedError(runs[0].code, "nobody who may record runs has signed it", at=at, fix="have a qualifier record it")
    return good[0].statement.predicate


def _limit(text: str) -> Fraction:
    try:
        share = Fraction(text) / 100
    except (ValueError, ZeroDivisionError):
        share = Fraction(-1)
    if not 0 <= share < 1:
        raise InputError(
            Code.BAD_NUMBER, f"{text!r} is no share", at=Location("--max-regression"), fix="give a percentage from 0, below 100"
        )
    return share
