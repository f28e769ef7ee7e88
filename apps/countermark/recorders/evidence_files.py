"""Outside evidence documents from disk: which of the files given are documents, which are files that a document refers to.

A file that another one names, by its hash or by the place beside it, belongs to that one and is no document of its own. What a document
names by place is looked for beside it, also when it was not given.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.documents import MAX_FILE
from countermark.attestations.errors import InputError, Location, NothingError
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import Subject
from countermark.contracts.adapters.base import Adapter
from countermark.contracts.adapters.bindings import Binding
from countermark.contracts.adapters.fields import File
from countermark.contracts.adapters.read import read_document, references_of, resolve
from countermark.contracts.adapters.reading import EvidenceReading, Reference
from countermark.contracts.adapters.registry import adapter_named
from countermark.contracts.catalogue import Catalogue
from countermark.recorders.files import FileKind, kind_of, read_bytes
from countermark.recorders.recording import Checked, Recording


@dataclass(frozen=True, slots=True)
class EvidenceFiles:
    """A document and the files at hand that it refers to, by their names relative to its folder."""

    root: File
    referenced: Mapping[str, File]


@dataclass(frozen=True, slots=True)
class _Given:
    """A file that was named: its path, its bytes, and what it refers to, or why no adapter reads it."""

    path: Path
    data: bytes
    references: Sequence[Reference]
    refused: InputError | None


def gather_evidence(paths: Sequence[Path], adapter: Adapter | None = None) -> tuple[EvidenceFiles, ...]:
    """The documents among some files, each with what it refers to, in the order in which they were given.

    Raises `InputError`: UNREADABLE, TOO_LARGE, or why a file that no document refers to is no document itself; `NothingError` for no
    file at all.
    """
    given = [_given(path, adapter) for path in dict.fromkeys(paths)]
    if not given:
        raise NothingError(Code.NOTHING_EVALUATED, "no file was given", fix="name the document, and the files that it refers to")
    gathered = [_gathered(item, given) for item in given]
    taken = {file.digest for item in gathered for file in item.referenced.values()}
    roots = [(item, files) for item, files in zip(given, gathered, strict=True) if files.root.digest not in taken]
    for item, _ in roots:
        if item.refused:
            raise item.refused
    return tuple(files for _, files in roots)


def record_evidence(
    paths: Sequence[Path], catalogue: Catalogue, binds: Iterable[Binding] = (), adapter: Adapter | None = None
) -> tuple[tuple[EvidenceReading, Recording], ...]:
    """Read each document among some files: the reading, and the statement to be about its bytes.

    Bindings apply to each of them. Raises as `gather_evidence` and `read_document` do.
    """
    bound = tuple(binds)
    readings = [read_document(files.root, files.referenced, catalogue, bound, adapter) for files in gather_evidence(paths, adapter)]
    return tuple((reading, _recording(reading)) for reading in readings)


def image_recordings(reading: EvidenceReading) -> tuple[Recording, ...]:
    """What the document says its images were built from, each a statement `image/v1` to be: reported, not verified."""
    return tuple(Recording(PredicateName.IMAGE, (Subject.of(draft.image),), dict(draft.predicate)) for draft in reading.images)


def check_evidence(
    predicate: Mapping[str, JsonValue], files: EvidenceFiles, catalogue: Catalogue, adapter: Adapter | None = None
) -> Checked:
    """Read the files again as a recorded `evidence-document/v1` was read, and compare everything that it says.

    `adapter` is for a record that was read by a mapping. Raises as `read_document` does.
    """
    stated, bound = predicate.get("adapter"), predicate.get("bound_by")
    name = stated.get("name") if isinstance(stated, dict) else None
    reader = adapter or adapter_named(str(name))
    binds = [_binding(item) for item in bound] if isinstance(bound, list) else []
    found = read_document(files.root, files.referenced, catalogue, binds, reader).predicate()
    differing = [key for key in found.keys() | predicate.keys() if found.get(key) != predicate.get(key)]
    return Checked(len(found), tuple(_differs(key, files.root) for key in sorted(differing)))


def _given(path: Path, adapter: Adapter | None) -> _Given:
    data = read_bytes(path, MAX_FILE)
    try:
        return _Given(path, data, references_of(File(_name(path, path.parent), data), adapter), None)
    except InputError as error:
        return _Given(path, data, (), error)


def _gathered(item: _Given, given: Sequence[_Given]) -> EvidenceFiles:
    """The document with the files that its references lead to, those beside it before those that were given."""
    folder = item.path.parent
    root = File(_name(item.path, folder), item.data)
    names = [reference.name for reference in item.references if reference.name and _plain(reference.name)]
    beside = {name: File(name, read_bytes(folder / name, MAX_FILE)) for name in names if kind_of(folder / name) is FileKind.FILE}
    others = {file.name: file for other in given if other is not item for file in [File(_name(other.path, folder), other.data)]}
    found = {**others, **beside}
    here = set(resolve(item.references, found).files.values())
    return EvidenceFiles(root, {name: file for name, file in found.items() if file in here or name in beside})


def _name(path: Path, folder: Path) -> str:
    """The name of a file relative to a folder, or its last part where it lies elsewhere: no record holds a path of this machine."""
    name = path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name
    return name.encode("utf-8", "replace").decode()


def _plain(name: str) -> bool:
    """Whether a name that a document gives stays below the document's folder."""
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\0" not in name


def _recording(reading: EvidenceReading) -> Recording:
    notes = [f"{reference.name or reference.pointer}: not here" for reference in reading.not_here]
    return Recording(PredicateName.EVIDENCE_DOCUMENT, (Subject.of(reading.subject),), reading.predicate(), tuple(notes))


def _binding(item: JsonValue) -> Binding:
    fields = item if isinstance(item, dict) else {}
    return Binding(str(fields.get("field")), str(fields.get("value")), str(fields.get("why")))


def _differs(key: str, root: File) -> Finding:
    return Finding(
        Code.RECORD_CONTRADICTED,
        Outcome.FAIL,
        "record the document again with this version, and endorse that",
        location=Location(root.name),
        subject=key,
        required="what the files give when they are read again",
        observed="another recorded value",
    )
