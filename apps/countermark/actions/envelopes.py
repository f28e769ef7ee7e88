"""Reading attestations from files: one JSON text a file, or one a line of a `.jsonl` file or of standard input."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO

from countermark.attestations import jsontext
from countermark.attestations.codes import Code
from countermark.attestations.documents import open_file
from countermark.attestations.envelope import MAX_ENVELOPE, Envelope
from countermark.attestations.errors import InputError, Location


def read_texts(path: str) -> Iterator[tuple[str, bytes]]:
    """Each JSON text of a file, or of standard input for `-`, with where it stands; lines are read as they are asked for.

    `InputError` when the file cannot be read, or holds a text that is longer than an envelope may be.
    """
    with _opened(path) as file:
        try:
            yield from _texts(file, path)
        except OSError as error:
            raise InputError(Code.UNREADABLE, error.strerror or "it cannot be read", at=Location(path), fix="read it again") from None


def read_envelope(data: bytes, source: str) -> Envelope | InputError:
    """The envelope of a JSON text, which may be a bundle around it; what is malformed is given as its error."""
    try:
        value = jsontext.loads(data, source, limit=MAX_ENVELOPE)
        inner = value.get("dsseEnvelope") if isinstance(value, dict) else None
        return Envelope.from_json(inner if inner is not None else value, source)
    except InputError as error:
        return error


def _opened(path: str) -> AbstractContextManager[BinaryIO]:
    return nullcontext(sys.stdin.buffer) if path == "-" else open_file(Path(path))


def _texts(file: BinaryIO, path: str) -> Iterator[tuple[str, bytes]]:
    first = _line(file, path, 1)
    if path.endswith(".jsonl") or (path == "-" and first.rstrip().endswith(b"}")):
        number = 1
        while first:
            if first.strip():
                yield f"{path}:{number}", first.removesuffix(b"\n")
            number += 1
            first = _line(file, path, number)
        return
    data = first + file.read(MAX_ENVELOPE + 1 - len(first))
    if len(data) > MAX_ENVELOPE:
        raise _too_large(Location(path))
    if data.strip():
        yield path, data


def _line(file: BinaryIO, path: str, number: int) -> bytes:
    line = file.readline(MAX_ENVELOPE + 1)
    if len(line) > MAX_ENVELOPE:
        raise _too_large(Location(path, number))
    return line


def _too_large(at: Location) -> InputError:
    return InputError(Code.TOO_LARGE, f"more than {MAX_ENVELOPE} bytes", at=at, fix="store large data by digest")
