"""`restore qualify`: the ladder under attestation. The run is signed and appended with its plan, its trace and what it is worth."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from countermark.actions.appending import FILE_TYPE, Attestation, Attester, append
from countermark.actions.clock import now
from countermark.actions.evidence_records import Appended
from countermark.actions.restore.engine_source import CleanSource, EngineSource, clean_source, engine_source
from countermark.actions.restore.link import Link, check_folder, write_link
from countermark.actions.restore.snapshot_root import find_root
from countermark.actions.restore.tally import Tally
from countermark.actions.workspace import Workspace, open_reader
from countermark.attestations.codes import ExitCode, Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.documents import load_document, read_file
from countermark.attestations.errors import InputError
from countermark.attestations.located import JsonValue
from countermark.attestations.outcomes import restore_outcome
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import Statement, Subject
from countermark.attestations.times import Instant
from countermark.cuda_restore.ladder import DEFAULT_SHAPE, Qualification, work_bytes
from countermark.cuda_restore.ladder import qualify as climb
from countermark.cuda_restore.manifest import MANIFEST_BYTES_MAX
from countermark.cuda_restore.oracle_prompt import OracleShape
from countermark.cuda_restore.qualified_ranks import SignedRoot
from countermark.cuda_restore.reader import LoadedManifest, load_manifest
from countermark.cuda_restore.receipts import Basis, derive_receipts, tested_scope
from countermark.cuda_restore.restore_plan import KIND, RestorePlan
from countermark.cuda_restore.restore_run import restore_run
from countermark.cuda_restore.result import RestoreOutcome
from countermark.ledger.leaf import EntryKind
from countermark.ledger.read import Head
from countermark.ledger.submission import Submission
from countermark.recorders.recording import Progress, silent


@dataclass(frozen=True, slots=True, eq=False)
class Qualified:
    """A climb, its predicate, and the statements that were appended: the run, then its receipts. `link` are the files of a link."""

    found: Qualification
    run: dict[str, Any]
    appended: tuple[Appended, ...]
    head: Head
    link: tuple[Path, ...] = ()

    @property
    def exit(self) -> ExitCode:
        """Yes when everything held; no when something failed or the prefix is recomputed; otherwise it cannot be told."""
        return _exit(self.found, self.run)


@dataclass(frozen=True, slots=True)
class _Plan:
    """A plan, its bytes, and its manifests as far as they read."""

    plan: RestorePlan
    data: bytes
    loaded: tuple[LoadedManifest, ...]

    @classmethod
    def read(cls, path: Path) -> "_Plan":
        """Read a plan. A manifest that is not there is a mistake in it; one that is damaged is for the ladder to find."""
        data = read_file(path)
        plan = RestorePlan.of(load_document(data, str(path), KIND), path.parent)
        for rank in plan.ranks:
            read_file(rank.manifest, limit=MANIFEST_BYTES_MAX)
        try:
            loaded = tuple(load_manifest(rank.manifest) for rank in plan.ranks)
        except InputError:
            return cls(plan, data, ())
        plan.check(loaded)
        return cls(plan, data, loaded)


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known before a run: the signed root, the engine and its work tree."""

    signed: SignedRoot | None
    source: EngineSource
    clean: CleanSource


def qualify(
    workspace: Workspace,
    plan_file: Path,
    key: str | None,
    *,
    engine_commit: str | None = None,
    link: Path | None = None,
    shape: OracleShape = DEFAULT_SHAPE,
    progress: Progress = silent,
) -> Qualified:
    """Climb the rungs of a plan, and append what came of it in one transaction. `shape` is the size of the bundled oracle.

    Raises `RefusedError` when no trusted statement of the ledger lists the manifests, or when the signer may not make a run, `InputError`
    for a plan that has no meaning, `CannotTellError` without its device; nothing is appended then.
    """
    if link:
        check_folder(link)
    planned = _Plan.read(plan_file)
    attester = Attester.of(workspace, "qualifier", key)
    attester.check(PredicateName.RESTORE_RUN)
    if planned.plan.image:
        attester.check(PredicateName.QUALIFICATION_RECEIPT)
    known = _known(workspace, planned, engine_source(engine_commit))
    if planned.plan.image:
        tested_scope(planned.plan, known.signed)
    begun = now().whole_seconds()
    tally = Tally(progress, work_bytes(planned.plan, planned.loaded, shape))
    found = climb(planned.plan, known.signed, shape=shape, advance=tally.advance)
    made = _statements(replace(attester, at=now()), found, known, begun)
    kept = [Submission.sign(EntryKind.ATTESTATION, FILE_TYPE, data, attester.signer) for data in (planned.data, found.trace)]
    receipts, head = append(workspace, [*kept, *(one.submission for one in made)])
    appended = tuple(Appended(one.statement, receipt) for one, receipt in zip(made, receipts[len(kept) :], strict=True))
    run: Any = made[0].statement.predicate
    passed = _exit(found, run) is ExitCode.YES
    files = write_link(link, _link(planned, plan_file, found, made), attester.signer) if link and passed else ()
    return Qualified(found, run, appended, head, files)


def _exit(found: Qualification, run: JsonValue) -> ExitCode:
    outcome = restore_outcome(run)
    if found.outcome is RestoreOutcome.RECOMPUTE or outcome is Outcome.FAIL:
        return ExitCode.NO
    return ExitCode.YES if outcome is Outcome.PASS else ExitCode.CANNOT_TELL


def _known(workspace: Workspace, planned: _Plan, source: EngineSource) -> _Known:
    trust = workspace.trust()
    with open_reader(workspace, trust) as reader:
        signed = find_root(reader, trust, [one.digest for one in planned.loaded]) if planned.loaded else None
        return _Known(signed, source, clean_source(reader, trust, source))


def _statements(attester: Attester, found: Qualification, known: _Known, begun: Instant) -> list[Attestation]:
    """The run, about the image or else the engine's commit, and the receipts that rest on it."""
    run = restore_run(found, known.source.engine)
    image = found.plan.image
    about = (Subject.of(image or known.source.engine.source),)
    signed = attester.attest(Statement(about, PredicateName.RESTORE_RUN.uri, run))
    payload = Digest.of(DigestKind.PAYLOAD, signed.envelope.payload)
    basis = Basis(payload, restore_outcome(run), begun, attester.at.whole_seconds(), known.clean.outcome, known.clean.shown_by)
    receipts = derive_receipts(found, basis)
    return [signed, *(attester.attest(Statement(about, PredicateName.QUALIFICATION_RECEIPT.uri, receipt)) for receipt in receipts)]


def _link(planned: _Plan, plan_file: Path, found: Qualification, statements: Sequence[Attestation]) -> Link:
    """The step's link: plan and manifests by their paths from the plan's folder, and what was signed."""
    run, *receipts = statements
    products = {"restore-run.json": run.envelope.to_json().encode(), "trace.jsonl": found.trace}
    for one in receipts:
        predicate: Any = one.statement.predicate
        products[f"{predicate['capability']}.json"] = one.envelope.to_json().encode()
    manifests = {_name(one.path, plan_file.parent): one.digest.hex for one in planned.loaded}
    return Link({plan_file.name: planned.plan.digest.hex, **manifests}, products, {"return-value": 0, "outcome": str(found.outcome)})


def _name(path: Path, folder: Path) -> str:
    """A file as a layout's rules name it."""
    return (path.relative_to(folder) if path.is_relative_to(folder) else path).as_posix()
