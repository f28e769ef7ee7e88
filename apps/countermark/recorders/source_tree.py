"""Digests of deployable source, computed from the git objects of a commit and never from a work tree.

`countermark-source-tree/v1` is ours (documents page, section 9): it binds modes, paths and bytes of a declared set.
`sparkcache-source-tree/v1` repeats a published rule, so that digests in other people's records can be checked: it leaves out build
and cache folders, reads CRLF as LF and binds no modes.
"""

import bisect
import hashlib
import posixpath
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, Location, NothingError, UsageError
from countermark.attestations.located import JsonValue
from countermark.recorders.git_objects import DIRECTORY, SUBMODULE, SYMLINK, TreeEntry

OURS = "countermark-source-tree/v1"
SPARKCACHE = "sparkcache-source-tree/v1"
ALGORITHMS = (OURS, SPARKCACHE)
MAX_ENTRIES = 1_000_000
MAX_LINK_BYTES = 4096

_MAX_LINKS_FOLLOWED = 40
_SKIPPED_PARTS = frozenset({b"__pycache__", b".pytest_cache", b"build"})
_SKIPPED_SUFFIXES = (b".pyc", b".pyo")


class Objects(Protocol):
    """A store of git objects, each checked against its id while it is read."""

    def tree(self, oid: str) -> Sequence[TreeEntry]:
        """The entries of a tree object."""

    def read(self, oid: str, kind: str, limit_bytes: int) -> bytes:
        """The content of a small object."""

    def consume(self, oid: str, kind: str, sink: Callable[[bytes], object]) -> int:
        """Feed an object's content to `sink`; its size in bytes."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One member of a set: its path below the root, its git mode and the size and SHA-256 of its bytes (a link's are its target's text)."""

    path: bytes
    mode: int
    size_bytes: int
    sha256: bytes


@dataclass(frozen=True, slots=True)
class SourceTreeRequest:
    """Which digest of which part of a commit: the algorithm, the root folder (empty: the whole tree), the include list (empty: all)."""

    algorithm: str
    root: str = ""
    include: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str, include: tuple[str, ...] = ()) -> "SourceTreeRequest":
        """Read `ALGORITHM[:ROOT]`."""
        algorithm, _, root = text.partition(":")
        if algorithm not in ALGORITHMS:
            raise UsageError(Code.UNKNOWN_NAME, f"{algorithm!r} is no source-tree algorithm", fix=f"use {' or '.join(ALGORITHMS)}")
        return cls(algorithm, "/".join(_parts(root, "the root of a source tree")), include)


def parse_include(text: str, source: str) -> tuple[str, ...]:
    """The sorted lines of an include file: one path per line, `dir/` for a whole folder, `#` begins a comment line; no globs."""
    found = set()
    for number, line in enumerate(text.splitlines(), 1):
        path = line.strip()
        if path and not path.startswith("#"):
            at = Location(source, number)
            found.add("/".join(_parts(path, "an include", at)) + ("/" if path.endswith("/") else ""))
    if not found:
        raise NothingError(Code.NOTHING_EVALUATED, "the include list names no path", at=Location(source), fix="list the files of the set")
    return tuple(sorted(found, key=str.encode))


def source_tree(objects: Objects, tree: Digest, request: SourceTreeRequest) -> dict[str, JsonValue]:
    """One element of `source_trees`; errors name the path that is missing, a submodule, or a link that leaves the set."""
    entries = dict(walk(objects, _descend(objects, tree.hex, request.root)))
    chosen = _select(entries, request)
    compute = _ours if request.algorithm == OURS else _sparkcache
    files, digest = compute(objects, chosen)
    if not files:
        raise _nothing(request)
    return {
        "algorithm": request.algorithm,
        "root": request.root,
        "include": list(request.include),
        "files": files,
        "digest": str(Digest(DigestKind.SOURCE_TREE, digest)),
    }


def walk(objects: Objects, tree_oid: str) -> Iterator[tuple[bytes, TreeEntry]]:
    """Every entry below a tree that is not itself a tree, with its path. At most a million: a small repository can name more."""
    waiting, seen = [(b"", tree_oid)], 0
    while waiting:
        prefix, oid = waiting.pop()
        for entry in objects.tree(oid):
            seen += 1
            if seen > MAX_ENTRIES:
                raise InputError(Code.TOO_LARGE, f"the tree has more than {MAX_ENTRIES} entries", fix="give a smaller root")
            path = prefix + entry.name
            if entry.mode == DIRECTORY:
                waiting.append((path + b"/", entry.oid))
            else:
                yield path, entry


def countermark_digest(files: Iterable[SourceFile]) -> str:
    """The hex of `countermark-source-tree/v1` over a set of files."""
    ordered = sorted(files, key=lambda file: file.path)
    hasher = hashlib.sha256(OURS.encode() + b"\0" + struct.pack(">I", len(ordered)))
    for file in ordered:
        hasher.update(b"%06o" % file.mode + struct.pack(">I", len(file.path)) + file.path)
        hasher.update(struct.pack(">Q", file.size_bytes) + file.sha256)
    return hasher.hexdigest()


def sparkcache_digest(normalised: Mapping[bytes, bytes]) -> str:
    """The hex of `sparkcache-source-tree/v1` over path to SHA-256 of the content with CRLF read as LF."""
    hasher = hashlib.sha256(SPARKCACHE.encode() + b"\0")
    for path in sorted(normalised):
        hasher.update(struct.pack("<I", len(path)) + path + normalised[path])
    return hasher.hexdigest()


class LineEndings:
    """SHA-256 of a stream with each CRLF read as LF, however the stream is cut into pieces."""

    def __init__(self) -> None:
        self._hasher = hashlib.sha256()
        self._held = b""

    def update(self, piece: bytes) -> None:
        """Take the next piece."""
        data = self._held + piece
        self._held = b"\r" if data.endswith(b"\r") else b""
        self._hasher.update(data[: len(data) - len(self._held)].replace(b"\r\n", b"\n"))

    def digest(self) -> bytes:
        """The digest of all that was taken; call once."""
        self._hasher.update(self._held)
        return self._hasher.digest()


def _ours(objects: Objects, chosen: Mapping[bytes, TreeEntry]) -> tuple[int, str]:
    _check_links(chosen, {path: _target(objects, entry) for path, entry in chosen.items() if entry.mode == SYMLINK})
    hashed: dict[str, tuple[int, bytes]] = {}
    files = []
    for path, entry in chosen.items():
        if entry.oid not in hashed:
            hasher = hashlib.sha256()
            hashed[entry.oid] = objects.consume(entry.oid, "blob", hasher.update), hasher.digest()
        files.append(SourceFile(path, _canonical_mode(entry.mode), *hashed[entry.oid]))
    return len(files), countermark_digest(files)


def _sparkcache(objects: Objects, chosen: Mapping[bytes, TreeEntry]) -> tuple[int, str]:
    normalised = {}
    for path, entry in chosen.items():
        if _SKIPPED_PARTS.intersection(path.split(b"/")) or path.endswith(_SKIPPED_SUFFIXES):
            continue
        if entry.mode == SYMLINK:
            raise _bad_path(path, f"is a symbolic link, which {SPARKCACHE} does not take", f"leave it out, or use {OURS}")
        hasher = LineEndings()
        objects.consume(entry.oid, "blob", hasher.update)
        normalised[path] = hasher.digest()
    return len(normalised), sparkcache_digest(normalised)


def _descend(objects: Objects, tree_oid: str, root: str) -> str:
    for part in root.split("/") if root else ():
        found = [entry for entry in objects.tree(tree_oid) if entry.name == part.encode() and entry.mode == DIRECTORY]
        if not found:
            raise InputError(Code.UNKNOWN_NAME, f"the commit has no folder {root!r}", fix="give a root that is a folder of the commit")
        tree_oid = found[0].oid
    return tree_oid


def _select(entries: Mapping[bytes, TreeEntry], request: SourceTreeRequest) -> dict[bytes, TreeEntry]:
    ordered = sorted(entries)
    chosen = set(_named(ordered, request.include) if request.include else ordered)
    for path in sorted(chosen):
        if entries[path].mode == SUBMODULE:
            raise _bad_path(path, "is a submodule, whose files this commit does not hold", "leave it out of the include list or the root")
    return {path: entries[path] for path in ordered if path in chosen}


def _named(ordered: list[bytes], include: Sequence[str]) -> Iterator[bytes]:
    for line in include:
        name = line.encode()
        start = bisect.bisect_left(ordered, name)
        below = line if line.endswith("/") else f"{line}/"
        folder = bisect.bisect_left(ordered, below.encode())
        is_folder = folder < len(ordered) and ordered[folder].startswith(below.encode())
        if line.endswith("/") and is_folder:
            while folder < len(ordered) and ordered[folder].startswith(name):
                yield ordered[folder]
                folder += 1
        elif start < len(ordered) and ordered[start] == name:
            yield name
        else:
            fix = f"write {below} for the whole folder" if is_folder else "list a path of the commit, below the root; globs are not read"
            raise _bad_path(name, "is included, but no such file is in the commit", fix)


def _target(objects: Objects, entry: TreeEntry) -> bytes:
    return objects.read(entry.oid, "blob", MAX_LINK_BYTES)


def _check_links(chosen: Mapping[bytes, TreeEntry], targets: Mapping[bytes, bytes]) -> None:
    """Each link must end, through however many links, at a file of the set or a folder that holds one."""
    folders = {b""} | {path[:at] for path in chosen for at in range(len(path)) if path[at : at + 1] == b"/"}
    for path, target in targets.items():
        if not _resolves(path, targets, chosen, folders):
            shown = target.decode(errors="backslashreplace")
            raise _bad_path(path, f"links to {shown!r}, which is not in the set", "include what it links to, or leave the link out")


def _resolves(path: bytes, targets: Mapping[bytes, bytes], files: Mapping[bytes, TreeEntry], folders: set[bytes]) -> bool:
    """Walk a link as the system would, one path part at a time, never above the root."""
    here, waiting, followed = posixpath.dirname(path), [posixpath.basename(path)], 0
    while waiting:
        part = waiting.pop(0)
        if part in (b"", b"."):
            continue
        if part == b".." and not here:
            return False
        step = posixpath.dirname(here) if part == b".." else posixpath.join(here, part)
        if step in targets:
            followed += 1
            if followed > _MAX_LINKS_FOLLOWED or targets[step][:1] in (b"", b"/"):
                return False
            waiting = [*targets[step].split(b"/"), *waiting]
        elif step in folders or (step in files and not waiting):
            here = step
        else:
            return False
    return True


def _canonical_mode(mode: int) -> int:
    """Old gits stored other permission bits; git itself reads only whether the owner may execute."""
    if mode == SYMLINK:
        return mode
    return 0o100755 if mode & 0o100 else 0o100644


def _parts(path: str, what: str, at: Location | None = None) -> list[str]:
    parts = [part for part in path.removesuffix("/").split("/") if part != "."] if path not in ("", ".", "./") else []
    if path.startswith("/") or any(part in ("", "..") for part in parts) or not path.isprintable():
        raise InputError(
            Code.UNKNOWN_NAME, f"{path!r} is not {what}: a path below the root", at=at, fix="write a relative path without .. or //"
        )
    return parts


def _bad_path(path: bytes, message: str, fix: str) -> InputError:
    shown = path.decode(errors="backslashreplace")
    return InputError(Code.UNKNOWN_NAME, f"{shown} {message}", at=Location(shown), fix=fix)


def _nothing(request: SourceTreeRequest) -> NothingError:
    return NothingError(
        Code.NOTHING_EVALUATED,
        f"{request.algorithm} over {request.root or 'the whole tree'} covers no file",
        fix="give a root or include list with files",
    )
