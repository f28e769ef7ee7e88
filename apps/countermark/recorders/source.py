"""Record a commit and its tree, and check such a record again, with the repository or without it."""

import base64
import binascii
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import Subject
from countermark.recorders.files import read_bytes
from countermark.recorders.git import MAX_COMMIT_BYTES, MAX_TREE_BYTES, GitRepository
from countermark.recorders.git_objects import TreeEntry, object_id, parse_commit, parse_tree
from countermark.recorders.recording import Checked, Recording
from countermark.recorders.shape import Node
from countermark.recorders.source_tree import OURS, SourceTreeRequest, parse_include, source_tree
from countermark.recorders.work_tree import WorkTreeState, work_tree_state

MAX_INCLUDE_BYTES = 16 << 20


class CommitObjects:
    """The objects of an open repository, as the source-tree digests read them."""

    def __init__(self, repository: GitRepository) -> None:
        self._repository = repository
        self.tree = lru_cache(maxsize=4096)(self._tree)

    def read(self, oid: str, kind: str, limit_bytes: int) -> bytes:
        """The content of a small object."""
        return self._repository.read(oid, kind, limit_bytes)

    def consume(self, oid: str, kind: str, sink: Callable[[bytes], object]) -> int:
        """Feed an object's content to `sink`; its size in bytes."""
        return self._repository.consume(oid, kind, sink)

    def _tree(self, oid: str) -> Sequence[TreeEntry]:
        return parse_tree(self._repository.read(oid, "tree", MAX_TREE_BYTES), len(oid), f"tree {oid}")


def read_include(path: Path) -> tuple[str, ...]:
    """The include list of a file."""
    data = read_bytes(path, MAX_INCLUDE_BYTES)
    try:
        return parse_include(data.decode(), str(path))
    except UnicodeDecodeError:
        raise Node(None, str(path)).error("the include list is not UTF-8", "save it as UTF-8", Code.UNREADABLE) from None


def record_source(path: Path, rev: str = "HEAD", *, include: Path | None = None, source_trees: Sequence[str] = ()) -> Recording:
    """The `source/v1` statement of a commit of the repository at `path`.

    `source_trees` are `ALGORITHM[:ROOT]`; an include list without any asks for `countermark-source-tree/v1` of the whole tree.
    `dirty` speaks of the work tree, and only when the commit is the one checked out; of any other commit nothing can be dirty.
    """
    listed = read_include(include) if include else ()
    requests = [SourceTreeRequest.parse(text, listed) for text in source_trees or ([OURS] if include else [])]
    with GitRepository(path) as repository:
        commit = repository.commit(rev)
        raw = repository.read(commit.hex, "commit", MAX_COMMIT_BYTES)
        edges = parse_commit(raw, f"commit {commit.hex}")
        objects = CommitObjects(repository)
        objects.tree(edges.tree.hex)
        trees = [source_tree(objects, edges.tree, request) for request in requests]
        checked_out = not repository.is_bare and repository.head() == commit
        state = work_tree_state(repository) if checked_out else WorkTreeState()
        address = repository.origin()
    predicate: dict[str, JsonValue] = {
        **({"repository": address} if address else {}),
        "commit": str(commit),
        "tree": str(edges.tree),
        "parents": [str(parent) for parent in edges.parents],
        "object": base64.b64encode(raw).decode(),
        "dirty": state.changed > 0,
        "dirty_paths": state.changed,
        "source_trees": [*trees],
    }
    subjects = (Subject.of(commit, uri=f"git+{address}@{commit.hex}" if address else None), Subject.of(edges.tree))
    return Recording(PredicateName.SOURCE, subjects, predicate, tuple(_notes(state)))


def _notes(state: WorkTreeState) -> Iterator[str]:
    if state.changed:
        yield f"the work tree differs from the commit in {state.changed} tracked path(s)"
    if state.untracked:
        yield f"{state.untracked} untracked path(s) are not part of the commit and were not looked at"


def check_source(predicate: JsonValue, repository: Path | None = None, *, source: str = "predicate") -> Checked:
    """Compare a recorded `source/v1` with the commit object it carries and, if given, with a repository.

    Without a repository: the object hashes to `commit` and names `tree` and `parents`. With one: it also holds that commit, and
    each source-tree digest comes out again. A predicate of another shape is an `InputError`.
    """
    node = Node(predicate, source)
    commit, tree = (Digest.parse(node[name].text(), at=node[name].at) for name in ("commit", "tree"))
    raw = _commit_bytes(node["object"])
    hashed = Digest(DigestKind.GIT_COMMIT, object_id("commit", raw, len(commit.hex)))
    compared: list[tuple[Node, str, str]] = [(node["commit"], str(commit), str(hashed))]
    if hashed == commit:
        edges = parse_commit(raw, f"commit {commit.hex}")
        compared.append((node["tree"], str(tree), str(edges.tree)))
        recorded = [parent.text() for parent in node["parents"].items()]
        compared.append((node["parents"], " ".join(recorded), " ".join(map(str, edges.parents))))
        if repository:
            compared += _against(repository, commit, edges.tree, node["source_trees"].items())
    return Checked(len(compared), tuple(_contradiction(*pair) for pair in compared if pair[1] != pair[2]))


def _against(path: Path, commit: Digest, tree: Digest, recorded: Sequence[Node]) -> Iterator[tuple[Node, str, str]]:
    with GitRepository(path) as repository:
        repository.read(commit.hex, "commit", MAX_COMMIT_BYTES)
        objects = CommitObjects(repository)
        for node in recorded:
            include = tuple(item.text() for item in node["include"].items())
            request = SourceTreeRequest.parse(f"{node['algorithm'].text()}:{node['root'].text()}", include)
            found = source_tree(objects, tree, request)
            yield node["digest"], node["digest"].text(), str(found["digest"])
            yield node["files"], str(node["files"].count()), str(found["files"])


def _commit_bytes(node: Node) -> bytes:
    try:
        return base64.b64decode(node.text(), validate=True)
    except (binascii.Error, ValueError):
        raise node.error("the raw commit object is not base64", "record the commit again") from None


def _contradiction(node: Node, recorded: str, found: str) -> Finding:
    return Finding(
        Code.RECORD_CONTRADICTED,
        Outcome.FAIL,
        fix="record the commit again from its repository; do not use this record",
        checker="source.recomputed",
        location=node.at,
        required=recorded,
        observed=found,
    )
