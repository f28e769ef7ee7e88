"""Which commit this program runs from, and what the ledger says of its work tree: a run is signed with both."""

from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from countermark.actions.evidence import Gatherer
from countermark.attestations.codes import Code, Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import CannotTellError, InputError, Location
from countermark.attestations.jsontext import loads
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.trust import TrustPolicy
from countermark.contracts.evidence import Evidence
from countermark.cuda_restore.restore_run import Engine
from countermark.cuda_restore.wire import Fields
from countermark.ledger.read import LedgerReader
from countermark.recorders.git import GitRepository
from countermark.recorders.work_tree import work_tree_state


@dataclass(frozen=True, slots=True)
class EngineSource:
    """The engine with its commit. `dirty` is none when there was no work tree to look at, now or when it was built."""

    engine: Engine
    dirty: bool | None


@dataclass(frozen=True, slots=True)
class CleanSource:
    """Whether the engine's work tree was its commit, and the payloads of the statements that show it; nothing when nobody says."""

    outcome: Outcome | None = None
    shown_by: tuple[Digest, ...] = ()


def engine_source(commit: str | None) -> EngineSource:
    """This program, from the commit that the caller names, else of the checkout that it runs in, else that its wheel was built from.

    `CannotTellError` for an installed program that does not say it.
    """
    if commit is not None:
        found = Digest.parse(commit if ":" in commit else f"{DigestKind.GIT_COMMIT}:{commit}", at=Location("--engine-commit"))
        if found.kind is not DigestKind.GIT_COMMIT:
            raise InputError(Code.BAD_DIGEST, f"{found} is no commit", at=Location("--engine-commit"), fix="give the full commit id")
        return EngineSource(Engine.installed(found), None)
    checkout, built = own_checkout(), built_from()
    if checkout:
        with GitRepository(checkout) as repository:
            return EngineSource(Engine.installed(repository.commit("HEAD")), work_tree_state(repository).changed > 0)
    if built is None:
        message = "this program neither runs from a checkout nor was built in one, so the commit of its source is not known"
        raise CannotTellError(Code.INCOMPLETE, message, fix="give --engine-commit with the commit that it was built from")
    return built


def own_checkout() -> Path | None:
    """The repository that this program runs from, if it does. One that it merely is installed in is none."""
    root = Path(__file__).resolve().parents[4]
    return root if (root / ".git").exists() and (root / "apps" / "countermark" / "actions").is_dir() else None


def built_from() -> EngineSource | None:
    """What the build wrote into this program's wheel (`hatch_build.py`); nothing when it was built outside git."""
    file = resources.files("countermark.actions.restore") / "built_from.json"
    if not file.is_file():
        return None
    found = Fields.of(loads(file.read_bytes(), file.name), file.name).exact(("commit", "dirty"))
    commit = Digest.parse(found.text("commit"), at=Location(file.name, pointer="/commit"))
    return EngineSource(Engine.installed(commit), found.members["dirty"] is not False)


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
