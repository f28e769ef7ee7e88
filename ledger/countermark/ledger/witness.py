"""A witness that is handed files: it remembers the newest head of each log, and cosigns a head that continues it (C2SP tlog-witness).

What it has cosigned lies in an SQLite file of its own and changes by compare-and-swap; it is on the disk before a cosignature is given
out. So whatever happens to the process, and however many run at once, it never signs two roots at one size and never goes back.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from countermark.attestations.codes import Code
from countermark.attestations.errors import CannotTellError, CountermarkError, InputError, Location, RefusedError, TamperError
from countermark.ledger.cosignature import Cosigner
from countermark.ledger.merkle import check_consistency
from countermark.ledger.note import Checkpoint, VerifierKey, check_signed
from countermark.ledger.proof_file import GrowthFile
from countermark.ledger.signed_note import SignedNote, malformed

STATE_FILE: Final = "witness.db"

_BUSY_S: Final = 30.0
_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS seen (origin TEXT PRIMARY KEY, size INTEGER NOT NULL, root BLOB NOT NULL, "
    "note TEXT NOT NULL, time_s INTEGER NOT NULL) STRICT"
)
_SWAP: Final = "UPDATE seen SET size = ?, root = ?, note = ?, time_s = ? WHERE origin = ? AND size = ? AND root = ?"


@dataclass(frozen=True, slots=True)
class Seen:
    """The newest head of a log that the witness has cosigned, and when (POSIX seconds)."""

    checkpoint: Checkpoint
    note: str
    time_s: int


class Witness:
    """The state of a witness in a folder, with the keys of the logs that it witnesses, by origin."""

    def __init__(self, folder: Path, logs: Mapping[str, VerifierKey]) -> None:
        self._folder = folder
        self._logs = logs

    def cosign(self, request: GrowthFile, cosigner: Cosigner, now_s: int) -> str:
        """The request's checkpoint with this witness's cosignature, once it is known to continue what was cosigned before.

        Raises `RefusedError` (UNTRUSTED for a log that is not witnessed; STALE when the request does not begin at the size that was
        cosigned last, which the message names), `InputError` for a request that no witness takes, `TamperError` SPLIT_VIEW when the log
        has two histories, of which both notes are kept, and `CannotTellError` (CLOCK, UNREADABLE).
        """
        note = SignedNote.parse(request.note)
        key, checkpoint = self._of_a_log(note)
        if request.old > checkpoint.size:
            raise malformed(f"a checkpoint of {checkpoint.size} entries cannot grow from {request.old}")
        with self._transaction() as state:
            last = _seen(state, checkpoint.origin)
            self._check(request, checkpoint, last)
            if last and now_s < last.time_s:
                message = f"the clock is {last.time_s - now_s} s behind the last cosignature"
                raise CannotTellError(Code.CLOCK, message, fix="set the clock right, then try again")
            _swap(state, checkpoint, request.note, now_s, last)
        line = cosigner.sign(checkpoint, now_s)
        return str(SignedNote(note.text, (*note.by(key.name, key.key_id), line)))

    def seen(self) -> list[Seen]:
        """What was cosigned last of each log, by origin."""
        with self._transaction() as state:
            origins = [origin for (origin,) in state.execute("SELECT origin FROM seen ORDER BY origin")]
            return [found for origin in origins if (found := _seen(state, origin))]

    def _of_a_log(self, note: SignedNote) -> tuple[VerifierKey, Checkpoint]:
        origin = Checkpoint.parse(note.text).origin
        key = self._logs.get(origin)
        if key is None:
            fix = "have the log's verifier key added to the logs of this witness"
            raise RefusedError(Code.UNTRUSTED, f"this witness does not know the log {origin!r}", fix=fix)
        return key, check_signed(note, key)

    def _check(self, request: GrowthFile, checkpoint: Checkpoint, last: Seen | None) -> None:
        size, root = (last.checkpoint.size, last.checkpoint.root) if last else (0, b"")
        if last and checkpoint.size == size and checkpoint.root != root:
            raise self._split(request, last, f"the log has signed two roots at {size} entries")
        if request.old != size:
            fix = f"ask again with `countermark ledger prove --from {size}`"
            raise RefusedError(Code.STALE, f"the request begins at {request.old} entries, and {size} were cosigned last", fix=fix)
        if last is None:
            if request.hashes:
                raise malformed("a proof from nothing is empty")
            return
        try:
            check_consistency(size, checkpoint.size, root, checkpoint.root, request.hashes)
        except TamperError as error:
            raise self._split(request, last, error.message) from None

    def _split(self, request: GrowthFile, last: Seen, message: str) -> TamperError:
        """The error that accuses a log, once both of its notes are kept."""
        evidence = f"{last.note}\n{request.encode().decode()}".encode()
        path = self._folder / f"evidence-{sha256(evidence).hexdigest()[:16]}.txt"
        try:
            path.write_bytes(evidence)
        except OSError as error:
            message += f" (the evidence cannot be kept: {error.strerror})"
        fix = f"keep {path}: it shows what was cosigned, and what was asked for; tell the other witnesses"
        return TamperError(Code.SPLIT_VIEW, message, at=Location(last.checkpoint.origin), fix=fix)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction that no other process can come between, on the disk when the block has ended without an error."""
        path = self._folder / STATE_FILE
        try:
            state = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=_BUSY_S)
            try:
                state.execute("PRAGMA synchronous = FULL")
                state.execute("PRAGMA fullfsync = ON")
                state.execute("BEGIN IMMEDIATE")
                _check_whole(state, path)
                yield state
                state.execute("COMMIT")
            finally:
                state.close()
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the second where SQLite's own message repeats bytes that are no text
            fix = "check the folder and the disk; cosign nothing with a state that was lost"
            raise CannotTellError(Code.UNREADABLE, f"the witness's state: {error}", at=Location(str(path)), fix=fix) from None


def begin_state(folder: Path) -> None:
    """Make the state file of a new witness. `InputError` when there is one: a witness that forgets could sign two histories."""
    path = folder / STATE_FILE
    try:
        path.open("xb").close()
    except FileExistsError:
        raise InputError(Code.UNREADABLE, "a witness stands here", at=Location(str(path)), fix="choose a new folder") from None
    state = sqlite3.connect(path, isolation_level=None)
    try:
        state.execute(_TABLE)
    finally:
        state.close()


def _check_whole(state: sqlite3.Connection, path: Path) -> None:
    """Each row is what the note in it says, and none is missing: a witness that is made to forget could sign the other history."""
    problem = next((str(text) for (text,) in state.execute("PRAGMA integrity_check(1)") if text != "ok"), None)
    rows = state.execute("SELECT origin, size, root, note FROM seen") if problem is None else ()
    for origin, size, root, note in rows:
        try:
            same = Checkpoint.parse(SignedNote.parse(note).text) == Checkpoint(origin, size, root)
            problem = None if same else f"{origin}: the size and root are not those of the note"
        except CountermarkError as error:
            problem = f"{origin}: {error.message}"
        if problem:
            break
    if problem:
        fix = "restore the state, or begin a new witness with a new name"
        raise CannotTellError(Code.UNREADABLE, f"the witness's state: {problem}", at=Location(str(path)), fix=fix)


def _seen(state: sqlite3.Connection, origin: str) -> Seen | None:
    row = state.execute("SELECT size, root, note, time_s FROM seen WHERE origin = ?", (origin,)).fetchone()
    return Seen(Checkpoint(origin, row[0], row[1]), row[2], row[3]) if row else None


def _swap(state: sqlite3.Connection, checkpoint: Checkpoint, note: str, now_s: int, last: Seen | None) -> None:
    new = (checkpoint.size, checkpoint.root, note, now_s)
    if last is None:
        state.execute("INSERT INTO seen (size, root, note, time_s, origin) VALUES (?, ?, ?, ?, ?)", (*new, checkpoint.origin))
        return
    changed = state.execute(_SWAP, (*new, checkpoint.origin, last.checkpoint.size, last.checkpoint.root)).rowcount
    if changed != 1:
        message = "the state changed while it was locked"
        raise CannotTellError(Code.UNREADABLE, message, at=Location(checkpoint.origin), fix="look into the folder of the witness")
