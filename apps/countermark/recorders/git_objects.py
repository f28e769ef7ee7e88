"""Git objects as bytes: their ids, and what a commit and a tree object say.

Source: git's documentation of object storage (gitformat, hash-function-transition). An id is the hash of `KIND SIZE NUL` and the
content, SHA-1 (40 hex digits) or SHA-256 (64), so whatever is read here is checked against the id it was asked for.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, Location

if TYPE_CHECKING:
    from hashlib import _Hash

SUBMODULE = 0o160000
SYMLINK = 0o120000
DIRECTORY = 0o040000

_TREE_LINE = re.compile(rb"tree ([0-9a-f]+)\n")
_PARENT_LINE = re.compile(rb"parent ([0-9a-f]+)\n")
_TREE_ENTRY = re.compile(rb"([0-7]{5,6}) ([^\0/]+)\0")


@dataclass(frozen=True, slots=True)
class CommitObject:
    """The edges that the bytes of a commit object state."""

    tree: Digest
    parents: tuple[Digest, ...]


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One name in a tree object: its mode as a number, its name as bytes, the hex id of what it names."""

    mode: int
    name: bytes
    oid: str


def object_hash(kind: str, size_bytes: int, id_length: int) -> "_Hash":
    """A hash that already holds the header of a git object; fed with the content, its hex is the object's id."""
    algorithm = "sha256" if id_length == 64 else "sha1"
    hasher = hashlib.new(algorithm, usedforsecurity=False)
    hasher.update(f"{kind} {size_bytes}\0".encode())
    return hasher


def object_id(kind: str, data: bytes, id_length: int) -> str:
    """The hex id of the object with this content; `id_length` (40 or 64) selects the repository's hash."""
    hasher = object_hash(kind, len(data), id_length)
    hasher.update(data)
    return hasher.hexdigest()


def parse_commit(data: bytes, name: str) -> CommitObject:
    """The tree and parents that a raw commit object names; git reads no other order than tree, parents, the rest."""
    tree = _TREE_LINE.match(data)
    if not tree:
        raise _damaged(name, "a commit object begins with its tree")
    parents, end = [], tree.end()
    while parent := _PARENT_LINE.match(data, end):
        parents.append(Digest(DigestKind.GIT_COMMIT, parent[1].decode()))
        end = parent.end()
    if not data.startswith(b"author ", end):
        raise _damaged(name, "the author of a commit follows its tree and parents")
    return CommitObject(Digest(DigestKind.GIT_TREE, tree[1].decode()), tuple(parents))


def parse_tree(data: bytes, id_length: int, name: str) -> tuple[TreeEntry, ...]:
    """The entries of a raw tree object, in its order; a name that no checkout could hold is refused."""
    entries: dict[bytes, TreeEntry] = {}
    position, id_bytes = 0, id_length // 2
    while position < len(data):
        head = _TREE_ENTRY.match(data, position)
        end = head.end() + id_bytes if head else 0
        if not head or end > len(data) or head[2] in (b".", b"..", b".git") or head[2] in entries:
            raise _damaged(name, f"the entry at byte {position} of a tree is not one that git writes")
        entries[head[2]] = TreeEntry(int(head[1], 8), head[2], data[head.end() : end].hex())
        position = end
    return tuple(entries.values())


def _damaged(name: str, what: str) -> InputError:
    return InputError(Code.UNREADABLE, f"damaged git object: {what}", at=Location(name), fix="run git fsck and fetch the repository again")
