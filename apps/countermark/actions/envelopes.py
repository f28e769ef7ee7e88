"""Reading attestations from files: one JSON text a file, or one a line of a `.jsonl` file or of standard input."""

import sys
from collections.abc import Iterator
from pathlib import Path

from countermark.attestations import jsontext
from countermark.attestations.documents import read_file
from countermark.attestations.envelope import MAX_ENVELOPE, Envelope
from countermark.attestations.errors import InputError

MAX_STREAM = 4 * 1024 * 1024 * 1024


def read_texts(path: str) -> Iterator[tuple[str, bytes]]:
    """Each JSON text of a file, or of standard input for `-`, with where it stands. `InputError` when the file cannot be read."""
    lines = path.endswith(".jsonl")
    data = sys.stdin.buffer.read(MAX_STREAM) if path == "-" else read_file(Path(path), limit=MAX_STREAM if lines else MAX_ENVELOPE)
    if lines or (path == "-" and _is_lines(data)):
        yield from ((f"{path}:{number}", line) for number, line in enumerate(data.split(b"\n"), start=1) if line.strip())
    elif data.strip():
        yield path, data


def read_envelope(data: bytes, source: str) -> Envelope | InputError:
    """The envelope of a JSON text, which may be a bundle around it; what is malformed is given as its error."""
    try:
        value = jsontext.loads(data, source, limit=MAX_ENVELOPE)
        inner = value.get("dsseEnvelope") if isinstance(value, dict) else None
        return Envelope.from_json(inner if inner is not None else value, source)
    except InputError as error:
        return error


def _is_lines(data: bytes) -> bool:
    """Whether a stream holds one JSON text a line: its first line is a whole object."""
    return data.split(b"\n", 1)[0].rstrip().endswith(b"}")
