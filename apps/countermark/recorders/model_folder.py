"""The files of a model folder and what the folder promises of them, before anything is hashed.

Four layouts are known. A snapshot in a Hugging Face cache links into `blobs/`, whose file names are digests. A `local_dir` download
keeps the same digests in `.cache/huggingface`. A git clone has the tree of its revision. Any other folder promises nothing.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path, PurePosixPath

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.recorders.files import FileKind, kind_of, opened, read_bytes, unreadable
from countermark.recorders.git import MAX_COMMIT_BYTES, GitRepository
from countermark.recorders.git_objects import SUBMODULE, SYMLINK, parse_commit
from countermark.recorders.lfs import MAX_POINTER_BYTES, LfsPointer
from countermark.recorders.source import CommitObjects
from countermark.recorders.source_tree import walk

MAX_FILES = 100_000
MAX_METADATA_BYTES = 4096

_GIT_ID = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
_HUB_REMOTE = re.compile(r"https://(?:huggingface\.co|hf\.co)/([\w.-]+/[\w.-]+)\Z")
_DOWNLOADS = ".cache/huggingface/download"
_NOT_OF_THE_MODEL = frozenset({".git", ".cache"})


class PromisedHash(StrEnum):
    """By which hash a digest was promised: of the content, or of the content as a git blob."""

    SHA256 = "sha256"
    GIT_BLOB = "git blob"


@dataclass(frozen=True, slots=True)
class Promise:
    """A digest that the layout names for a file, and its size where that is named too."""

    hash: PromisedHash
    hex: str
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file of a model: its name below the folder, where its bytes are, and what the layout promises of it."""

    name: str
    path: Path
    size_bytes: int
    promise: Promise | None = None


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """The files, sorted by name, and what the folder says it is; `lfs_objects` is where a clone keeps large contents."""

    root: Path
    files: tuple[ModelFile, ...]
    repository: str | None = None
    revision: str | None = None
    lfs_objects: Path | None = None
    notes: tuple[str, ...] = ()


def read_folder(path: Path, revision: str | None = None) -> ModelFolder:
    """List a model folder with its promises. `revision` selects the tree of a clone; other layouts have one revision only.

    A file that a clone's revision has and the folder lacks is an `InputError`; one that only the folder has is left out, with a note.
    """
    folder = list_folder(path)
    if _is_snapshot(folder.root):
        return _with_hub_promises(folder)
    if folder.lfs_objects:
        return _with_tree_promises(folder, revision or "HEAD")
    return folder


def list_folder(path: Path) -> ModelFolder:
    """List every file of a model folder, and what the layout says of its identity."""
    root = path.resolve()
    if root.name.startswith("models--") and kind_of(root / "snapshots") is FileKind.FOLDER:
        root = _only_snapshot(root / "snapshots")
    named = root.name if _GIT_ID.match(root.name) else None
    if _is_snapshot(root):
        repository = root.parent.parent.name.removeprefix("models--").replace("--", "/")
        return ModelFolder(root, tuple(_files(root, root.parent.parent / "blobs")), repository, named)
    files = tuple(_files(root, root))
    if kind_of(root / ".git") is not None:
        return _clone(root, files)
    if kind_of(root / _DOWNLOADS) is FileKind.FOLDER:
        return _download(root, files)
    return ModelFolder(root, files, revision=named)


def _is_snapshot(root: Path) -> bool:
    return root.parent.name == "snapshots" and root.parent.parent.name.startswith("models--")


def _only_snapshot(snapshots: Path) -> Path:
    found = sorted(path for entry in _entries(snapshots) if kind_of(path := Path(entry.path)) is FileKind.FOLDER)
    if len(found) != 1:
        names = " ".join(path.name for path in found) or "none"
        raise InputError(
            Code.SUBJECT_UNKNOWN,
            f"the cache holds not one snapshot but: {names}",
            at=Location(str(snapshots)),
            fix="give the folder of one snapshot",
        )
    return found[0]


def _with_hub_promises(folder: ModelFolder) -> ModelFolder:
    """In the cache a file is a link to a blob whose name is its digest."""
    blobs = (folder.root.parent.parent / "blobs").resolve()
    files = tuple(replace(file, promise=_promise(file.path.name) if file.path.parent == blobs else None) for file in folder.files)
    unnamed = sum(file.promise is None for file in files)
    notes = (f"{unnamed} file(s) are not named by digest in the cache, so nothing is promised of them",) if unnamed else ()
    return replace(folder, files=files, notes=notes)


def _download(root: Path, files: tuple[ModelFile, ...]) -> ModelFolder:
    """A `local_dir` download: per file, three lines with the commit, the digest (etag) and a time."""
    promised, commits = [], set()
    for file in files:
        metadata = root / _DOWNLOADS / f"{file.name}.metadata"
        lines = read_bytes(metadata, MAX_METADATA_BYTES).decode(errors="replace").splitlines() if kind_of(metadata) else []
        commits |= {lines[0]} if lines and _GIT_ID.match(lines[0]) else set()
        promised.append(replace(file, promise=_promise(lines[1].strip('"')) if len(lines) > 1 else None))
    if len(commits) > 1:
        raise InputError(
            Code.SUBJECT_CONTRADICTION,
            f"the files were downloaded from {len(commits)} revisions: {' '.join(sorted(commits))}",
            at=Location(str(root)),
            fix="download one revision into a new folder",
        )
    return ModelFolder(root, tuple(promised), revision=commits.pop() if commits else None)


def _clone(root: Path, files: tuple[ModelFile, ...]) -> ModelFolder:
    with GitRepository(root) as repository:
        if repository.path != root.resolve():
            raise InputError(Code.UNREADABLE, "its .git is not that of a clone", at=Location(str(root)), fix="give the top of a clone")
        remote, head = _HUB_REMOTE.match(repository.origin() or ""), repository.head()
        return ModelFolder(root, files, remote[1] if remote else None, head.hex if head else None, repository.git_dir / "lfs/objects")


def _with_tree_promises(folder: ModelFolder, rev: str) -> ModelFolder:
    with GitRepository(folder.root) as repository:
        commit = repository.commit(rev)
        edges = parse_commit(repository.read(commit.hex, "commit", MAX_COMMIT_BYTES), f"commit {commit.hex}")
        promises = {}
        for path, entry in walk(CommitObjects(repository), edges.tree.hex):
            if entry.mode in (SYMLINK, SUBMODULE):
                raise _bad_file(os.fsdecode(path), "is a link or submodule in the revision", "record a snapshot made by the hub's own tool")
            promises[os.fsdecode(path)] = _promise_of_blob(repository, entry.oid)
    present = {file.name: file for file in folder.files}
    for name in promises:
        if name not in present:
            raise _bad_file(name, f"is in revision {commit.hex} and not in the folder", "check it out: git checkout, git lfs pull")
    files = tuple(replace(present[name], promise=promises[name]) for name in sorted(promises))
    strangers = sorted(present.keys() - promises.keys())
    notes = (f"{len(strangers)} file(s) are not of the revision and not recorded: {' '.join(strangers[:8])}",) if strangers else ()
    return replace(folder, files=files, revision=commit.hex, notes=notes)


def _promise_of_blob(repository: GitRepository, oid: str) -> Promise:
    start = bytearray()

    def keep(piece: bytes) -> None:
        start.extend(piece[: MAX_POINTER_BYTES + 1 - len(start)])

    repository.consume(oid, "blob", keep)
    pointer = LfsPointer.parse(bytes(start))
    return Promise(PromisedHash.SHA256, pointer.sha256, pointer.size_bytes) if pointer else Promise(PromisedHash.GIT_BLOB, oid)


def _promise(name: str) -> Promise | None:
    """Cache names and etags: a SHA-256 for what the hub keeps in LFS, a git blob id for the rest."""
    if not _GIT_ID.match(name):
        return None
    return Promise(PromisedHash.SHA256 if len(name) == 64 else PromisedHash.GIT_BLOB, name)


def _files(root: Path, links_into: Path) -> Iterator[ModelFile]:
    """Every regular file below `root`, sorted by name; a link must lead to a file below `root` or `links_into`."""
    found: dict[str, ModelFile] = {}
    waiting = [root]
    allowed = (root.resolve(), links_into.resolve())
    while waiting:
        for entry in _entries(waiting.pop()):
            path = Path(entry.path)
            name = _name(path, root)
            if name in _NOT_OF_THE_MODEL:
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append(path)
                continue
            real = _followed(path, name, allowed) if entry.is_symlink() else path
            with opened(real, name) as content:
                found[name] = ModelFile(name, real, os.fstat(content.fileno()).st_size)
            if len(found) > MAX_FILES:
                raise InputError(Code.TOO_LARGE, f"more than {MAX_FILES} files", at=Location(str(root)), fix="give the folder of one model")
    yield from (found[name] for name in sorted(found))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError as error:
        raise unreadable(str(folder), error) from None


def _name(path: Path, root: Path) -> str:
    name = PurePosixPath(path.relative_to(root)).as_posix()
    try:
        name.encode()
    except UnicodeEncodeError:
        shown = name.encode(errors="backslashreplace").decode()
        raise _bad_file(shown, "has a name that is not UTF-8", "rename it") from None
    return name


def _followed(path: Path, name: str, allowed: tuple[Path, ...]) -> Path:
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:  # a circle of links is a RuntimeError until Python 3.13
        raise _bad_file(name, f"is a link that leads nowhere ({error})", "download the file again") from None
    if not any(real.is_relative_to(folder) for folder in allowed):
        raise _bad_file(name, f"is a link out of the folder, to {real}", "copy the file into the folder")
    return real


def _bad_file(name: str, message: str, fix: str) -> InputError:
    return InputError(Code.UNREADABLE, f"{name} {message}", at=Location(name), fix=fix)
