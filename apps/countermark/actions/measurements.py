"""`record benchmark`, `record quality`: measured documents are judged before they are appended, and one that contradicts itself is not
appended at all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from countermark.actions.appending import FILE_TYPE, Attester, Recorded, append, record
from countermark.actions.evidence import Gatherer
from countermark.actions.workspace import Workspace, open_reader
from countermark.attestations.codes import Code, Outcome
from countermark.attestations.digests import Digest
from countermark.attestations.errors import UsageError
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.attestations.outcomes import quality_outcome
from countermark.attestations.predicate_types import PredicateName
from countermark.contracts.adapters.bindings import Binding
from countermark.contracts.measurements.judged import JudgedRun
from countermark.ledger.leaf import EntryKind
from countermark.ledger.read import LedgerReader
from countermark.ledger.submission import Submission
from countermark.recorders.benchmark import BenchmarkRecording, WantedInterval, import_results, read_benchmark
from countermark.recorders.quality import read_quality


@dataclass(frozen=True, slots=True)
class RunRecorded:
    """A run as it was judged, its findings, and where it stands; nowhere, where it contradicts itself."""

    judged: JudgedRun
    findings: tuple[Finding, ...]
    recorded: Recorded | None


def record_benchmark(
    workspace: Workspace,
    paths: Sequence[Path],
    binds: Sequence[str],
    key: str | None,
    wanted: WantedInterval | None = None,
    frame: Path | None = None,
) -> RunRecorded:
    """Append a benchmark run, signed by a qualifier, unless something in it contradicts something else.

    With a `frame` the paths are results of `vllm bench serve`, one each server start; `UsageError` for several files without one.
    """
    workspace.check_ledger()
    bindings = [Binding.parse(text) for text in binds]
    if frame:
        return append_benchmark(workspace, import_results(paths, frame, bindings, wanted), key)
    if len(paths) > 1:
        raise UsageError(Code.UNSUPPORTED, "several files are results of one run", fix="give --frame FILE, which says what they do not")
    return append_benchmark(workspace, read_benchmark(paths[0], bindings, wanted), key)


@dataclass(frozen=True, slots=True)
class QualityRecorded:
    """A quality report with its roll-up, what speaks against it, and where it stands; nowhere, where anything does."""

    report: Mapping[str, JsonValue]
    outcome: Outcome
    findings: tuple[Finding, ...]
    recorded: Recorded | None


def record_quality(workspace: Workspace, path: Path, responses: Path | None, key: str | None) -> QualityRecorded:
    """Append a quality report with the raw responses at hand, signed by a qualifier, unless it contradicts itself or them."""
    workspace.check_ledger()
    found = read_quality(path, responses)
    report = found.recording.predicate
    outcome = quality_outcome(report)
    if found.contradictions:
        return QualityRecorded(report, outcome, found.contradictions, None)
    attester = Attester.of(workspace, "qualifier", key)
    kept = [Submission.sign(EntryKind.ATTESTATION, FILE_TYPE, raw, attester.signer) for raw in found.responses.values()]
    made = attester.attest_to(found.recording)
    receipts, head = append(workspace, [*kept, made.submission])
    return QualityRecorded(report, outcome, (), Recorded(made.statement, receipts[-1], head, found.recording.notes))


def append_benchmark(workspace: Workspace, found: BenchmarkRecording, key: str | None) -> RunRecorded:
    """As `record_benchmark`, of a run that was read already; its quality report is looked for in the ledger."""
    found = found.judged_with(_quality(workspace, found.predicate.get("quality")))
    if found.contradictions:
        return RunRecorded(found.judged, found.contradictions, None)
    return RunRecorded(found.judged, found.limits, record(workspace, found.recording, "qualifier", key))


def _quality(workspace: Workspace, stated: JsonValue) -> JsonValue:
    trust = workspace.trust()
    with open_reader(workspace, trust) as reader:
        return named_quality(reader, Gatherer(reader, trust), stated)


def named_quality(reader: LedgerReader, gatherer: Gatherer, stated: JsonValue) -> JsonValue:
    """The predicate of a quality report of the ledger that somebody who may has signed; none where there is none."""
    payload = Digest.stated(stated)
    if payload is None:
        return None
    records = gatherer.statements(reader.find_payload(payload.raw))
    reports = [item for item in records if item.statement.predicate_type == PredicateName.QUALITY_REPORT.uri and item.code is Code.OK]
    return reports[0].statement.predicate if reports else None
