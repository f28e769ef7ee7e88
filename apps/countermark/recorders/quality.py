"""A quality-report document from disk with the raw responses beside it, as the statement to be."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.documents import MAX_FILE
from countermark.attestations.errors import InputError, Location, NothingError
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue, as_list, as_object
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import Subject
from countermark.contracts.adapters.fields import Field, File
from countermark.contracts.adapters.own_kinds import checked
from countermark.contracts.measurements.broken import findings
from countermark.contracts.quality.judged import contradictions
from countermark.recorders.files import FileKind, kind_of, read_bytes
from countermark.recorders.recording import Recording


@dataclass(frozen=True, slots=True)
class QualityRecording:
    """A report that was read: the statement to be, the raw responses at hand by hex, and what speaks against it."""

    recording: Recording
    responses: Mapping[str, bytes]
    contradictions: tuple[Finding, ...]


def read_quality(path: Path, responses: Path | None) -> QualityRecording:
    """Read a report and the raw responses in a folder, files named by the SHA-256 of their bytes.

    `InputError` for what is no report, or a response that has another digest than its name; `NothingError` for a report without checks.
    """
    document = Field.of(File(path.name, read_bytes(path, MAX_FILE)))
    if not isinstance(document.value, dict):
        raise InputError(Code.SCHEMA_INVALID, "a report is an object", at=document.at, fix="see `countermark schema quality-report`")
    report = checked(PredicateName.QUALITY_REPORT, document)
    if not report.get("checks"):
        raise NothingError(Code.NOTHING_EVALUATED, "the report has no checks", at=document["checks"].at, fix="record what was checked")
    kept = _responses(report, responses) if responses else {}
    image = Digest.parse(str(as_object(report["tuple"]).get("image")))
    notes = [f"raw response {hexed}: not here" for hexed in _named(report) if responses and hexed not in kept]
    recording = Recording(PredicateName.QUALITY_REPORT, (Subject.of(image),), dict(report), tuple(notes))
    return QualityRecording(recording, kept, findings(contradictions(report, kept), document.document.at))


def _named(report: Mapping[str, JsonValue]) -> list[str]:
    stated = [as_object(check).get("response") for check in as_list(report.get("checks"))]
    return list(dict.fromkeys(text.rpartition(":")[2] for text in stated if isinstance(text, str)))


def _responses(report: Mapping[str, JsonValue], folder: Path) -> dict[str, bytes]:
    found = {}
    for hexed in _named(report):
        if kind_of(folder / hexed) is FileKind.FILE:
            file = File(hexed, read_bytes(folder / hexed, MAX_FILE))
            if file.digest.hex != hexed:
                at = Location(str(folder / hexed))
                raise InputError(Code.BAD_DIGEST, f"its SHA-256 is {file.digest.hex}", at=at, fix="put the raw response back as it came")
            found[hexed] = file.data
    return found
