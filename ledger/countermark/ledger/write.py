"""The writer of a ledger: admits submissions, one transaction an append, and remembers the head outside the database."""

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import func, insert, select

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import CannotTellError, InputError, Location, RefusedError, TamperError
from countermark.attestations.findings import Finding
from countermark.attestations.keys import Signer
from countermark.ledger import tables
from countermark.ledger.anchor import Anchor, AnchorFile, check_growth, default_path, missing_anchor
from countermark.ledger.append import NOTHING_YET, LogState, existing, extend_log, read_head, tile_reader
from countermark.ledger.database import connect
from countermark.ledger.genesis import Genesis
from countermark.ledger.lock import WriterLock, refuse_network
from countermark.ledger.merkle import root_at
from countermark.ledger.note import CheckpointSigner
from countermark.ledger.prepare import Prepared
from countermark.ledger.store import Session, engine_errors, make_engine
from countermark.ledger.submission import Receipt, Refusal, Submission

Clock = Callable[[], int]

_SELECT_KEY = select(tables.LEDGER.c.log_vkey)
_COUNT_ENTRIES = select(func.count(tables.ENTRY.c.idx))
_INSERT_LEDGER = insert(tables.LEDGER)
_INSERT_REFUSED = insert(tables.QUARANTINE)


def now_ms() -> int:
    """The system's time in milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000


class LedgerWriter:
    """Appends to one ledger, under its log key. For one thread; other processes may write to the same ledger.

    The log key is a local Ed25519 key by construction of `CheckpointSigner`: a key service in the middle of a transaction could sign
    and then fail to answer.
    """

    def __init__(self, path: Path, log_signer: CheckpointSigner, anchor: Path | None, clock: Clock) -> None:
        self._path = path
        self._signer = log_signer
        self._anchor = AnchorFile(anchor or default_path(log_signer.vkey.name))
        self._clock = clock
        self._known: LogState | None = None
        self._anchored: LogState | None = None
        self._dead = False
        self.findings: list[Finding] = []
        """What the caller must print: an anchor that is absent."""
        self._lock = WriterLock(path)
        self._engine = make_engine(path)
        try:
            with engine_errors(path):
                self._session = Session(self._engine.connect())
        except BaseException:
            self._lock.close()
            raise

    @classmethod
    def open(cls, path: Path, log_signer: CheckpointSigner, anchor: Path | None = None, clock: Clock = now_ms) -> Self:
        """Open an existing ledger for appending.

        `anchor` is the file that remembers its head, by default in the user's state directory. `RefusedError` UNTRUSTED when the
        signer is not this log's; `CannotTellError` when there is no such ledger or it cannot be written safely.
        """
        refuse_network(path)
        connect(path).close()
        writer = cls(path, log_signer, anchor, clock)
        try:
            writer._check_log_key()
        except BaseException:
            writer.close()
            raise
        return writer

    def append(self, submissions: Sequence[Submission]) -> list[Receipt]:
        """Admit all of them in one transaction, or none; a receipt for each, in order.

        What was admitted before, by the same signers over the same bytes, gets the receipt of the first time, so that a caller who
        lost an answer may ask again. Raises `CannotTellError` (CLOCK, LEDGER_LOCKED, INCOMPLETE after a COMMIT whose outcome is not
        known), `TamperError` (ROLLBACK, SPLIT_VIEW, LEDGER_TAMPERED), `InputError`, `RefusedError`.
        """
        return self.admit([Prepared.of(submission) for submission in submissions])

    def admit(self, batch: Sequence[Prepared]) -> list[Receipt]:
        """As `append`, of what was prepared elsewhere."""
        return self._admit(batch, self._check_anchor) if batch else []

    def append_incarnation(self, entry: Submission) -> Receipt:
        """Admit the entry with which a log goes on below its anchor, and remember the head after it instead. Raises as `append`."""
        (receipt,) = self._admit([Prepared.of(entry)], lambda _session, _head: None)
        return receipt

    def _admit(self, batch: Sequence[Prepared], check: Callable[[Session, LogState], None]) -> list[Receipt]:
        with self._lock.held():
            with self._transaction() as session:
                head = read_head(session, self._signer.vkey, self._known)
                check(session, head)
                indices = existing(session, head, batch)
                new = _first_of_each(batch, indices)
                if new:
                    head = extend_log(session, head, new, self._clock(), self._signer)
            self._committed(head)
        first = head.size - len(new)
        placed = {item.dedup: index for index, item in enumerate(new, first)}
        return list(_receipts(batch, indices, placed))

    def quarantine(self, refused: Sequence[Refusal]) -> None:
        """Record what was refused, in one transaction, outside everything that is signed."""
        if not refused:
            return
        when = self._clock()
        rows = [(None, when, item.sha256, str(item.code), item.reason, " ".join(item.subjects), item.predicate_type) for item in refused]
        with self._lock.held(), self._transaction() as session:
            session.insert(_INSERT_REFUSED, rows)

    def begin_log(self, genesis: Genesis, first: Prepared) -> None:
        """Write entry 0 and the row that repeats it. `InputError` if the log has begun, `TamperError` if one of its name had begun."""
        with self._lock.held():
            with self._transaction() as session:
                if session.rows(_COUNT_ENTRIES) != [(0,)]:
                    raise _begun(self._path)
                if self._anchor.read():
                    message = f"a log named {genesis.origin} had begun before; its anchor is {self._anchor.path}"
                    raise TamperError(Code.ROLLBACK, message, at=Location(str(self._path)), fix="give the new log another origin")
                session.change(_INSERT_LEDGER, *genesis.row)
                head = extend_log(session, NOTHING_YET, [first], genesis.created_ms, self._signer)
            self._committed(head)

    def close(self) -> None:
        """Wait until the disk holds the anchor, and give back the connection and the lock."""
        try:
            self._anchor.close()
        finally:
            self._session.close()
            self._engine.dispose()
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _check_log_key(self) -> None:
        with engine_errors(self._path):
            rows = self._session.rows(_SELECT_KEY)
        if not rows:
            raise _not_begun(self._path)
        if rows[0][0] != str(self._signer.vkey):
            message = "the key given is not the key of this log"
            raise RefusedError(Code.UNTRUSTED, message, at=Location(str(self._path)), fix="give the log key that `countermark init` wrote")

    @contextmanager
    def _transaction(self) -> Iterator[Session]:
        if self._dead:
            raise _unknown_outcome(self._path)
        with engine_errors(self._path):
            self._session.begin()
            try:
                yield self._session
            except BaseException:
                self._session.rollback()
                raise
            try:
                self._session.commit()
            except sqlite3.Error as error:
                # The disk may or may not hold the new entries. Going on in this process could sign a second root for one size.
                self._dead = True
                raise _unknown_outcome(self._path) from error

    def _check_anchor(self, session: Session, head: LogState) -> None:
        if self._anchored is head and self._anchor.is_mine():
            return
        anchor = self._anchor.read()
        if anchor is None:
            self._note_missing_anchor()
            return
        anchor.check_note(self._signer.vkey)
        then = root_at(anchor.size, tile_reader(session, head.size)) if anchor.size <= head.size else None
        check_growth(anchor, head.size, then)
        if anchor.size == head.size:
            self._anchored = head

    def _note_missing_anchor(self) -> None:
        if not self.findings:
            self.findings.append(missing_anchor(self._anchor.path))

    def _committed(self, head: LogState) -> None:
        """COMMIT has returned: the head may now be remembered and shown."""
        self._known = head
        if self._anchored is not head:
            self._anchor.write(Anchor(self._signer.vkey.name, head.size, head.root, head.note, self._clock()))
            self._anchored = head


def initialise(
    path: Path,
    log_signer: CheckpointSigner,
    operator: Signer,
    trust_digest: str,
    anchor: Path | None = None,
    clock: Clock = now_ms,
) -> Genesis:
    """Write entry 0 into a ledger file that the migrations just made; the log's origin is the name of its key.

    `InputError` when the log has begun already.
    """
    refuse_network(path)
    genesis = Genesis.make(log_signer.vkey, trust_digest, clock())
    first = Prepared.of(genesis.sign(operator), genesis=True)
    with LedgerWriter(path, log_signer, anchor, clock) as writer:
        writer.begin_log(genesis, first)
    return genesis


def _first_of_each(batch: Sequence[Prepared], indices: Mapping[bytes, int]) -> list[Prepared]:
    """Those that are new to the ledger, each once."""
    unique: dict[bytes, Prepared] = {}
    for item in batch:
        if item.dedup not in indices:
            unique.setdefault(item.dedup, item)
    return list(unique.values())


def _receipts(batch: Sequence[Prepared], indices: Mapping[bytes, int], placed: Mapping[bytes, int]) -> Iterator[Receipt]:
    seen: set[bytes] = set()
    for item in batch:
        digest = Digest(DigestKind.PAYLOAD, item.payload_sha256.hex())
        index = indices.get(item.dedup)
        if index is None:
            yield Receipt(placed[item.dedup], digest, duplicate=item.dedup in seen)
            seen.add(item.dedup)
        else:
            yield Receipt(index, digest, duplicate=True)


def _begun(path: Path) -> InputError:
    return InputError(Code.LEDGER_SCHEMA, "this ledger has begun already", at=Location(str(path)), fix="open it, or choose another folder")


def _not_begun(path: Path) -> CannotTellError:
    message = "this ledger has no first entry; making it was interrupted"
    return CannotTellError(Code.INCOMPLETE, message, at=Location(str(path)), fix="remove the file and run `countermark init` again")


def _unknown_outcome(path: Path) -> CannotTellError:
    message = "COMMIT failed, and whether the entries are in the ledger is not known"
    return CannotTellError(Code.INCOMPLETE, message, at=Location(str(path)), fix="check the disk, then run the same command again")
