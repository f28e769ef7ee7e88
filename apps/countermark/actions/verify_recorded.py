"""`verify source`, `verify image`, `verify model`: does the world still agree with what the ledger says of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from countermark.actions.evidence import Gatherer
from countermark.actions.workspace import Workspace, open_reader
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, Location, NothingError
from countermark.attestations.located import JsonValue
from countermark.attestations.predicate_types import PredicateName
from countermark.contracts.evidence import Record
from countermark.ledger.read import Head
from countermark.recorders.git import GitRepository
from countermark.recorders.recording import Checked, Progress, silent

Check = Callable[[JsonValue, str], Checked]


@dataclass(frozen=True, slots=True)
class Compared:
    """One recorded statement, and what a comparison with the world found."""

    record: Record
    checked: Checked


@dataclass(frozen=True, slots=True)
class Comparison:
    """All recorded statements about one artifact, compared; and the head that they were found at."""

    subject: Digest
    head: Head
    compared: tuple[Compared, ...]


def verify_source(workspace: Workspace, repository: Path, rev: str) -> Comparison:
    """Compare every `source/v1` about a revision with the repository's objects."""
    from countermark.recorders.source import check_source

    with GitRepository(repository) as opened:
        commit = opened.commit(rev)
    return _compare(workspace, commit, PredicateName.SOURCE, lambda predicate, at: check_source(predicate, repository, source=at))


def verify_image(workspace: Workspace, path: Path, digest: str | None, platform: str | None, progress: Progress = silent) -> Comparison:
    """Compare every `image/v1` about an image with its bytes at `path`."""
    from countermark.recorders.image import record_image
    from countermark.recorders.image_check import check_image

    found = record_image(path, digest=digest, platform=platform, progress=progress).subjects[0].typed[0]
    return _compare(workspace, found, PredicateName.IMAGE, lambda predicate, at: check_image(found, predicate, path, source=at))


def verify_model(workspace: Workspace, folder: Path, revision: str | None, progress: Progress = silent) -> Comparison:
    """Compare every `model/v1` about a revision with the files of a folder."""
    from countermark.recorders.model_check import check_model
    from countermark.recorders.model_folder import list_folder

    known = revision or list_folder(folder).revision
    if known is None:
        raise InputError(Code.BAD_DIGEST, "the folder does not say its revision", at=Location(str(folder)), fix="give it with --revision")
    found = Digest(DigestKind.GIT_COMMIT, known)
    return _compare(
        workspace, found, PredicateName.MODEL, lambda predicate, at: check_model(predicate, folder, source=at, progress=progress)
    )


def _compare(workspace: Workspace, subject: Digest, name: PredicateName, check: Check) -> Comparison:
    """Hold every statement of this type about the subject, by a signer who may make it, against the world. None: `NothingError`."""
    trust = workspace.trust()
    with open_reader(workspace, trust) as reader:
        records = Gatherer(reader, trust).records(reader.find_subject(subject.kind, subject.hex))
        wanted = [record for record in records if record.statement.predicate_type == name.uri and record.code is Code.OK]
        if not wanted:
            message = f"the ledger holds no {name} statement about {subject} by a signer who may make it"
            raise NothingError(Code.NOTHING_EVALUATED, message, fix=f"record it: countermark record {name}")
        return Comparison(subject, reader.head, _checked(wanted, check))


def _checked(records: Sequence[Record], check: Check) -> tuple[Compared, ...]:
    return tuple(Compared(record, check(record.statement.predicate, f"entry {record.index}")) for record in records)
