"""Git LFS pointers: the small text file that stands for a large one.

Source: git-lfs specification, docs/spec.md. A pointer names the content's SHA-256 and size; it is not the content.
"""

import re
from dataclasses import dataclass
from typing import Self

MAX_POINTER_BYTES = 1024

_VERSION = b"version https://git-lfs.github.com/spec/v1\n"
_OID = re.compile(rb"^oid sha256:([0-9a-f]{64})$", re.MULTILINE)
_SIZE = re.compile(rb"^size (0|[1-9][0-9]{0,15})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class LfsPointer:
    """What a pointer promises of its content: SHA-256 in hex and size in bytes."""

    sha256: str
    size_bytes: int

    @classmethod
    def parse(cls, data: bytes) -> Self | None:
        """Read a pointer; `None` for any other content."""
        if len(data) > MAX_POINTER_BYTES or not data.startswith(_VERSION):
            return None
        oid, size = _OID.findall(data), _SIZE.findall(data)
        return cls(oid[0].decode(), int(size[0])) if len(oid) == len(size) == 1 else None
