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
from countermark.attestations.times import Instant
from countermark.ledger.note import Checkpoint, VerifierKey, open_checkpoint

_LENGTH_STEP: Final = 256
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
            data = _read_whole(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(path, error.strerror or "it cannot be read") from None
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
        if not isinstance(size, int) or not isinstance(written, str):
            raise InputError(Code.SCHEMA_INVALID, "size must be an integer and written a time", at=Location(source))
        return cls(origin, size, bytes.fromhex(root), note, Instant.parse(written, at=Location(source)).ms)

    def encode(self) -> bytes:
        """The bytes of the file: JSON, filled up with spaces to a length that stays the same while the log grows."""
        fields = {
            "origin": self.origin,
            "size": self.size,
            "root": self.root.hex(),
            "note": self.note,
            "written": str(Instant.from_ms(self.written)),
        }
        data = json.dumps(fields).encode()
        return data + b" " * (-len(data) % _LENGTH_STEP) + b"\n"

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
    """The file of an anchor, as a writer keeps it up to date after each COMMIT.

    A writer's first write replaces the file by renaming; from then on it overwrites its own file in place, with one write of a fixed
    length within a page, which a kill cannot tear. So no two writers ever write to one file, and a reader reads until two reads agree.
    The disk is waited for once, in `close`: a power cut can leave the anchor some appends behind, and one that is behind is still true.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._written = b""

    def read(self) -> Anchor | None:
        """See `Anchor.read`."""
        return Anchor.read(self.path)

    def is_mine(self) -> bool:
        """Whether the file is still the one that this object writes to, with what it wrote last."""
        if self._descriptor is None:
            return False
        try:
            mine, named = os.fstat(self._descriptor), os.stat(self.path)  # noqa: PTH116  # once for each append: Path costs more than the call
        except OSError:
            return False
        return os.path.samestat(mine, named) and os.pread(self._descriptor, len(self._written) + 1, 0) == self._written

    def write(self, anchor: Anchor) -> None:
        """Put an anchor into the file. `CannotTellError` UNREADABLE when that is not possible."""
        data = anchor.encode()
        with self._errors():
            if len(data) == len(self._written) and self.is_mine():
                assert self._descriptor is not None
                os.pwrite(self._descriptor, data, 0)
            else:
                self._replace(data)
        self._written = data

    def close(self) -> None:
        """Wait until the disk holds what was written, under the file's name."""
        if self._descriptor is not None:
            with self._errors():
                os.fsync(self._descriptor)
                _sync(self.path.parent)
            self._release()

    def _replace(self, data: bytes) -> None:
        self._release()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        waiting = self.path.with_name(f"{self.path.name}.{os.getpid()}.tmp")
        self._descriptor = os.open(waiting, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(self._descriptor, data)
        os.fsync(self._descriptor)
        waiting.replace(self.path)

    def _release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise _unreadable(self.path, f"it cannot be written: {error.strerror}") from None


def _read_whole(path: Path) -> bytes:
    """The bytes of a file that a writer may be overwriting at this moment."""
    data, again = path.read_bytes(), path.read_bytes()
    while data != again:
        data, again = again, path.read_bytes()
    return data


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unreadable(path: Path, why: str) -> CannotTellError:
    return CannotTellError(Code.UNREADABLE, f"the anchor: {why}", at=Location(str(path)), fix="restore the file, or remove it knowingly")
