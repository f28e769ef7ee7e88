"""Checks of each entry: its leaf, its columns, its payload, its signatures, and everything that was derived from it.

One pass in index order over the stored rows. Nothing stored is taken for granted: hashes are computed again from the leaf bytes, the
derived rows again from the payload bytes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from countermark.attestations.codes import Code, Severity
from countermark.attestations.errors import InputError
from countermark.ledger.audit_report import Findings
from countermark.ledger.audit_rows import DerivedRows
from countermark.ledger.audit_signatures import SignatureAudit
from countermark.ledger.derive import derive, withheld
from countermark.ledger.incarnation import told_of
from countermark.ledger.leaf import NO_HASH, EntryKind, Leaf
from countermark.ledger.merkle import leaf_hash
from countermark.ledger.prepare import derived_rows
from countermark.ledger.read import Entry
from countermark.ledger.snapshot import Snapshot
from countermark.ledger.submission import GENESIS_TYPE

_ENTRIES: Final = (
    "SELECT e.idx, e.leaf, e.leaf_hash, e.dedup, e.payload_sha256, e.kind, e.admitted_ms, p.size, p.data "
    "FROM entry AS e LEFT JOIN payload AS p ON p.sha256 = e.payload_sha256 AND (e.idx >= ? OR e.idx = 0 OR e.kind = 2) ORDER BY e.idx"
)
_PAYLOAD: Final = "SELECT size, data FROM payload WHERE sha256 = ?"


@dataclass(frozen=True, slots=True)
class _Stored:
    """One row of `entry`, and the payload that its column names."""

    index: int
    leaf: bytes
    leaf_hash: Any
    dedup: Any
    payload_sha256: Any
    kind: Any
    admitted_ms: Any
    size: Any
    data: Any


@dataclass(slots=True)
class EntryAudit:
    """The pass over the entries, and what later checks need from it.

    Of the entries before `since` only the leaf is read: the tree, the times and the chain of notices are those of all entries.
    """

    ledger: Snapshot
    findings: Findings
    since: int = 0
    evaluated: int = 0
    notices: int = 0
    admitted_ms: int = 0
    hashes: list[bytes] = field(default_factory=list)
    missing: dict[bytes, list[int]] = field(default_factory=dict)
    withheld: set[bytes] = field(default_factory=set)
    bundles: set[bytes] = field(default_factory=set)
    last_notice: bytes = NO_HASH
    genesis: bytes | None = None
    unread: set[int] = field(default_factory=set)
    erased: int = 0
    key_events: list[Entry] = field(default_factory=list)
    complete: bool = False

    def run(self, signatures: SignatureAudit | None, progress: Callable[[int], None]) -> None:
        """Check every entry, with its signatures if there is somebody to check them; `progress` is told how many are done."""
        rows = DerivedRows(self.ledger, self.findings, self.since)
        expected = 0
        for stored in self._stored():
            self.findings.extend(Code.TAMPERED, "contiguity", "the entry is missing", range(expected, min(stored.index, expected + 1000)))
            if stored.index < expected:
                self.findings.add(Code.TAMPERED, "contiguity", "the entry stands outside the log", entry=stored.index)
                continue
            expected = stored.index + 1
            self._entry(stored, rows, signatures)
            progress(expected)
        rows.finish()
        if signatures:
            signatures.finish()
        self._report_missing()
        self.complete = True

    def _stored(self) -> Iterator[_Stored]:
        for row in self.ledger.stream(_ENTRIES, self.since):
            if not isinstance(row[0], int) or not isinstance(row[1], bytes):
                self.findings.add(Code.TAMPERED, "types", f"an entry has the key {row[0]!r} and a leaf that is {type(row[1]).__name__}")
                continue
            yield _Stored(*row)

    def _entry(self, stored: _Stored, rows: DerivedRows, signatures: SignatureAudit | None) -> None:
        found_rows = rows.take(stored.index)
        hashed = leaf_hash(stored.leaf)
        self.hashes.append(hashed)
        self._see(stored, hashed == stored.leaf_hash, "leaf", "the leaf does not hash to its leaf hash")
        leaf = self._decode(stored)
        if leaf is None:
            return
        self._check_columns(stored, leaf)
        self._check_order(stored, leaf, hashed)
        if leaf.bundle_sha256 != NO_HASH:
            self.bundles.add(leaf.bundle_sha256)
        if stored.index >= self.since or stored.index == 0 or leaf.kind is EntryKind.KEY_EVENT:
            self._content(stored, leaf, found_rows, signatures)

    def _content(self, stored: _Stored, leaf: Leaf, rows: "tuple[list[Any], ...]", signatures: SignatureAudit | None) -> None:
        """What the leaf stands for. The payloads of entry 0, which says what this log is, and of key events are read in any case."""
        payload = self._check_payload(stored, leaf)
        if payload is not None:
            self._check_genesis(stored, leaf, payload)
            if leaf.kind is EntryKind.KEY_EVENT:
                self.key_events.append(Entry(stored.index, leaf, leaf_hash(stored.leaf), payload))
        if stored.index < self.since:
            return
        bundle = self._check_bundle(stored, leaf)
        if payload is None:
            return
        self._check_derived(stored, leaf, payload, rows)
        if leaf.kind is EntryKind.INCARNATION:
            self.findings.add(Code.ROLLBACK, "incarnation", told_of(payload), entry=stored.index)
        if signatures:
            signatures.add(stored.index, leaf, payload, bundle)
        self.evaluated += 1

    def _see(self, stored: _Stored, good: bool, checker: str, observed: str) -> None:
        if not good:
            self.findings.add(Code.TAMPERED, checker, observed, entry=stored.index)

    def _decode(self, stored: _Stored) -> Leaf | None:
        try:
            return Leaf.decode(stored.leaf)
        except InputError as error:
            self.findings.add(error.code, "leaf", error.message, entry=stored.index)
            return None

    def _check_columns(self, stored: _Stored, leaf: Leaf) -> None:
        """The columns repeat the leaf."""
        for name, value in (
            ("dedup", leaf.dedup),
            ("payload_sha256", leaf.payload_sha256),
            ("kind", int(leaf.kind)),
            ("admitted_ms", leaf.admitted_ms),
        ):
            self._see(stored, getattr(stored, name) == value, "columns", f"column {name} is not what the leaf says")

    def _check_order(self, stored: _Stored, leaf: Leaf, hashed: bytes) -> None:
        """Time does not run backwards, and each leaf names the newest notice before it."""
        if leaf.admitted_ms < self.admitted_ms:
            self.findings.add(Code.CLOCK, "clock", "the entry was admitted before its predecessor", entry=stored.index)
        self.admitted_ms = leaf.admitted_ms
        self._see(stored, leaf.prev_notice == self.last_notice, "notices", "the leaf does not name the newest notice before it")
        if leaf.notice:
            self.last_notice = hashed
            self.notices += 1

    def _check_payload(self, stored: _Stored, leaf: Leaf) -> bytes | None:
        """The payload is there and is what the leaf names; none when there is nothing to derive from."""
        size, data = stored.size, stored.data
        if stored.payload_sha256 != leaf.payload_sha256:
            size, data = self.ledger.row(_PAYLOAD, leaf.payload_sha256) or (None, None)
        if data is None:
            self.unread.update({stored.index} if stored.index >= self.since else ())
            self.missing.setdefault(leaf.payload_sha256, []).append(stored.index)
            return None
        if not isinstance(data, bytes) or sha256(data).digest() != leaf.payload_sha256:
            self._see(stored, False, "payload", "the payload is not what was signed")
            return None
        self._see(stored, size == len(data) == leaf.payload_len, "payload", "the size of the payload is not what was admitted")
        return data

    def _check_bundle(self, stored: _Stored, leaf: Leaf) -> bytes | None:
        if leaf.bundle_sha256 == NO_HASH:
            return None
        size, data = self.ledger.row(_PAYLOAD, leaf.bundle_sha256) or (None, None)
        if data is None:
            self.missing.setdefault(leaf.bundle_sha256, []).append(stored.index)
            return None
        good = isinstance(data, bytes) and sha256(data).digest() == leaf.bundle_sha256 and size == len(data)
        self._see(stored, good, "bundle", "the sigstore bundle is not the one that was admitted")
        return data if good else None

    def _check_genesis(self, stored: _Stored, leaf: Leaf, payload: bytes) -> None:
        genesis = (leaf.kind, leaf.payload_type) == (EntryKind.POLICY, GENESIS_TYPE)
        self._see(stored, genesis == (stored.index == 0), "genesis", "entry 0, and no other, is the genesis")
        if genesis and stored.index == 0:
            self.genesis = payload

    def _check_derived(self, stored: _Stored, leaf: Leaf, payload: bytes, rows: "tuple[list[Any], ...]") -> None:
        """The derived rows and the notice flag follow from the payload."""
        derived = derive(leaf.kind, leaf.payload_type, payload)
        if derived.unreadable:
            self.findings.add(Code.MALFORMED, "payload", f"it was signed as a statement: {derived.unreadable}", entry=stored.index)
        self._see(stored, derived.notice == leaf.notice, "notices", "the notice flag is not what the payload calls for")
        erased = withheld(leaf.kind, payload)
        if erased:
            self.withheld.add(erased)
        for table, wanted, found in zip(DerivedRows.TABLES, derived_rows(derived, leaf.signatures), rows, strict=True):
            same = found[: len(wanted)] == wanted if table == "signature" else found == wanted
            self._see(stored, same, "derived", f"the rows of table {table} are not what the payload calls for")
        beyond = rows[DerivedRows.TABLES.index("signature")][len(leaf.signatures) :]
        self._see(stored, all(row[-1] != str(Code.OK) for row in beyond), "derived", "a signature that is not in the leaf is called OK")

    def _report_missing(self) -> None:
        for digest, entries in self.missing.items():
            if digest in self.withheld:
                self.erased += len(self.unread.intersection(entries))
                for entry in entries:
                    self.findings.add(Code.WITHHELD, "payload", "the payload was withheld", entry=entry, severity=Severity.INFO)
            else:
                self.findings.extend(Code.INCOMPLETE, "payload", "the payload or bundle is missing", entries)


def check_payloads(ledger: Snapshot, findings: Findings, bundles: set[bytes]) -> None:
    """No payload lies in the ledger that no entry names."""
    orphans = ledger.rows("SELECT p.sha256 FROM payload AS p WHERE NOT EXISTS (SELECT 1 FROM entry AS e WHERE e.payload_sha256 = p.sha256)")
    for (digest,) in orphans:
        if digest not in bundles:
            name = digest.hex() if isinstance(digest, bytes) else repr(digest)
            findings.add(Code.TAMPERED, "payload", f"no entry names the payload {name}")


def check_duplicates(ledger: Snapshot, findings: Findings) -> None:
    """No statement was admitted twice by the same signers."""
    later = ledger.rows(
        "SELECT idx FROM (SELECT idx, row_number() OVER (PARTITION BY dedup ORDER BY idx) AS time FROM entry) WHERE time > 1"
    )
    entries = [index for (index,) in later if isinstance(index, int)]
    findings.extend(Code.DUPLICATE, "duplicates", "the entry repeats an earlier one", entries)
