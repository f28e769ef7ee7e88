"""Reading attestations from files: one envelope, one bundle, or one envelope a line."""

import sys
from collections.abc import Iterator
from pathlib import Path

from countermark.attestations import jsontext
from countermark.attestations.documents import read_file
from countermark.attestations.envelope import MAX_ENVELOPE, Envelope
from countermark.attestations.errors import InputError

MAX_STREAM = 4 * 1024 * 1024 * 1024


def read_envelopes(path: str) -> Iterator[Envelope | InputError]:
    """Each envelope of a file, or of standard input for `-`; what is malformed is given as its error, and reading goes on."""
    lines = path.endswith(".jsonl")
    data = sys.stdin.buffer.read(MAX_STREAM) if path == "-" else read_file(Path(path), limit=MAX_STREAM if lines else MAX_ENVELOPE)
    if lines or (path == "-" and _is_lines(data)):
        numbered = enumerate(data.split(b"\n"), start=1)
        yield from (_envelope(line, f"{path}:{number}") for number, line in numbered if line.strip())
    elif data.strip():
        yield _envelope(data, path)


def _is_lines(data: bytes) -> bool:
    """Whether a stream holds one JSON text a line: its first line is a whole object."""
    return data.split(b"\n", 1)[0].rstrip().endswith(b"}")


def _envelope(data: bytes, source: str) -> Envelope | InputError:
    try:
        value = jsontext.loads(data, source, limit=MAX_ENVELOPE)
        inner = value.get("dsseEnvelope") if isinstance(value, dict) else None
        return Envelope.from_json(inner if inner is not None else value, source)
    except InputError as error:
        return error
