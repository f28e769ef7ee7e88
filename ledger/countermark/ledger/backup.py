"""Backups: one file that holds the ledger as one transaction saw it, and a manifest with the newest checkpoint in it.

Copying the files of a live SQLite database loses what is still in its write-ahead log, so the copy is made by `VACUUM INTO`. The
manifest says what the file must be; it is no secret and belongs beside the backup as well as somewhere else, because its checkpoint
is what an older backup can be told by.
"""

import json
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Final, Self

from countermark.attestations import jsontext
from countermark.attestations.codes import Code
from countermark.attestations.documents import exists, read_file
from countermark.attestations.errors import CannotTellError, InputError, Location, TamperError
from countermark.attestations.times import Instant
from countermark.ledger.database import connect, sqlite_errors
from countermark.ledger.note import Checkpoint, VerifierKey, open_checkpoint
from countermark.ledger.read import Head, LedgerReader
from countermark.ledger.signed_note import MAX_NOTE_BYTES

SCHEMA: Final = "https://countermark.dev/schema/backup/v1"

_FIELDS: Final = {"schema": str, "origin": str, "size": int, "root": str, "note": str, "bytes": int, "sha256": str, "written": str}
_HEX: Final = re.compile(r"[0-9a-f]{64}\Z")
_MAX_MANIFEST_BYTES: Final = 2 * MAX_NOTE_BYTES


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup file is: its length and SHA-256, and the newest checkpoint in it. `written` is milliseconds since 1970 UTC."""

    origin: str
    size: int
    root: bytes
    note: str
    length: int
    sha256: str
    written: int

    @classmethod
    def read(cls, backup: Path) -> Self:
        """The manifest of a backup file. `CannotTellError` INCOMPLETE where there is none, `InputError` SCHEMA_INVALID for another file."""
        path = manifest_path(backup)
        at = Location(str(path))
        if not exists(path):
            fix = "put the manifest beside the backup; without it nothing says that the file is whole"
            raise CannotTellError(Code.INCOMPLETE, "the backup has no manifest", at=at, fix=fix)
        value = jsontext.loads(read_file(path, limit=_MAX_MANIFEST_BYTES), str(path))
        fields = value if isinstance(value, dict) else {}
        texts = {name: item for name, item in fields.items() if isinstance(item, str)}
        numbers = {name: item for name, item in fields.items() if isinstance(item, int) and not isinstance(item, bool)}
        typed = dict.fromkeys(texts, str) | dict.fromkeys(numbers, int)
        if typed != _FIELDS or texts["schema"] != SCHEMA or not _HEX.match(texts["root"]) or not _HEX.match(texts["sha256"]):
            message = "it does not have the fields of a backup's manifest"
            raise InputError(Code.SCHEMA_INVALID, message, at=at, fix="give the manifest that `ledger backup` wrote")
        root = bytes.fromhex(texts["root"])
        written = Instant.parse(texts["written"], at=at).ms
        return cls(texts["origin"], numbers["size"], root, texts["note"], numbers["bytes"], texts["sha256"], written)

    def encode(self) -> bytes:
        """The bytes of the manifest file."""
        fields = {
            "schema": SCHEMA,
            "origin": self.origin,
            "size": self.size,
            "root": self.root.hex(),
            "note": self.note,
            "bytes": self.length,
            "sha256": self.sha256,
            "written": str(Instant.from_ms(self.written)),
        }
        return json.dumps(fields, indent=1, ensure_ascii=False).encode() + b"\n"

    def check_file(self, path: Path, source: Path) -> None:
        """`TamperError` unless a file has the length and the SHA-256 that the manifest says; `source` is what the message names."""
        found, length = file_sha256(path), path.stat().st_size
        if (found, length) != (self.sha256, self.length):
            message = f"the backup has the SHA-256 {found} and {length} bytes, and its manifest says {self.sha256} and {self.length}"
            fix = "take another copy; this one was changed or damaged"
            raise TamperError(Code.TAMPERED, message, at=Location(str(source)), fix=fix)

    def check_note(self, key: VerifierKey) -> None:
        """`TamperError` unless the log signed what the manifest says."""
        if open_checkpoint(self.note, key) != Checkpoint(self.origin, self.size, self.root):
            raise TamperError(Code.TAMPERED, "the manifest is not what its note says", fix="take another backup")


def manifest_path(backup: Path) -> Path:
    """Where the manifest of a backup file lies."""
    return backup.with_name(backup.name + ".manifest")


def back_up(ledger: Path, target: Path, head: Head, written_ms: int) -> Manifest:
    """Write a ledger, whose verified head is `head` or newer by now, into a new file with its manifest.

    Raises `InputError` when the file exists, `CannotTellError` when it cannot be written, `TamperError` when what was copied does not
    verify.
    """
    _refuse_existing(target)
    waiting = target.with_name(target.name + ".unfinished")
    try:
        with _writing(waiting):
            remove_database(waiting)
            os.close(os.open(waiting, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            _copy(ledger, waiting)
            manifest = _describe(waiting, head, written_ms)
            _write_synced(manifest_path(target), manifest.encode())
            _sync(waiting)
            _refuse_existing(target)
            waiting.rename(target)
            _sync(target.parent)
    finally:
        remove_database(waiting)
    return manifest


def remove_database(path: Path) -> None:
    """Remove a database with all that SQLite keeps beside it: a log that was left behind would be replayed into the next file."""
    for end in ("", "-wal", "-shm", "-journal", ".lock"):
        path.with_name(path.name + end).unlink(missing_ok=True)


def _copy(ledger: Path, target: Path) -> None:
    connection = connect(ledger)
    try:
        with sqlite_errors(ledger):
            connection.execute("VACUUM INTO ?", (str(target),))
    finally:
        connection.close()


def _describe(copy: Path, head: Head, written_ms: int) -> Manifest:
    """The manifest of a copy, once the copy itself verifies and is no older than the ledger was."""
    with LedgerReader.open(copy, anchor=copy.with_name(copy.name + ".no-anchor")) as reader:
        found = reader.head
        if (found.origin, reader.root_at(head.size) if head.size <= found.size else None) != (head.origin, head.root):
            raise reader.tampered("the copy does not continue the ledger that was copied")
    return Manifest(found.origin, found.size, found.root, found.note, copy.stat().st_size, file_sha256(copy), written_ms)


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _refuse_existing(target: Path) -> None:
    if os.path.lexists(target):
        raise InputError(Code.UNREADABLE, "it exists and is not overwritten", at=Location(str(target)), fix="give the name of a new file")


def _write_synced(path: Path, data: bytes) -> None:
    waiting = path.with_name(path.name + ".unfinished")
    with waiting.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    waiting.replace(path)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise CannotTellError(Code.UNREADABLE, why, at=Location(str(path)), fix="check the rights and the room on the disk") from None
