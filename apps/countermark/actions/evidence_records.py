"""`record evidence`, `verify evidence`, `endorse`: from outside documents to receipts that a qualifier answers for."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from countermark.actions.appending import FILE_TYPE, Attester, append
from countermark.actions.catalogue import load_catalogue
from countermark.actions.evidence import Gatherer
from countermark.actions.measurements import named_quality
from countermark.actions.workspace import Workspace, open_reader
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.documents import load_document, read_file
from countermark.attestations.errors import InputError, Location, NothingError, RefusedError
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import Statement, Subject
from countermark.contracts.adapters.base import Adapter
from countermark.contracts.adapters.bindings import Binding
from countermark.contracts.adapters.fields import File
from countermark.contracts.adapters.mapping import MappingAdapter
from countermark.contracts.adapters.read import read_document
from countermark.contracts.adapters.reading import EvidenceReading
from countermark.contracts.adapters.receipts import ReceiptDraft, receipts_of
from countermark.contracts.adapters.registry import adapter_named
from countermark.contracts.catalogue import Catalogue
from countermark.contracts.evidence import Record
from countermark.contracts.measurements.receipt_drafts import run_receipt
from countermark.contracts.quality.receipt_drafts import DEFAULT, quality_receipt
from countermark.ledger.leaf import EntryKind
from countermark.ledger.read import Head, LedgerReader
from countermark.ledger.submission import Receipt, Submission
from countermark.recorders.evidence_files import EvidenceFiles, check_evidence, gather_evidence, image_recordings, record_evidence
from countermark.recorders.recording import Recording


@dataclass(frozen=True, slots=True)
class Appended:
    """One statement that was appended, and where it stands."""

    statement: Statement
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class EvidenceRecorded:
    """What was read, the statements that were appended, and the head after them."""

    readings: tuple[EvidenceReading, ...]
    appended: tuple[Appended, ...]
    head: Head


def read_evidence(paths: Sequence[Path], adapter: str | None, binds: Sequence[str]) -> tuple[EvidenceReading, ...]:
    """What outside documents claim, and what speaks against it; no ledger is needed."""
    catalogue = load_catalogue()
    chosen, bindings = _adapter(adapter, catalogue), [Binding.parse(text) for text in binds]
    gathered = gather_evidence(paths, chosen)
    return tuple(read_document(item.root, item.referenced, catalogue, bindings, chosen) for item in gathered)


def record(workspace: Workspace, paths: Sequence[Path], adapter: str | None, binds: Sequence[str], key: str | None) -> EvidenceRecorded:
    """Append what outside documents claim: their bytes, the claims, and the images that they name as they report them."""
    catalogue = load_catalogue()
    attester = Attester.of(workspace, "builder", key)
    found = record_evidence(paths, catalogue, [Binding.parse(text) for text in binds], _adapter(adapter, catalogue))
    files = {file.digest: file for reading, _ in found for file in (reading.root, *reading.referenced)}
    kept = [Submission.sign(EntryKind.ATTESTATION, FILE_TYPE, file.data, attester.signer) for file in files.values()]
    recordings = [recording for reading, own in found for recording in (own, *image_recordings(reading))]
    appended, head = _append(workspace, attester, recordings, kept)
    return EvidenceRecorded(tuple(reading for reading, _ in found), appended, head)


def endorse(
    workspace: Workspace, references: Sequence[str], only: Sequence[str], key: str | None, adapter: str | None = None
) -> EvidenceRecorded:
    """Turn the claims of recorded documents into receipts and rejections, each computed anew from the documents' own bytes.

    `RefusedError` RECORD_CONTRADICTED when a document read again gives other claims than were recorded; `NothingError` when no claim of
    theirs (or of the capabilities in `only`) came to an outcome.
    """
    catalogue, trust = load_catalogue(), workspace.trust()
    for capability in only:
        catalogue.get(capability, Location("--only"))
    with open_reader(workspace, trust) as reader:
        gatherer = Gatherer(reader, trust)
        endorser = _Endorser(reader, gatherer, catalogue, _adapter(adapter, catalogue), only)
        found = [draft for text in references for draft in endorser.drafts(_endorsable(reader, gatherer, text))]
    drafts = [draft for draft in found if not only or draft.predicate.get("capability") in only or draft.name is PredicateName.REJECTION]
    if not drafts:
        message = "no claim of the documents came to an outcome that can be endorsed"
        raise NothingError(Code.NOTHING_EVALUATED, message, fix="see `countermark verify evidence` for what was refused and why")
    recordings = [Recording(draft.name, (Subject.of(draft.image),), dict(draft.predicate)) for draft in drafts]
    appended, head = _append(workspace, Attester.of(workspace, "qualifier", key), recordings)
    return EvidenceRecorded((), appended, head)


def _adapter(name: str | None, catalogue: Catalogue) -> Adapter | None:
    """An adapter of ours by name, or a user's own EvidenceMapping by file."""
    if name is None:
        return None
    if name.endswith((".yaml", ".yml", ".json")):
        return MappingAdapter.of(load_document(read_file(Path(name)), name, "EvidenceMapping"), catalogue)
    return adapter_named(name)


def _append(
    workspace: Workspace, attester: Attester, recordings: Iterable[Recording], kept: Sequence[Submission] = ()
) -> tuple[tuple[Appended, ...], Head]:
    """The recordings as signed statements, and what is kept beside them, in one transaction."""
    made = [attester.attest_to(recording) for recording in recordings]
    receipts, head = append(workspace, [*kept, *(item.submission for item in made)])
    return tuple(Appended(item.statement, receipt) for item, receipt in zip(made, receipts[len(kept) :], strict=True)), head


_ENDORSABLE = {name.uri: name for name in (PredicateName.EVIDENCE_DOCUMENT, PredicateName.BENCHMARK_RUN, PredicateName.QUALITY_REPORT)}


def _endorsable(reader: LedgerReader, gatherer: Gatherer, text: str) -> Record:
    """A document or run of the ledger, by entry number or payload digest, signed by somebody who may record one."""
    indices = (int(text),) if text.isdecimal() else reader.find_payload(Digest.parse(text, at=Location("ENTRY")).raw)
    records = [item for item in gatherer.records(indices) if item.statement.predicate_type in _ENDORSABLE]
    good = [item for item in records if item.code is Code.OK]
    if good:
        return good[0]
    if records:
        message = f"{text}: nobody who may record evidence has signed it"
        raise RefusedError(records[0].code, message, fix="have somebody record it who may")
    message = f"{text} is neither an evidence document nor a run of this ledger"
    raise InputError(Code.REF_NOT_HERE, message, fix="give the entry that `record evidence`, `benchmark` or `quality` printed")


@dataclass(frozen=True, slots=True)
class _Endorser:
    """Makes drafts of what is recorded."""

    reader: LedgerReader
    gatherer: Gatherer
    catalogue: Catalogue
    adapter: Adapter | None
    only: Sequence[str]

    def drafts(self, record: Record) -> Sequence[ReceiptDraft]:
        """What one record bears."""
        predicate: Any = record.statement.predicate
        payload = Digest(DigestKind.PAYLOAD, record.payload.hex)
        name = _ENDORSABLE[record.statement.predicate_type]
        if name is PredicateName.QUALITY_REPORT:
            asked = [self.catalogue.get(item, Location("--only")) for item in self.only or (DEFAULT,)]
            return [draft for item in asked if (draft := quality_receipt(predicate, payload, item))]
        if name is PredicateName.BENCHMARK_RUN:
            quality = named_quality(self.reader, self.gatherer, predicate.get("quality"))
            draft = run_receipt(predicate, payload, quality, self.catalogue)
            return [draft] if draft else []
        _read_again(self.reader, record, self.catalogue, self.adapter)
        return receipts_of(predicate, payload, self.catalogue)


def _read_again(reader: LedgerReader, record: Record, catalogue: Catalogue, adapter: Adapter | None) -> None:
    """The predicate is believed only as far as the stored bytes of the document give it again."""
    predicate: Any = record.statement.predicate
    files = [File(item["path"], reader.payload(bytes.fromhex(item["sha256"]))) for item in predicate["files"]]
    checked = check_evidence(predicate, EvidenceFiles(files[0], {file.name: file for file in files[1:]}), catalogue, adapter)
    if not checked.holds:
        first = checked.findings[0].observed if checked.findings else "nothing could be compared"
        message = f"entry {record.index}: the document gives other claims than were recorded: {first}"
        raise RefusedError(Code.RECORD_CONTRADICTED, message, fix="record the document again with this version")
