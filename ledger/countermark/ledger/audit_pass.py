"""The pass over all entries in the order of the log: what no portion can tell alone.

Entries are read in portions with everything that is stored for them, each portion is checked by itself, here or in another process, and
what comes of it is put together in the order of the log. So what is found does not depend on how many processes there are.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from countermark.attestations.codes import Code, Severity
from countermark.ledger.audit_entries import Portion, PortionAudit, Scope, Stored
from countermark.ledger.audit_report import Findings
from countermark.ledger.audit_rows import DerivedRows
from countermark.ledger.audit_workers import audit_portions
from countermark.ledger.chains import tile_of
from countermark.ledger.leaf import NO_HASH, Links, blobs_named, links_of
from countermark.ledger.read import Entry
from countermark.ledger.snapshot import Snapshot

_ENTRIES: Final = (
    "SELECT e.idx, e.leaf, e.leaf_hash, e.dedup, e.payload_sha256, e.kind, e.admitted_ms, p.size, p.data "
    "FROM entry AS e LEFT JOIN payload AS p ON p.sha256 = e.payload_sha256 AND (e.idx >= ? OR e.idx = 0 OR e.kind = 2) ORDER BY e.idx"
)
_PAYLOAD: Final = "SELECT size, data FROM payload WHERE sha256 = ?"
_PORTION_BYTES: Final = 4 << 20


@dataclass(slots=True)
class EntryAudit:
    """The pass over the entries, and what later checks need from it.

    Of the entries before `scope.since` only the leaf is read: the tree, the times and the chain of notices are those of all entries.
    """

    ledger: Snapshot
    findings: Findings
    scope: Scope
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

    def run(self, workers: int, progress: Callable[[int], None]) -> None:
        """Check every entry, in as many processes; `progress` is told how many are done."""
        rows = DerivedRows(self.ledger, self.findings, self.scope.since)
        of_signatures = Findings()
        for portion, audited in audit_portions(self._portions(rows), self.scope, workers):
            self._take(portion, audited)
            of_signatures.merge(audited.of_signatures)
            if audited.digest is not None:
                rows.cover(tile_of(portion.entries[0].idx), audited.digest, portion.entries[-1].idx)
            progress(portion.entries[-1].idx + 1)
        rows.finish()
        self.findings.merge(of_signatures)
        self._report_missing()
        self.complete = True

    def _portions(self, rows: DerivedRows) -> Iterator[Portion]:
        """Portions that end with a tile of the index, or at a size: one payload may have megabytes."""
        before: Portion | None = None
        for part in self._parts():
            first, last = part.entries[0].idx, part.entries[-1].idx
            found = rows.until(first, last)
            if before and found and before.rows and tile_of(before.entries[0].idx) == tile_of(first):
                earlier = (*before.earlier, *(stored.idx for stored in before.entries))
                before = replace(part, rows=before.rows.and_then(found), earlier=earlier)
            else:
                before = replace(part, rows=found)
            yield before

    def _parts(self) -> Iterator[Portion]:
        part, size = Portion([], None, (), {}), 0
        for stored in self._contiguous():
            if part.entries and (size >= _PORTION_BYTES or tile_of(stored.idx) != tile_of(part.entries[0].idx)):
                yield part
                part, size = Portion([], None, (), {}), 0
            part.entries.append(stored)
            size += len(stored.data) if isinstance(stored.data, bytes) else 0
            for digest in self._named_beside(stored):
                found = part.blobs[digest] = self.ledger.row(_PAYLOAD, digest) or (None, None)
                size += len(found[1]) if isinstance(found[1], bytes) else 0
        if part.entries:
            yield part

    def _named_beside(self, stored: Stored) -> Iterator[bytes]:
        """What the leaf names and the join does not bring: a bundle, and a payload that the column does not name."""
        payload, bundle = blobs_named(stored.leaf)
        if payload != stored.payload_sha256:
            yield payload
        if bundle != NO_HASH and stored.idx >= self.scope.since:
            yield bundle

    def _contiguous(self) -> Iterator[Stored]:
        expected = 0
        for row in self.ledger.stream(_ENTRIES, self.scope.since):
            if not isinstance(row[0], int) or not isinstance(row[1], bytes):
                self.findings.add(Code.TAMPERED, "types", f"an entry has the key {row[0]!r} and a leaf that is {type(row[1]).__name__}")
                continue
            stored = Stored._make(row)
            if stored.idx > expected:
                missing = range(expected, min(stored.idx, expected + 1000))
                self.findings.extend(Code.TAMPERED, "contiguity", "the entry is missing", missing)
            if stored.idx < expected:
                self.findings.add(Code.TAMPERED, "contiguity", "the entry stands outside the log", entry=stored.idx)
                continue
            expected = stored.idx + 1
            yield stored

    def _take(self, portion: Portion, audited: PortionAudit) -> None:
        self.findings.merge(audited.findings)
        for stored, hashed in zip(portion.entries, audited.hashes, strict=True):
            if stored.idx not in audited.unreadable:
                self._check_order(stored.idx, links_of(stored.leaf), hashed)
        self.hashes += audited.hashes
        self.evaluated += audited.evaluated
        for digest, entries in audited.missing.items():
            self.missing.setdefault(digest, []).extend(entries)
        self.withheld |= audited.withheld
        self.bundles |= audited.bundles
        self.unread |= audited.unread
        self.key_events += audited.key_events
        self.genesis = audited.genesis if self.genesis is None else self.genesis

    def _check_order(self, index: int, links: Links, hashed: bytes) -> None:
        """Time does not run backwards, and each leaf names the newest notice before it."""
        if links.admitted_ms < self.admitted_ms:
            self.findings.add(Code.CLOCK, "clock", "the entry was admitted before its predecessor", entry=index)
        self.admitted_ms = links.admitted_ms
        if links.prev_notice != self.last_notice:
            self.findings.add(Code.TAMPERED, "notices", "the leaf does not name the newest notice before it", entry=index)
        if links.notice:
            self.last_notice = hashed
            self.notices += 1

    def _report_missing(self) -> None:
        for digest, entries in self.missing.items():
            if digest in self.withheld:
                self.erased += len(self.unread.intersection(entries))
                for entry in entries:
                    self.findings.add(Code.WITHHELD, "payload", "the payload was withheld", entry=entry, severity=Severity.INFO)
            else:
                self.findings.extend(Code.INCOMPLETE, "payload", "the payload or bundle is missing", entries)
