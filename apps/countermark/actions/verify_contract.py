"""`verify contract`: hold contracts against a repository, and on request record the verdict for its commit."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from countermark.actions.appending import Recorded, record
from countermark.actions.workspace import Workspace
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.documents import read_file
from countermark.attestations.errors import CannotTellError, InputError, Location, NothingError
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import Subject
from countermark.contracts.contract import Contract
from countermark.contracts.tree import Tree
from countermark.contracts.verdict import ContractVerdict, evaluate
from countermark.recorders.file_trees import FolderTree, RevisionTree
from countermark.recorders.git import GitRepository
from countermark.recorders.recording import Recording
from countermark.recorders.work_tree import work_tree_state


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict, what it was made over, and its entry when it was recorded."""

    path: Path
    verdict: ContractVerdict
    recorded: Recorded | None = None


def contract_files(paths: Sequence[Path]) -> list[Path]:
    """The contracts that paths name; a folder stands for its `contract.yaml` and everything in its `contracts/`."""
    found = [file for path in paths for file in (_in_folder(path) if path.is_dir() else [path])]
    if not found:
        where = ", ".join(map(str, paths))
        raise NothingError(Code.NOTHING_EVALUATED, f"no contract in {where}", fix="give a contract file, or write contract.yaml")
    return found


def _in_folder(folder: Path) -> list[Path]:
    single = [folder / "contract.yaml"] if (folder / "contract.yaml").is_file() else []
    return single + sorted(file for file in (folder / "contracts").glob("*.yaml") if file.is_file())


def judge(path: Path, root: Path | None) -> Judged:
    """Hold one contract against the files of its repository as they lie there."""
    contract = _load(path)
    return Judged(path, evaluate(contract, FolderTree(root or repository_root(path))))


def judge_commit(path: Path, root: Path | None, workspace: Workspace, key: str | None) -> Judged:
    """Hold one contract against the commit that is checked out, and record the verdict with that commit as its subject.

    `CannotTellError` for a work tree that differs from the commit: the verdict would be about files that nobody can find again.
    """
    contract = _load(path)
    workspace.trust()
    with GitRepository(root or repository_root(path)) as repository:
        commit = _clean_head(repository)
        tree: Tree = RevisionTree(repository, commit.hex)
        verdict = evaluate(contract, tree)
        address = repository.origin()
    uri = f"git+{address}@{commit.hex}" if address else None
    recording = Recording(PredicateName.CONTRACT_VERDICT, (Subject.of(commit, uri=uri),), verdict.predicate())
    return Judged(path, verdict, record(workspace, recording, "builder", key))


def repository_root(path: Path) -> Path:
    """The repository that a contract is in: the nearest folder with `.git`, or without one the contract's own folder."""
    folder = path.resolve().parent
    return next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), folder)


def _load(path: Path) -> Contract:
    return Contract.load(read_file(path), str(path))


def _clean_head(repository: GitRepository) -> Digest:
    at = Location(str(repository.path))
    head = repository.head()
    if head is None:
        raise InputError(Code.UNREADABLE, "the repository has no commit checked out", at=at, fix="commit first")
    changed = work_tree_state(repository).changed
    if changed:
        message = f"{changed} tracked path(s) differ from the commit, so the verdict would not be about it"
        raise CannotTellError(Code.CONTRACT_NOT_EVALUATED, message, at=at, fix="commit or stash them, then record")
    return head
