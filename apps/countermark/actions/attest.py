"""`attest`: a claim that a person wrote, as a recording."""

from collections.abc import Sequence
from pathlib import Path

from countermark.attestations import jsontext
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.documents import read_file
from countermark.attestations.errors import InputError, Location
from countermark.attestations.statement import Subject
from countermark.recorders.recording import Recording


def read_claim(subjects: Sequence[str], predicate_type: str, predicate: Path) -> Recording:
    """The statement to sign: subjects by typed digest, and the object in a JSON file. Raises `InputError`."""
    value = jsontext.loads(read_file(predicate), str(predicate))
    if not isinstance(value, dict):
        raise InputError(Code.SCHEMA_INVALID, "a predicate is a JSON object", at=Location(str(predicate)), fix="wrap it in an object")
    about = tuple(Subject.of(Digest.parse(text, at=Location("--subject"))) for text in subjects)
    return Recording(predicate_type, about, value)
