"""`record snapshot` and `verify snapshot`: the signed root of a snapshot, made from its manifests and held against them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from countermark.actions.evidence import Gatherer
from countermark.actions.restore.beside import find_chunks
from countermark.actions.workspace import Workspace, open_reader
from countermark.attestations.codes import Code, ExitCode, Outcome
from countermark.attestations.digests import Digest
from countermark.attestations.documents import read_file
from countermark.attestations.errors import CountermarkError, InputError, Location, NothingError, RefusedError
from countermark.attestations.findings import Finding
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import Subject
from countermark.attestations.trust import TrustPolicy
from countermark.contracts.evidence import Entry, Evidence
from countermark.cuda_restore.identity import revision_identity
from countermark.cuda_restore.manifest import MANIFEST_BYTES_MAX
from countermark.cuda_restore.qualified_ranks import SignedRoot
from countermark.cuda_restore.reader import LoadedManifest, check_snapshot, load_manifest
from countermark.cuda_restore.root import Revision, SnapshotRoot
from countermark.cuda_restore.store import Folder
from countermark.ledger.read import Head, LedgerReader
from countermark.recorders.recording import Progress, Recording, silent


def read_snapshot(
    manifests: Sequence[Path],
    *,
    chunks: Path | None = None,
    model: str | None = None,
    draft: str | None = None,
    progress: Progress = silent,
) -> Recording:
    """The statement about a snapshot's manifests, after every object within reach was read and has its digest.

    `model` and `draft` are `REPOSITORY@REVISION`. Raises `InputError` for manifests that are damaged or not of one snapshot.
    """
    loaded = [load_manifest(path) for path in manifests]
    layouts, unread = _read_objects(loaded, chunks, progress)
    if len(layouts) > 1:
        message = f"the ranks have the layouts {', '.join(sorted(layouts))}"
        raise InputError(Code.SCHEMA_INVALID, message, fix="record the ranks of one snapshot together")
    target, other = _revision(model, "--model"), _revision(draft, "--draft")
    root = SnapshotRoot.of(loaded, layout_sha256=next(iter(layouts), None) if not unread else None, model=target, draft=other)
    notes = [f"the objects of {path} were not read, and its layout is not recorded" for path in unread]
    if root.missing_ranks:
        notes.append(f"ranks {list(root.missing_ranks)} of TP {root.tp} are not listed; a qualification needs them all")
    notes += _checkpoints(loaded[0], target, other)
    subjects = tuple(Subject.of(rank.manifest, name=f"rank {rank.rank}") for rank in root.ranks)
    return Recording(PredicateName.SNAPSHOT, subjects, root.to_json(), tuple(notes))


def find_root(reader: LedgerReader, trust: TrustPolicy, manifests: Sequence[Digest]) -> SignedRoot:
    """The newest statement of the ledger that lists all these manifest files, by signers who may make it.

    `RefusedError` when there is none: SUBJECT_UNKNOWN for one that nobody made, or why the one that is there does not count.
    """
    records, _ = Gatherer(reader, trust).gather(manifests[0])
    evidence = Evidence.of(records, trust)
    about = [entry for entry in evidence.of_type(PredicateName.SNAPSHOT) if all(map(entry.is_about, manifests))]
    refusals = [refusal for entry in about if (refusal := _refusal(entry, evidence))]
    usable = [entry for entry in about if not _refusal(entry, evidence)]
    if usable:
        entry = usable[-1]
        return SignedRoot(SnapshotRoot.parse(entry.predicate, f"entry {entry.index}", "/predicate"), entry.payload)
    if refusals:
        raise refusals[-1]
    listed = ", ".join(map(str, manifests))
    fix = "record it, all ranks together: countermark record snapshot MANIFEST…"
    raise RefusedError(Code.SUBJECT_UNKNOWN, f"no signed statement of the ledger lists {listed}", fix=fix)


def _refusal(entry: Entry, evidence: Evidence) -> RefusedError | None:
    """Why a snapshot statement does not count, if it does not."""
    if not entry.counts_as():
        code = entry.code if entry.code is not Code.OK else Code.ROLE
        return RefusedError(code, f"entry {entry.index} lists it, and {entry.signer} may not say so", fix="have a builder record it")
    against = evidence.taken_back(entry)
    if against:
        message = f"entry {entry.index} lists it, and entry {against.index} by {against.signer} takes that back"
        return RefusedError(Code.RECORD_CONTRADICTED, message, fix="find out why; write the snapshot anew and record that")
    return None


@dataclass(slots=True)
class SnapshotCheck:
    """What a comparison of a snapshot with its signed root found. Each manifest counts as one check, and each object."""

    head: Head
    root: SignedRoot | None = None
    evaluated: int = 0
    of: int = 0
    findings: list[Finding] = field(default_factory=list)
    not_evaluated: list[str] = field(default_factory=list)

    @property
    def exit(self) -> ExitCode:
        """No, as soon as one thing differs."""
        return ExitCode.NO if self.findings else ExitCode.YES

    def refuse(self, error: CountermarkError, checker: str, path: Path) -> None:
        """Add what is wrong."""
        at = error.at or Location(str(path))
        self.findings.append(Finding(error.code, Outcome.FAIL, error.fix, checker=checker, location=at, observed=error.message))


def verify_snapshot(workspace: Workspace, manifests: Sequence[Path], chunks: Path | None, progress: Progress = silent) -> SnapshotCheck:
    """Hold manifests, and their objects where they are within reach, against the statement that the ledger has about them.

    A changed byte is a finding. Raises `InputError` for a file that is not there, `NothingError` when nobody signed for it, and
    `RefusedError` when whoever did does not count.
    """
    trust = workspace.trust()
    for path in manifests:
        read_file(path, limit=MANIFEST_BYTES_MAX)
    with open_reader(workspace, trust) as reader:
        check = SnapshotCheck(reader.head, of=len(manifests))
        loaded = list(_loaded(manifests, check))
        if loaded:
            check.root = _root(reader, trust, [one.digest for one in loaded])
    for number, one in enumerate(loaded):
        _compare(one, chunks, check)
        progress(number + 1, len(loaded))
    return check


def _root(reader: LedgerReader, trust: TrustPolicy, manifests: Sequence[Digest]) -> SignedRoot:
    try:
        return find_root(reader, trust, manifests)
    except RefusedError as error:
        if error.code is Code.SUBJECT_UNKNOWN:
            raise NothingError(Code.NOTHING_EVALUATED, error.message, fix=error.fix) from None
        raise


def _loaded(manifests: Sequence[Path], check: SnapshotCheck) -> Iterator[LoadedManifest]:
    for path in manifests:
        try:
            yield load_manifest(path)
        except InputError as error:
            check.evaluated += 1
            check.refuse(error, "manifest.strict", path)


def _compare(one: LoadedManifest, chunks: Path | None, check: SnapshotCheck) -> None:
    assert check.root is not None
    try:
        check.evaluated += 1
        check.root.root.check(one)
    except RefusedError as error:
        check.refuse(error, "restore.manifest-authenticated", one.path)
    check.of += len(one.manifest.objects)
    folder = chunks or find_chunks(one.path)
    if folder is None:
        check.not_evaluated.append(f"the objects of {one.path}: no folder of objects beside it, and no --chunks")
        return
    try:
        with Folder.at(folder) as opened:
            check.root.root.check_layout(check_snapshot(one.manifest, opened).header.layout_sha256)
        check.evaluated += len(one.manifest.objects)
    except (InputError, RefusedError) as error:
        check.evaluated += 1
        check.refuse(error, "manifest.objects-hashed", one.path)


def _read_objects(loaded: Sequence[LoadedManifest], chunks: Path | None, progress: Progress) -> tuple[set[str], list[Path]]:
    """The layout digests of the streams, each read to its end, and the manifests whose objects are not within reach."""
    layouts, unread = set(), []
    total, done = sum(one.manifest.encoded_bytes for one in loaded), 0
    for one in loaded:
        folder = chunks or find_chunks(one.path)
        if folder is None:
            unread.append(one.path)
            continue
        with Folder.at(folder) as opened:
            layouts.add(check_snapshot(one.manifest, opened).header.layout_sha256)
        done += one.manifest.encoded_bytes
        progress(done, total)
    return layouts, unread


def _revision(text: str | None, option: str) -> Revision | None:
    if text is None:
        return None
    repository, _, revision = text.rpartition("@")
    if not repository:
        message = f"{text!r} is not REPOSITORY@REVISION"
        raise InputError(Code.BAD_DIGEST, message, at=Location(option), fix="write ORG/NAME@HEX with the full revision")
    return Revision(repository, revision)


def _checkpoints(one: LoadedManifest, model: Revision | None, draft: Revision | None) -> Iterator[str]:
    """Hold the models that were named against the checkpoints in the manifest; a draft may have an identity of other facts."""
    identity = one.manifest.identity
    if model and revision_identity(model.repository, model.revision) != identity.target_checkpoint:
        message = f"the cache is not that of {model.repository}@{model.revision}"
        raise InputError(
            Code.SUBJECT_MISMATCH,
            message,
            at=Location(str(one.path), pointer="/identity/target_checkpoint"),
            fix="name the model that wrote it",
        )
    if draft and revision_identity(draft.repository, draft.revision) != identity.draft_checkpoint:
        yield f"the manifest's draft checkpoint is not that of {draft.repository}@{draft.revision} alone"
