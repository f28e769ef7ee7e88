"""The files that a contract is held against, as pure code sees them.

Who calls hands over a tree: a folder on disk, one revision of a git repository, or a few bytes in memory. A path is relative to the
tree's root, with `/` between its parts, and never leads out of it.
"""

from collections.abc import Sequence
from typing import Protocol


class Tree(Protocol):
    """Files by path, read-only. What it gives does not change while a verdict is made."""

    def read(self, path: str) -> bytes:
        """The whole file; `InputError` (UNREADABLE, TOO_LARGE) when it cannot be had, also when it lies outside of the root."""
        ...

    def glob(self, pattern: str) -> Sequence[str]:
        """The paths of the files that match, sorted. `*` and `?` stay within one part of a path, the part `**` is any depth,
        none included; every other character is itself."""
        ...
