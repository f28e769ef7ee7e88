"""Documents that a person writes: YAML or JSON of a known kind, checked against its schema, every value with its place."""

import os
import stat
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from countermark.attestations import jsontext, yamltext
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, InvalidDocumentError, Location
from countermark.attestations.located import Located, walk

API_VERSION = "countermark.dev/v1"
MAX_FILE = 64 * 1024 * 1024

_HANDED_OVER = ("/dev/fd/", "/proc/self/fd/")


@dataclass(frozen=True, slots=True)
class Document:
    """A validated document. Its digest is over the file's bytes, so a comment is part of the identity."""

    kind: str
    id: str
    version: int
    spec: dict[str, Any]
    digest: Digest
    located: Located

    @property
    def source(self) -> str:
        """The name of the file that the document was read from."""
        return self.located.source

    def at(self, pointer: str) -> Location:
        """Where a value of the document stands."""
        return self.located.at(pointer)


def read_file(path: Path, *, limit: int = MAX_FILE) -> bytes:
    """The bytes of a file of at most `limit` bytes; `InputError` UNREADABLE or TOO_LARGE. See `open_file`."""
    with open_file(path) as file:
        try:
            data = file.read(limit + 1)
        except OSError as error:
            raise _unreadable(path, error) from None
    if len(data) > limit:
        raise InputError(Code.TOO_LARGE, f"more than {limit} bytes", at=Location(str(path)), fix="give a smaller file")
    return data


def open_file(path: Path) -> BinaryIO:
    """A file, open for reading; `InputError` UNREADABLE.

    A named pipe is refused, since nobody may ever write to it; one that a shell handed over (`<(…)`) is read.
    """
    try:
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    if stat.S_ISFIFO(os.fstat(file.fileno()).st_mode) and not str(path).startswith(_HANDED_OVER):
        file.close()
        raise InputError(Code.UNREADABLE, "this is a pipe", at=Location(str(path)), fix="give the path of a file")
    os.set_blocking(file.fileno(), True)
    return file


def _unreadable(path: Path, error: Exception) -> InputError:
    why = getattr(error, "strerror", None) or "it cannot be read"
    return InputError(Code.UNREADABLE, why, at=Location(str(path)), fix="give the path of a readable file")


def exists(path: Path) -> bool:
    """Whether something is there; a name that the system cannot even look up is not."""
    try:
        return path.exists()
    except OSError:
        return False


def read_structured(data: bytes, source: str) -> Located:
    """Parse JSON when the name ends in `.json`, else YAML, which JSON is mostly a part of."""
    return jsontext.loads_located(data, source) if source.endswith(".json") else yamltext.loads_located(data, source)


@lru_cache(maxsize=32)
def load_document(data: bytes, source: str, kind: str) -> Document:
    """Read a document of `kind` and check it against its schema; all mistakes are in the `InvalidDocumentError`.

    The same bytes are read once: a service that decides again and again asks of the same few documents.
    """
    located = read_structured(data, source)
    value = located.value
    if not isinstance(value, dict) or value.get("apiVersion") != API_VERSION or value.get("kind") != kind:
        found = f"kind {value.get('kind')!r}" if isinstance(value, dict) else "no document"
        raise InputError(
            Code.SCHEMA_INVALID,
            f"{found} where a {kind} is needed",
            at=located.at("/kind"),
            fix=f"begin with apiVersion: {API_VERSION} and kind: {kind}",
        )
    mistakes = [*_floats(located), *_schema(located, kind)]
    if mistakes:
        raise InvalidDocumentError(mistakes)
    metadata: Any = value["metadata"]
    spec: Any = value["spec"]
    return Document(kind, metadata["id"], metadata["version"], spec, Digest.of(DigestKind.FILE, data), located)


def _floats(located: Located) -> list[InputError]:
    """JSON Schema takes 1.0 for an integer, so floats are refused before it; pins alone may be of any type."""
    return [
        InputError(Code.BAD_NUMBER, f"{node} is not an integer", at=located.at(pointer), fix="write an integer, or a quoted decimal")
        for pointer, node in walk(located.value)
        if isinstance(node, float) and not pointer.startswith("/spec/pins/")
    ]


def _schema(located: Located, kind: str) -> list[InputError]:
    from countermark.attestations.schema import problems

    return [
        InputError(Code.SCHEMA_INVALID, problem.message, at=located.at(problem.pointer), fix=problem.fix)
        for problem in problems(kind, located.value)
    ]
