"""The anchor: the newest checkpoint of a log, remembered outside the database.

An older copy of the whole folder proves itself perfectly well; only something outside it can tell that it is old. The anchor is one
small file in the user's state directory. That it is absent is a finding, since it may just be a new machine, and never silent.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final, Self

import platformdirs

from countermark.attestations import jsontext
from countermark.attestations.codes import Code, Outcome, Severity
from countermark.attestations.errors import CannotTellError, CountermarkError, InputError, Location, TamperError
from countermark.attestations.findings import Finding
from countermark.ledger.note import Checkpoint, VerifierKey, open_checkpoint

_FIELDS: Final = frozenset({"origin", "size", "root", "note", "written"})


@dataclass(frozen=True, slots=True)
class Anchor:
    """A remembered checkpoint; `written` is when, in milliseconds since 1970 UTC."""

    origin: str
    size: int
    root: bytes
    note: str
    written: int

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """The anchor in a file, none if there is no file. `CannotTellError` UNREADABLE when it cannot be read or is no anchor."""
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(path, error.strerror or "it cannot be read") from None
        if not data:
            # What some file systems leave of a file that was replaced just before a power cut.
            return None
        try:
            return cls.decode(data, str(path))
        except InputError as error:
            raise _unreadable(path, error.message) from None

    @classmethod
    def decode(cls, data: bytes, source: str) -> Self:
        """The anchor in the bytes of its file. `InputError` for anything else."""
        value = jsontext.loads(data, source)
        fields = value if isinstance(value, dict) and value.keys() == _FIELDS else {}
        origin, size, root, note, written = (fields.get(name) for name in ("origin", "size", "root", "note", "written"))
        if not (isinstance(origin, str) and isinstance(root, str) and isinstance(note, str) and re.fullmatch("[0-9a-f]{64}", root)):
            raise InputError(Code.SCHEMA_INVALID, "it does not have the fields of an anchor", at=Location(source))
        if not isinstance(size, int) or not isinstance(written, int):
            raise InputError(Code.SCHEMA_INVALID, "size and written must be integers", at=Location(source))
        return cls(origin, size, bytes.fromhex(root), note, written)

    def encode(self) -> bytes:
        """The bytes of the file."""
        fields = {"origin": self.origin, "size": self.size, "root": self.root.hex(), "note": self.note, "written": self.written}
        return json.dumps(fields, indent=1).encode() + b"\n"

    def check_note(self, key: VerifierKey) -> None:
        """`CannotTellError` unless the log signed this anchor: a file that anyone could have made must not accuse the log."""
        try:
            signed = open_checkpoint(self.note, key)
        except CountermarkError as error:
            raise _unreadable(Path(self.origin), f"its note does not verify: {error.message}") from None
        if signed != Checkpoint(self.origin, self.size, self.root):
            raise _unreadable(Path(self.origin), "its fields are not those of its note")


def default_path(origin: str) -> Path:
    """Where the anchor of a log lies: the user's state directory (XDG_STATE_HOME), a file for each origin."""
    name = re.sub(r"[^A-Za-z0-9.-]+", "_", origin)[:80]
    folder = Path(platformdirs.user_state_dir("countermark"))
    return folder / f"{name}-{sha256(origin.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}.anchor"


def check_growth(anchor: Anchor, size: int, root_then: bytes | None) -> None:
    """`TamperError` ROLLBACK if the ledger is smaller than the anchor, SPLIT_VIEW if at the anchor's size it had another root.

    `root_then` is the ledger's root at the anchor's size; none when it is smaller.
    """
    if anchor.size > size or root_then is None:
        message = f"the ledger has {size} entries, and had {anchor.size} when the anchor was written"
        raise TamperError(
            Code.ROLLBACK, message, at=Location(anchor.origin), fix="restore the newest backup; an older copy was put in its place"
        )
    if root_then != anchor.root:
        message = f"at {anchor.size} entries the ledger now has another root than the one it signed"
        raise TamperError(
            Code.SPLIT_VIEW, message, at=Location(anchor.origin), fix="compare the anchor's note with the ledger's: both are proof"
        )


def missing_anchor(path: Path) -> Finding:
    """That nothing outside the ledger remembers its head, so that an older copy could not be told from the newest."""
    return Finding(
        Code.INCOMPLETE,
        Outcome.NOT_RUN,
        severity=Severity.INFO,
        checker="anchor",
        required="the head of the ledger, remembered outside it",
        observed=f"no anchor at {path}",
        fix="nothing, on a new machine; else find out who removed it",
    )


class AnchorFile:
    """The file of an anchor, as a writer keeps it: replaced in one step after each COMMIT, synced to the disk when the writer closes.

    A replacement survives the process, which is what the next append relies on. A power cut before `sync` can leave the file one or
    more appends behind; an anchor that is behind is still true. Syncing each time would cost as much as the append itself.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._waiting = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        self._written = b""
        self._synced = True

    def read(self) -> Anchor | None:
        """See `Anchor.read`."""
        return Anchor.read(self.path)

    def is_mine(self) -> bool:
        """Whether the file still holds what was written last through this object."""
        try:
            return bool(self._written) and self.path.read_bytes() == self._written
        except OSError:
            return False

    def write(self, anchor: Anchor) -> None:
        """Replace the file in one step. `CannotTellError` UNREADABLE when that is not possible."""
        data = anchor.encode()
        with self._errors():
            if not self._written:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            _write(self._waiting, data)
            os.replace(self._waiting, self.path)  # noqa: PTH105  # once for each append: Path costs more than the call
        self._written, self._synced = data, False

    def sync(self) -> None:
        """Wait until the disk holds the file under its name."""
        if not self._synced:
            with self._errors():
                _sync(self.path)
                _sync(self.path.parent)
            self._synced = True

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise _unreadable(self.path, f"it cannot be written: {error.strerror}") from None


def _write(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unreadable(path: Path, why: str) -> CannotTellError:
    return CannotTellError(Code.UNREADABLE, f"the anchor: {why}", at=Location(str(path)), fix="restore the file, or remove it knowingly")
