"""`verify receipt`: hold a receipt against the statements it rests on, and a restore-run against the trace that it was signed with.

The controls, the basis and the scope of a receipt are recomputed by the gate's own rules; what lies below is `run_check`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from countermark.actions.catalogue import load_catalogue
from countermark.actions.evidence import Gatherer
from countermark.actions.restore.run_check import MENDS, check_run
from countermark.actions.workspace import Workspace, open_reader
from countermark.attestations.codes import Code, ExitCode, Outcome
from countermark.attestations.digests import Digest
from countermark.attestations.errors import CannotTellError, InputError, Location
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.schema import problems_for_predicate
from countermark.attestations.trust import TrustPolicy
from countermark.contracts.basis import Basis
from countermark.contracts.catalogue import Catalogue
from countermark.contracts.evidence import Entry, Evidence
from countermark.contracts.receipt import Receipt
from countermark.cuda_restore.trace import parse_traces
from countermark.ledger.read import Head, LedgerReader


@dataclass(frozen=True, slots=True)
class CheckedReceipt:
    """One receipt or run and what was found. `basis` is none for a run; `traces` is how many were looked at."""

    index: int
    name: PredicateName
    predicate: Mapping[str, JsonValue]
    findings: tuple[Finding, ...]
    traces: int
    basis: str | None = None


@dataclass(frozen=True, slots=True)
class CheckedReceipts:
    """All of them, at one head."""

    checked: tuple[CheckedReceipt, ...]
    head: Head

    @property
    def exit(self) -> ExitCode:
        """No, as soon as one does not hold."""
        return ExitCode.NO if any(item.findings for item in self.checked) else ExitCode.YES


def verify_receipts(workspace: Workspace, references: Sequence[str]) -> CheckedReceipts:
    """Check receipts and restore-runs of the ledger, by entry number or payload digest. `InputError` for a statement of another type."""
    trust, catalogue = workspace.trust(), load_catalogue()
    with open_reader(workspace, trust) as reader:
        return CheckedReceipts(tuple(_check(reader, trust, catalogue, text) for text in references), reader.head)


def _check(reader: LedgerReader, trust: TrustPolicy, catalogue: Catalogue, text: str) -> CheckedReceipt:
    entry, evidence = _find(reader, trust, text)
    name = PredicateName.from_uri(entry.statement.predicate_type)
    findings = [*_said_by(entry, evidence), *_schema(entry)]
    if name is PredicateName.RESTORE_RUN:
        found, traces = _run(reader, entry)
        return CheckedReceipt(entry.index, name, entry.predicate, (*findings, *found), traces)
    if name is not PredicateName.QUALIFICATION_RECEIPT:
        fix = "give a qualification-receipt or a restore-run"
        raise InputError(Code.UNKNOWN_NAME, f"{text} is a {name or entry.statement.predicate_type}", fix=fix)
    receipt = Receipt.of(entry)
    basis = Basis(receipt, catalogue.get(receipt.capability, Location(f"entry {entry.index}")), evidence)
    findings += [_finding(entry, Code.CONTROLS_INCOMPLETE, "evidence.refs-resolve", why) for why in basis.unusable()]
    findings += [_finding(entry, Code.RECEIPT_CONTRADICTED, "status.qualified-complete", why) for why in basis.contradictions()]
    traces = 0
    for run in _runs(entry, evidence):
        found, count = _run(reader, run)
        findings += found
        traces += count
    return CheckedReceipt(entry.index, name, entry.predicate, tuple(findings), traces, basis.kind)


def _find(reader: LedgerReader, trust: TrustPolicy, text: str) -> tuple[Entry, Evidence]:
    """The entry, and everything that bears on what it is about."""
    gatherer = Gatherer(reader, trust)
    indices = (int(text),) if text.isdecimal() else reader.find_payload(Digest.parse(text, at=Location("ENTRY")).raw)
    found = gatherer.records(indices)
    if not found:
        raise InputError(Code.REF_NOT_HERE, f"{text} is no statement of this ledger", fix="give the entry that `restore qualify` printed")
    subjects = [digest for subject in found[0].statement.subjects for digest in subject.typed]
    around = gatherer.gather(subjects[0])[0] if subjects else ()
    evidence = Evidence.of((*found, *around), trust)
    entry = evidence.find(str(found[0].payload))
    assert entry is not None
    return entry, evidence


def _said_by(entry: Entry, evidence: Evidence) -> Iterator[Finding]:
    if not entry.counts_as():
        code = entry.code if entry.code is not Code.OK else Code.ROLE
        yield _finding(entry, code, "evidence.root", f"{entry.signer} may not make it")
    against = evidence.taken_back(entry)
    if against:
        yield _finding(entry, Code.RECORD_CONTRADICTED, "evidence.root", f"entry {against.index} by {against.signer} takes it back")


def _schema(entry: Entry) -> Iterator[Finding]:
    for problem in problems_for_predicate(entry.statement.predicate_type, entry.predicate) or ():
        at = Location(f"entry {entry.index}", pointer=f"/predicate{problem.pointer}")
        yield Finding(Code.SCHEMA_INVALID, Outcome.FAIL, problem.fix, checker="config.schema-valid", location=at, observed=problem.message)


def _runs(entry: Entry, evidence: Evidence) -> Iterator[Entry]:
    rests_on = entry.predicate.get("rests_on")
    for payload in rests_on if isinstance(rests_on, list) else []:
        run = evidence.find(str(payload))
        if run and run.statement.predicate_type == PredicateName.RESTORE_RUN.uri:
            yield run


def _run(reader: LedgerReader, entry: Entry) -> tuple[list[Finding], int]:
    """A restore-run against its trace; one that does not fit its schema is not looked at further."""
    if problems_for_predicate(entry.statement.predicate_type, entry.predicate):
        return list(_schema(entry)), 0
    run: Any = entry.predicate
    source = f"the trace of entry {entry.index}"
    try:
        traces = parse_traces(reader.payload(Digest.parse(run["trace"]["digest"]).raw), source)
    except CannotTellError as error:
        return [_finding(entry, Code.REF_NOT_HERE, "evidence.raw-retained", error.message)], 0
    except InputError as error:
        return [_finding(entry, error.code, "restore.terminal-completion", f"{error.at}: {error.message}")], 0
    return list(check_run(run, traces, entry.index)), len(traces)


def _finding(entry: Entry, code: Code, checker: str, observed: str) -> Finding:
    return Finding(code, Outcome.FAIL, MENDS, checker=checker, location=Location(f"entry {entry.index}"), observed=observed)
