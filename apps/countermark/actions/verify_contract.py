"""`verify contract`: hold contracts against a repository, and on request record the verdict for its commit."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from countermark.attestations.codes import Code, ExitCode, Severity
from countermark.attestations.digests import Digest
from countermark.attestations.documents import read_file
from countermark.attestations.errors import CannotTellError, InputError, Location, NothingError
from countermark.attestations.findings import Finding
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import Subject
from countermark.contracts.compare_revisions import Revision, RevisionComparison, compare_revisions
from countermark.contracts.contract import Contract
from countermark.contracts.tree import Tree
from countermark.contracts.verdict import ContractVerdict, evaluate
from countermark.recorders.file_trees import FolderTree, RevisionTree
from countermark.recorders.git import GitRepository
from countermark.recorders.recording import Recording
from countermark.recorders.work_tree import work_tree_state

if TYPE_CHECKING:
    from countermark.actions.appending import Recorded
    from countermark.actions.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict, what it was made over, and its entry when it was recorded."""

    path: Path
    verdict: ContractVerdict
    recorded: "Recorded | None" = None
    compared: RevisionComparison | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the verdict found, and what changed since the revision that it was compared with."""
        return (*self.verdict.findings, *(self.compared.changes if self.compared else ()))

    @property
    def exit(self) -> ExitCode:
        """The verdict's, or 1 for a contract that changed under its version."""
        blocks = self.compared is not None and any(change.severity is Severity.BLOCK for change in self.compared.changes)
        return ExitCode.first_of([self.verdict.exit, ExitCode.NO]) if blocks else self.verdict.exit


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


def judge(path: Path, root: Path | None, against: str | None = None) -> Judged:
    """Hold one contract against the files of its repository as they lie there, and compare them with the revision `against`."""
    root = root or repository_root(path)
    contract = load_contract(path, root)
    tree = FolderTree(root)
    verdict = evaluate(contract, tree)
    return Judged(path, verdict, compared=_compared(path, root, verdict, tree, against) if against else None)


def judge_commit(path: Path, root: Path | None, workspace: "Workspace", key: str | None, against: str | None = None) -> Judged:
    """Hold one contract against the commit that is checked out, and record the verdict with that commit as its subject.

    `CannotTellError` for a work tree that differs from the commit: the verdict would be about files that nobody can find again.
    """
    from countermark.actions.appending import record  # judging alone needs no ledger and no keys, and is to start fast

    root = root or repository_root(path)
    contract = load_contract(path, root)
    workspace.check_ledger()
    workspace.trust()
    with GitRepository(root) as repository:
        commit, notes = _clean_head(repository)
        tree: Tree = RevisionTree(repository, commit.hex)
        verdict = evaluate(contract, tree)
        compared = _compared(path, root, verdict, tree, against) if against else None
        address = repository.origin()
    uri = f"git+{address}@{commit.hex}" if address else None
    recording = Recording(PredicateName.CONTRACT_VERDICT, (Subject.of(commit, uri=uri),), verdict.predicate(), notes)
    return Judged(path, verdict, record(workspace, recording, "builder", key), compared)


def repository_root(path: Path) -> Path:
    """The repository that a contract is in: the nearest folder with `.git`, or without one the contract's own folder."""
    folder = path.resolve().parent
    return next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), folder)


def load_contract(path: Path, root: Path) -> Contract:
    """Read a contract; findings name it by its path in the repository, as they name every other file of it."""
    return Contract.load(read_file(path), _named(path, root))


def _named(path: Path, root: Path) -> str:
    full, top = path.resolve(), root.resolve()
    return full.relative_to(top).as_posix() if full.is_relative_to(top) else str(path)


def _compared(path: Path, root: Path, verdict: ContractVerdict, tree: Tree, rev: str) -> RevisionComparison:
    """The contract at an earlier revision is the file of the same path there."""
    name = _named(path, root)
    with GitRepository(root) as repository:
        below = _named(root, repository.path)
        earlier = RevisionTree(repository, rev, "" if below == "." else below)
        data = earlier.read(name) if earlier.glob(name) else None
        now = Revision(tree, read_file(path), verdict.contract.source)
        return compare_revisions(verdict, now, Revision(earlier, data, f"{name} at {rev}"))


def _clean_head(repository: GitRepository) -> tuple[Digest, tuple[str, ...]]:
    """The commit that is checked out, and what lies beside it unseen."""
    at = Location(str(repository.path))
    head = repository.head()
    if head is None:
        raise InputError(Code.UNREADABLE, "the repository has no commit checked out", at=at, fix="commit first")
    state = work_tree_state(repository)
    if state.changed:
        message = f"{state.changed} tracked path(s) differ from the commit, so the verdict would not be about it"
        raise CannotTellError(Code.CONTRACT_NOT_EVALUATED, message, at=at, fix="commit or stash them, then record")
    unseen = f"{state.untracked} untracked path(s) are not part of the commit and were not judged"
    return head, (unseen,) if state.untracked else ()
