"""Reading a ledger as something to be believed: only what leads, hash by hash, to a checkpoint that the log signed.

This is the gate's path, so it uses the standard library's sqlite3 and never imports SQLAlchemy. The database is not trusted: the head
counts by its note, an entry by its inclusion proof, a payload by its hash in the leaf, and notices by the chain of `prev_notice`. A
row that is missing can lose a yes; it can never lose a no.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Final, Self

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.envelope import Envelope, Signature, is_statement_type
from countermark.attestations.errors import CannotTellError, CountermarkError, InputError, Location, RefusedError
from countermark.attestations.statement import Statement
from countermark.ledger.anchor import Anchor, check_growth, default_path
from countermark.ledger.database import connect, sqlite_errors
from countermark.ledger.genesis import Genesis
from countermark.ledger.leaf import NO_HASH, EntryKind, Leaf
from countermark.ledger.merkle import check_inclusion, consistency_proof, inclusion_proof, leaf_hash, root_at
from countermark.ledger.note import Checkpoint, VerifierKey, open_checkpoint
from countermark.ledger.queries import Queries
from countermark.ledger.submission import GENESIS_TYPE

_NOTICE: Final = "SELECT e.idx, e.leaf, p.data FROM entry AS e LEFT JOIN payload AS p ON p.sha256 = e.payload_sha256 WHERE e.leaf_hash = ?"


@dataclass(frozen=True, slots=True)
class Head:
    """The newest checkpoint of the log, verified. `anchored` is the size that the anchor remembers, none without an anchor."""

    origin: str
    size: int
    root: bytes
    note: str
    admitted_ms: int
    anchored: int | None

    def to_json(self) -> dict[str, str | int]:
        """The head as reports show it."""
        return {"origin": self.origin, "size": self.size, "root": self.root.hex()}


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry whose leaf is proven to be in the log and whose payload is the one that the leaf names."""

    index: int
    leaf: Leaf
    leaf_hash: bytes
    payload: bytes

    @property
    def digest(self) -> Digest:
        """The content id of the payload."""
        return Digest(DigestKind.PAYLOAD, self.leaf.payload_sha256.hex())

    @property
    def envelope(self) -> Envelope:
        """The payload with the signatures that the leaf holds."""
        signatures = tuple(Signature(item.signature, item.key_sha256.hex()) for item in self.leaf.signatures)
        return Envelope(self.payload, self.leaf.payload_type, signatures, f"entry {self.index}")

    @property
    def is_statement(self) -> bool:
        """Whether it was signed as an in-toto Statement; what its bytes look like is another question."""
        return self.leaf.kind is EntryKind.ATTESTATION and is_statement_type(self.leaf.payload_type)

    @property
    def statement(self) -> Statement | None:
        """What was signed as an in-toto Statement; none for any other entry, whatever its bytes look like."""
        if not self.is_statement:
            return None
        try:
            return Statement.parse(self.payload, f"entry {self.index}")
        except InputError:
            return None


@dataclass(frozen=True, slots=True)
class InclusionProof:
    """That `leaf` is entry `index` of the tree whose checkpoint `note` signs."""

    index: int
    size: int
    leaf: bytes
    hashes: tuple[bytes, ...]
    note: str


class LedgerReader(Queries):
    """A verified snapshot of a ledger. Use it as a context manager."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        super().__init__(path, connection)
        self.genesis: Genesis
        self.head: Head

    @classmethod
    def open(cls, path: Path, log_key: VerifierKey | None = None, anchor: Path | None = None) -> Self:
        """Open a ledger and verify its head, its genesis and its anchor.

        `log_key` is the key that the caller believes is this log's; without it the log's own word, in entry 0, is taken. `anchor` is
        by default the file in the user's state directory. Raises `CannotTellError` (LEDGER_MISSING, LEDGER_SCHEMA, LEDGER_LOCKED,
        UNREADABLE, INCOMPLETE), `RefusedError` UNTRUSTED for another log's key, `TamperError`.
        """
        reader = cls(path, connect(path))
        try:
            reader._verify(log_key, anchor)
        except BaseException:
            reader.close()
            raise
        return reader

    def entry(self, index: int) -> Entry:
        """An entry, proven. `InputError` for no such index, `CannotTellError` INCOMPLETE without its payload, `TamperError`."""
        if not 0 <= index < self.head.size:
            fix = "name an entry that the log has"
            raise InputError(Code.UNKNOWN_NAME, f"the log has {self.head.size} entries, and no entry {index}", fix=fix)
        encoded, _ = self._leaf(index)
        hashed = leaf_hash(encoded)
        try:
            check_inclusion(index, self.head.size, hashed, self._path_of(index), self.head.root)
        except CountermarkError as error:
            raise self.tampered(f"entry {index} is not in the tree that the log signed: {error.message}") from None
        return self._with_payload(index, encoded, hashed)

    def notices(self) -> tuple[Entry, ...]:
        """Every notice of the log, oldest first, each by the hash in its successor. `TamperError` for a broken chain."""
        last = self.entry(self.head.size - 1)
        found = [last] if last.leaf.notice else []
        index, wanted = last.index, last.leaf.prev_notice
        while wanted != NO_HASH:
            notice = self._notice(wanted, before=index)
            found.append(notice)
            index, wanted = notice.index, notice.leaf.prev_notice
        return tuple(reversed(found))

    def payload(self, digest: bytes) -> bytes:
        """Stored bytes by their SHA-256. `CannotTellError` INCOMPLETE when they are not there, `TamperError` when they are others."""
        row = self.row("SELECT data FROM payload WHERE sha256 = ?", digest)
        if row is None:
            at = Location(str(self.path))
            raise CannotTellError(Code.INCOMPLETE, f"the payload {digest.hex()} is not here", at=at, fix="restore it from a backup")
        data = self._bytes(row[0], f"payload {digest.hex()}")
        if sha256(data).digest() != digest:
            raise self.tampered(f"the payload {digest.hex()} is not what was signed")
        return data

    def prove(self, index: int) -> InclusionProof:
        """The proof that an entry is in the log, checked before it is given."""
        entry = self.entry(index)
        return InclusionProof(index, self.head.size, entry.leaf.encode(), tuple(self._path_of(index)), self.head.note)

    def prove_growth(self, old_size: int) -> tuple[bytes, ...]:
        """The consistency proof from the tree at `old_size` to the head. `InputError` for a size beyond it."""
        if not 0 <= old_size <= self.head.size:
            raise InputError(Code.UNKNOWN_NAME, f"the log has {self.head.size} entries, not {old_size}", fix="name a size that it had")
        with self._damaged_tree():
            return tuple(consistency_proof(old_size, self.head.size, self._tree))

    def root_at(self, size: int) -> bytes:
        """The root that the stored tree had at `size`, which is not beyond the head."""
        with self._damaged_tree():
            return root_at(size, self._tree)

    def rewind(self, size: int) -> None:
        """Look at the log as it was at an earlier size: from here on `head`, entries and notices are those of that tree.

        The root of then is computed from a tree that leads to the signed head. `InputError` for a size that it never had.
        """
        if not 1 <= size <= self.head.size:
            raise InputError(Code.UNKNOWN_NAME, f"the log has {self.head.size} entries, not {size}", fix="name a size that it had")
        last = self.entry(size - 1)
        self.head = replace(self.head, size=size, root=self.root_at(size), admitted_ms=last.leaf.admitted_ms)

    def size_at(self, ms: int) -> int:
        """How many entries had been admitted at a time (milliseconds since 1970 UTC), each boundary proven; 0 before the log began."""
        row = self.row("SELECT count(*) FROM entry WHERE admitted_ms <= ?", ms)
        size = min(row[0] if row else 0, self.head.size)
        inside = size == 0 or self.entry(size - 1).leaf.admitted_ms <= ms
        if not inside or (size < self.head.size and self.entry(size).leaf.admitted_ms <= ms):
            raise self.tampered("the times of the entries are not those of their leaves")
        return size

    @contextmanager
    def _damaged_tree(self) -> Iterator[None]:
        try:
            yield
        except InputError as error:
            raise self.tampered(f"the stored tree is damaged: {error.message}") from None

    def _verify(self, log_key: VerifierKey | None, anchor: Path | None) -> None:
        # The anchor is written after COMMIT: read before the snapshot is taken, it can never be newer than an honest ledger.
        genesis = self._genesis()
        key = self._log_key(genesis, log_key)
        remembered = Anchor.read(anchor or default_path(genesis.origin))
        with sqlite_errors(self.path):
            self.begin()
        self.head = self._head(key, remembered)
        self._tree = self.tree(self.head.size)
        if Genesis.parse(self.entry(0).payload) != genesis:
            raise self.tampered("entry 0 changed while it was read")
        self.genesis = genesis
        if remembered:
            remembered.check_note(key)
            then = self.root_at(remembered.size) if remembered.size <= self.head.size else None
            check_growth(remembered, self.head.size, then)

    def _genesis(self) -> Genesis:
        if not self.row("SELECT 1 FROM entry") and not self.row("SELECT 1 FROM head"):
            fix = "remove the file and run `countermark init` again"
            raise CannotTellError(Code.INCOMPLETE, "this ledger has no first entry", at=Location(str(self.path)), fix=fix)
        encoded, hashed = self._leaf(0)
        first = self._with_payload(0, encoded, hashed)
        try:
            if (first.leaf.kind, first.leaf.payload_type) == (EntryKind.POLICY, GENESIS_TYPE):
                return Genesis.parse(first.payload)
        except InputError as error:
            raise self.tampered(f"entry 0 is no genesis: {error.message}") from None
        raise self.tampered("entry 0 is no genesis")

    def _log_key(self, genesis: Genesis, log_key: VerifierKey | None) -> VerifierKey:
        try:
            own = VerifierKey.parse(genesis.log_vkey)
        except InputError as error:
            raise self.tampered(f"entry 0 holds no log key: {error.message}") from None
        if log_key and log_key != own:
            message = f"the trust policy names {log_key} for this log, and the log says that its key is {own}"
            raise RefusedError(Code.UNTRUSTED, message, at=Location(str(self.path)), fix="find out which of the two is the log you mean")
        return own

    def _head(self, key: VerifierKey, remembered: Anchor | None) -> Head:
        row = self.row("SELECT size, root, note, admitted_ms FROM head WHERE id = 1")
        if row is None:
            raise self.tampered("the head is missing")
        size, root, note, admitted_ms = row
        try:
            agrees = open_checkpoint(note, key) == Checkpoint(key.name, size, root) and size > 0
        except (CountermarkError, TypeError) as error:
            raise self.tampered(f"the head's note does not verify: {error}") from None
        if not agrees:
            raise self.tampered("the head is not what its note says")
        if self.row("SELECT max(idx) + 1 FROM entry") != (size,):
            raise self.tampered("the head is older, or newer, than the entries")
        return Head(key.name, size, root, note, admitted_ms, remembered.size if remembered else None)

    def _path_of(self, index: int) -> list[bytes]:
        return inclusion_proof(index, self.head.size, self._tree)

    def _leaf(self, index: int) -> tuple[bytes, bytes]:
        """The stored leaf and its stored hash."""
        row = self.row("SELECT leaf, leaf_hash FROM entry WHERE idx = ?", index)
        if row is None:
            raise self.tampered(f"entry {index} is missing")
        return self._bytes(row[0], f"entry {index}"), self._bytes(row[1], f"entry {index}")

    def _notice(self, wanted: bytes, before: int) -> Entry:
        row = self.row(_NOTICE, wanted)
        if row is None:
            raise self.tampered(f"the chain of notices breaks before entry {before}: no entry has the leaf hash {wanted.hex()}")
        index, encoded, data = row
        if leaf_hash(self._bytes(encoded, f"entry {index}")) != wanted:
            raise self.tampered(f"entry {index}, a notice, is not what was admitted")
        notice = self._with_payload(index, encoded, wanted, data)
        if not notice.leaf.notice or not index < before:
            raise self.tampered(f"entry {index} stands in the chain of notices where it cannot be")
        return notice

    def _with_payload(self, index: int, encoded: bytes, hashed: bytes, found: object = None) -> Entry:
        """The entry of a leaf; `found` is what may be its payload, which counts only by its hash."""
        try:
            leaf = Leaf.decode(encoded)
        except InputError as error:
            raise self.tampered(f"entry {index} cannot be read: {error.message}") from None
        named = found if isinstance(found, bytes) and sha256(found).digest() == leaf.payload_sha256 else None
        data = self.payload(leaf.payload_sha256) if named is None else named
        if len(data) != leaf.payload_len:
            raise self.tampered(f"the payload of entry {index} has another length than was admitted")
        return Entry(index, leaf, hashed, data)

    def _bytes(self, value: object, what: str) -> bytes:
        if not isinstance(value, bytes):
            raise self.tampered(f"{what} is stored as {type(value).__name__}, not as bytes")
        return value
