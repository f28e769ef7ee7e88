"""How far a work tree is from the commit checked out in it.

The word *dirty* means what `git describe --dirty` means by it: a tracked path differs, staged or not, in this work tree or in a
checked-out submodule. Untracked files are counted apart and do not make it dirty: a ledger or a build folder that nobody told git
about would otherwise taint every record. Marks that make git look away (assume-unchanged, skip-worktree) are lifted first.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from countermark.recorders.files import unreadable
from countermark.recorders.git import GitRepository

_LISTED = re.compile(rb"([A-Za-z?]) ([0-7]{6}) [0-9a-f]+ \d\t(.*)", re.DOTALL)
_FILTER = re.compile(r"filter\.(.+)\.(clean|process|smudge)\Z", re.DOTALL)
_MAX_SUBMODULE_DEPTH = 16
_LFS_PROGRAMS = frozenset({"git-lfs clean -- %f", "git-lfs filter-process", "git-lfs smudge -- %f"})


@dataclass(frozen=True, slots=True)
class WorkTreeState:
    """Counts of paths: tracked ones that differ from HEAD, and untracked ones (an untracked folder is one)."""

    changed: int = 0
    untracked: int = 0


def work_tree_state(repository: GitRepository) -> WorkTreeState:
    """The state of the work tree of a repository that is not bare."""
    return _state(repository, depth=0)


def _state(repository: GitRepository, depth: int) -> WorkTreeState:
    settings = _without_filters(repository)
    listed = [found for line in repository.run("ls-files", "-v", "--stage", "-z").split(b"\0") if (found := _LISTED.match(line))]
    hidden = [found[3] for found in listed if _looks_away(found[1], repository.path / os.fsdecode(found[3]))]
    modules = [found[3] for found in listed if found[2] == b"160000"] if depth < _MAX_SUBMODULE_DEPTH else []
    changed, untracked = _with_marks_lifted(repository, settings, hidden) if hidden else _status(repository, settings, None)
    changed |= {module for module in modules if _module_changed(repository.path / os.fsdecode(module), depth)}
    return WorkTreeState(len(changed), untracked)


def _module_changed(path: Path, depth: int) -> bool:
    if not (path / ".git").exists():
        return False
    with GitRepository(path) as module:
        return module.path == path.resolve() and _state(module, depth + 1).changed > 0


def _looks_away(tag: bytes, path: Path) -> bool:
    """A lower-case tag is assume-unchanged; `S` is skip-worktree, which a sparse checkout sets for files that are not there."""
    return tag.islower() or (tag == b"S" and os.path.lexists(path))


def _with_marks_lifted(repository: GitRepository, settings: Mapping[str, str], paths: list[bytes]) -> tuple[set[bytes], int]:
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "index"
        try:
            shutil.copyfile(repository.git_dir / "index", index)
        except OSError as error:
            raise unreadable(str(repository.git_dir / "index"), error) from None
        for mark in ("--no-assume-unchanged", "--no-skip-worktree"):
            repository.run("update-index", mark, "-z", "--stdin", given=b"\0".join(paths) + b"\0", index=index)
        return _status(repository, settings, index)


def _status(repository: GitRepository, settings: Mapping[str, str], index: Path | None) -> tuple[set[bytes], int]:
    """The tracked paths that differ, and the number of untracked ones. Fields before a path: 8 in a changed line, 10 in an unmerged one."""
    options = ("--porcelain=v2", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=dirty")
    lines = repository.run("status", *options, settings=settings, index=index).split(b"\0")
    changed = {line.split(b" ", 8)[8] for line in lines if line.startswith(b"1 ")}
    unmerged = {line.split(b" ", 10)[10] for line in lines if line.startswith(b"u ")}
    return changed | unmerged, sum(line.startswith(b"? ") for line in lines)


def _without_filters(repository: GitRepository) -> dict[str, str]:
    """Settings that empty each filter program of the repository's own configuration, git-lfs excepted.

    A file that needs such a filter then shows as changed: dirty is the safe answer where the clean one would run a stranger's program.
    """
    said = repository.run("config", "--show-scope", "-z", "--includes", "--get-regexp", r"^filter\.", may_fail=True)
    foreign = {name for name, program in _own_filters(os.fsdecode(said)) if program not in _LFS_PROGRAMS}
    return dict.fromkeys(foreign, "") | {f"{name.rpartition('.')[0]}.required": "false" for name in foreign}


def _own_filters(said: str) -> Iterator[tuple[str, str]]:
    fields = said.split("\0")
    for scope, setting in zip(fields[::2], fields[1::2], strict=False):
        name, _, value = setting.partition("\n")
        if scope not in ("system", "global", "command") and _FILTER.match(name):
            yield name, value
