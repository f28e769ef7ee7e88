"""Files by path, for pure code that may not open any: a folder on disk, and one commit of a git repository.

Both give the same files for the same pattern, and neither gives a file from outside of its root: a symbolic link is followed as long
as it stays inside. What `.git` holds is part of neither, nor is what a submodule holds part of a commit.
"""

import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.recorders.files import read_bytes, unreadable
from countermark.recorders.git import MAX_COMMIT_BYTES, GitRepository
from countermark.recorders.git_objects import SUBMODULE, SYMLINK, TreeEntry, parse_commit
from countermark.recorders.source import CommitObjects
from countermark.recorders.source_tree import MAX_LINK_BYTES, walk

MAX_FILE_BYTES = 64 << 20
_MAX_LINKS_FOLLOWED = 40
_WILD = {"*": "[^/]*", "?": "[^/]"}


class FolderTree:
    """The files of a folder as they lie on disk, ignored and untracked ones included."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise InputError(Code.UNREADABLE, "there is no such folder", at=Location(str(root)), fix="give the path of a folder")
        self._root = root.resolve()

    def read(self, path: str) -> bytes:
        """The bytes of a regular file of at most `MAX_FILE_BYTES`."""
        _check_relative(path)
        try:
            real = (self._root / path).resolve()
        except RuntimeError:  # a circle of links, up to Python 3.12
            raise _leads_nowhere(path) from None
        if not real.is_relative_to(self._root):
            raise _leads_out(path)
        if real.is_dir():
            raise _leads_nowhere(path)
        return read_bytes(real, MAX_FILE_BYTES, path)

    def glob(self, pattern: str) -> Sequence[str]:
        """The paths of files that match, sorted; a link to a folder is no file and is not entered."""
        _check_relative(pattern)
        if not _is_wild(pattern):
            here = self._root / pattern
            return (pattern,) if os.path.lexists(here) and not here.is_dir() else ()
        return _matching(pattern, self._paths(_fixed_folder(pattern)))

    def _paths(self, below: str) -> Iterator[str]:
        start = self._root / below
        if start.resolve() != start or not start.is_dir():
            return
        for folder, folders, files in os.walk(start, onerror=_refuse):
            folders[:] = [name for name in folders if name != ".git"]
            prefix = os.path.relpath(folder, self._root)
            yield from (posixpath.normpath(f"{prefix}/{name}") for name in files if name != ".git")


class RevisionTree:
    """The files of one commit below `root`; each object is hashed as it is read. The repository must stay open meanwhile."""

    def __init__(self, repository: GitRepository, rev: str, root: str = "") -> None:
        commit = repository.commit(rev).hex
        tree = parse_commit(repository.read(commit, "commit", MAX_COMMIT_BYTES), rev).tree
        prefix = f"{root}/" if root else ""
        paths = ((os.fsdecode(path), entry) for path, entry in walk(CommitObjects(repository), tree.hex))
        inside = ((path[len(prefix) :], entry) for path, entry in paths if path.startswith(prefix))
        self._repository = repository
        self._entries = {path: entry for path, entry in inside if entry.mode != SUBMODULE}
        self._folders = {folder for path in self._entries for folder in _parents(path)}

    def read(self, path: str) -> bytes:
        """The bytes of a blob of at most `MAX_FILE_BYTES`, through symbolic links of this commit."""
        _check_relative(path)
        entry = self._entries.get(self._real(path))
        if entry is None:
            raise _leads_nowhere(path)
        return self._repository.read(entry.oid, "blob", MAX_FILE_BYTES)

    def glob(self, pattern: str) -> Sequence[str]:
        """The paths of files that match, sorted; a link to a folder is no file and is not entered."""
        _check_relative(pattern)
        if _is_wild(pattern):
            return _matching(pattern, (path for path, entry in self._entries.items() if self._is_file(path, entry)))
        entry = self._entries.get(pattern)
        is_there = self._is_file(pattern, entry) if entry else self._real(pattern) in self._entries
        return (pattern,) if is_there else ()

    def _is_file(self, path: str, entry: TreeEntry) -> bool:
        """A link that leads out or nowhere counts, so that reading it tells why there is no file."""
        try:
            return entry.mode != SYMLINK or self._real(path) not in self._folders
        except InputError:
            return True

    def _real(self, path: str) -> str:
        """Where a path leads once each link in it is followed, part by part as the system does; it may be no file."""
        here: list[str] = []
        waiting, followed = path.split("/"), 0
        while waiting:
            part = waiting.pop(0)
            if part == "..":
                if not here:
                    raise _leads_out(path)
                here.pop()
            elif part not in ("", "."):
                here.append(part)
                entry = self._entries.get("/".join(here))
                if entry and entry.mode == SYMLINK:
                    here.pop()
                    followed += 1
                    waiting = [*self._link(path, entry, followed).split("/"), *waiting]
        return "/".join(here)

    def _link(self, path: str, entry: TreeEntry, followed: int) -> str:
        if followed > _MAX_LINKS_FOLLOWED:
            raise _leads_nowhere(path)
        target = os.fsdecode(self._repository.read(entry.oid, "blob", MAX_LINK_BYTES))
        if target.startswith("/"):
            raise _leads_out(path)
        return target


def _refuse(error: OSError) -> None:
    """A folder that cannot be listed may hold a file that matches: passing over it would be a silent no."""
    raise unreadable(str(error.filename), error)


def _is_wild(pattern: str) -> bool:
    return not _WILD.keys().isdisjoint(pattern)


def _fixed_folder(pattern: str) -> str:
    """The folder that every match lies in: the parts before the first wild one, without the last part."""
    parts = pattern.split("/")[:-1]
    return "/".join(parts[: next((index for index, part in enumerate(parts) if _is_wild(part)), len(parts))])


def _matching(pattern: str, paths: Iterable[str]) -> tuple[str, ...]:
    """The paths that match, sorted; a name that is not UTF-8 cannot be shown, signed or compared, and is an error."""
    parts = pattern.split("/")
    regular = "".join(_part_expression(part, last=index == len(parts) - 1) for index, part in enumerate(parts))
    found = sorted(path for path in paths if re.fullmatch(regular, path, re.DOTALL))
    for path in found:
        if not path.isprintable():
            raise InputError(
                Code.UNREADABLE, "a file's name is not printable text", at=Location(ascii(path)), fix="rename it, or narrow the pattern"
            )
    return tuple(found)


def _part_expression(part: str, *, last: bool) -> str:
    if part == "**":
        return ".*" if last else "(?:.*/)?"
    return "".join(_WILD.get(sign) or re.escape(sign) for sign in part) + ("" if last else "/")


def _parents(path: str) -> Iterator[str]:
    while path:
        path = path.rpartition("/")[0]
        yield path


def _check_relative(path: str) -> None:
    if "\0" in path or not {"", ".", "..", ".git"}.isdisjoint(path.split("/")):
        raise InputError(Code.UNREADABLE, f"{path!r} is not the relative path of a file", fix="write it from the root, with / between")


def _leads_out(path: str) -> InputError:
    return InputError(Code.UNREADABLE, "a symbolic link leads out of the root", at=Location(path), fix="put the file itself there")


def _leads_nowhere(path: str) -> InputError:
    return InputError(Code.UNREADABLE, "this leads to no file", at=Location(path), fix="give the path of a file, or mend its links")
