"""Which commit this program runs from, and what the ledger says of its work tree: a run is signed with both."""

from dataclasses import dataclass
from pathlib import Path

from countermark.actions.evidence import Gatherer
from countermark.attestations.codes import Code, Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import CannotTellError, InputError, Location
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.trust import TrustPolicy
from countermark.contracts.evidence import Evidence
from countermark.cuda_restore.restore_run import Engine
from countermark.ledger.read import LedgerReader
from countermark.recorders.git import GitRepository
from countermark.recorders.work_tree import work_tree_state


@dataclass(frozen=True, slots=True)
class EngineSource:
    """The engine with its commit. `dirty` is none when there is no checkout to look at."""

    engine: Engine
    dirty: bool | None


@dataclass(frozen=True, slots=True)
class CleanSource:
    """Whether the engine's work tree was its commit, and the payloads of the statements that show it; nothing when nobody says."""

    outcome: Outcome | None = None
    shown_by: tuple[Digest, ...] = ()


def engine_source(commit: str | None) -> EngineSource:
    """This program, from the commit that the caller names or else from the checkout that it runs in.

    `CannotTellError` for an installed program whose commit nobody names.
    """
    if commit is not None:
        found = Digest.parse(commit if ":" in commit else f"{DigestKind.GIT_COMMIT}:{commit}", at=Location("--engine-commit"))
        if found.kind is not DigestKind.GIT_COMMIT:
            raise InputError(Code.BAD_DIGEST, f"{found} is no commit", at=Location("--engine-commit"), fix="give the full commit id")
        return EngineSource(Engine.installed(found), None)
    checkout = own_checkout()
    if checkout is None:
        message = "this program does not run from a checkout, so the commit of its source is not known"
        raise CannotTellError(Code.INCOMPLETE, message, fix="give --engine-commit with the commit that it was built from")
    with GitRepository(checkout) as repository:
        return EngineSource(Engine.installed(repository.commit("HEAD")), work_tree_state(repository).changed > 0)


def own_checkout() -> Path | None:
    """The repository that this program runs from, if it does."""
    folder = Path(__file__).resolve()
    return next((parent for parent in folder.parents if (parent / ".git").exists() and (parent / "pyproject.toml").exists()), None)


def clean_source(reader: LedgerReader, trust: TrustPolicy, source: EngineSource) -> CleanSource:
    """What is known of the work tree: a tree that is dirty now is inconclusive, a trusted `source/v1` that says clean is a pass.

    A statement that says dirty is of another time than this run, so it shows nothing.
    """
    if source.dirty:
        return CleanSource(Outcome.INCONCLUSIVE)
    commit = source.engine.source
    records, _ = Gatherer(reader, trust).gather(commit)
    evidence = Evidence.of(records, trust)
    clean = [
        entry
        for entry in evidence.of_type(PredicateName.SOURCE)
        if entry.is_about(commit) and entry.counts_as() and not evidence.taken_back(entry)
        if entry.predicate.get("dirty") is False and entry.predicate.get("dirty_paths") == 0
    ]
    return CleanSource(Outcome.PASS, (clean[-1].payload,)) if clean else CleanSource()
