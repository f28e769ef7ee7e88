"""Checks of each entry of an export: its leaf, its place, its payload, its signatures, and whether it is a notice."""

from collections import defaultdict
from hashlib import sha256
from pathlib import Path

from countermark.attestations.codes import Code, Severity
from countermark.attestations.errors import InputError
from countermark.ledger.audit_report import Findings
from countermark.ledger.audit_signatures import SignatureAudit
from countermark.ledger.derive import derive, withheld
from countermark.ledger.export_files import payload_path, read_export_file
from countermark.ledger.genesis import Genesis
from countermark.ledger.incarnation import told_of
from countermark.ledger.leaf import NO_HASH, EntryKind, Leaf
from countermark.ledger.note import VerifierKey
from countermark.ledger.read import Entry
from countermark.ledger.submission import GENESIS_TYPE

MAX_PAYLOAD_BYTES = 1 << 30


class EntryCheck:
    """Takes the leaves of an export in order. `files` are the payload files that they name; `signed_by` says which entries a key signed,
    by the 32 bytes of its fingerprint."""

    def __init__(self, folder: Path, findings: Findings, log_key: VerifierKey, *, hash_only: bool) -> None:
        self._folder = folder
        self._findings = findings
        self._log_key = log_key
        self._hash_only = hash_only
        self._admitted_ms = 0
        self._last_notice: bytes | None = NO_HASH
        self._dedups: set[bytes] = set()
        self._missing: dict[bytes, list[int]] = {}
        self._erased: set[bytes] = set()
        self._unread: set[int] = set()
        self.files: set[str] = set()
        self.key_events: list[Entry] = []
        self.signed_by: defaultdict[bytes, list[int]] = defaultdict(list)
        self.evaluated = 0
        self.withheld = 0
        self.notices = 0

    def take(self, index: int, encoded: bytes, hashed: bytes, signatures: SignatureAudit | None) -> None:
        """Check one entry."""
        if self._hash_only and index:
            self.evaluated += 1
            return
        try:
            leaf = Leaf.decode(encoded)
        except InputError as error:
            self._findings.error(error, "leaf", "", entry=index)
            return
        self._check_order(index, leaf, hashed)
        payload = self._blob(index, leaf.payload_sha256) if index == 0 or not self._hash_only else None
        if index == 0 and payload is not None:
            self._check_genesis(payload)
        if self._hash_only:
            self.evaluated += 1
            return
        bundle = self._blob(index, leaf.bundle_sha256) if leaf.bundle_sha256 != NO_HASH else None
        if payload is None:
            self._unread.add(index)
            return
        self._check_payload(index, leaf, payload)
        for signature in leaf.signatures:
            self.signed_by[signature.key_sha256].append(index)
        if leaf.kind is EntryKind.KEY_EVENT:
            self.key_events.append(Entry(index, leaf, hashed, payload))
        if signatures:
            signatures.add(index, leaf, payload, bundle)
        self.evaluated += 1

    def skip(self) -> None:
        """Go on after entries that are not here, so that the next one cannot be held to the notice before it."""
        self._last_notice = None

    def finish(self) -> None:
        """Tell which payloads are not here."""
        for digest, entries in self._missing.items():
            if digest in self._erased:
                self.withheld += len(self._unread.intersection(entries))
                for entry in entries:
                    self._findings.add(Code.WITHHELD, "payload", "the payload was withheld", entry=entry, severity=Severity.INFO)
            else:
                self._findings.extend(Code.INCOMPLETE, "payload", "the payload or bundle is missing", entries)

    def _check_order(self, index: int, leaf: Leaf, hashed: bytes) -> None:
        if leaf.admitted_ms < self._admitted_ms:
            self._findings.add(Code.CLOCK, "clock", "the entry was admitted before its predecessor", entry=index)
        self._admitted_ms = leaf.admitted_ms
        if self._last_notice is not None and leaf.prev_notice != self._last_notice:
            self._see(index, "notices", "the leaf does not name the newest notice before it")
        self._last_notice = hashed if leaf.notice else leaf.prev_notice
        self.notices += leaf.notice
        if leaf.dedup in self._dedups:
            self._findings.add(Code.DUPLICATE, "duplicates", "the entry repeats an earlier one", entry=index)
        self._dedups.add(leaf.dedup)

    def _check_genesis(self, payload: bytes) -> None:
        """Entry 0 says what this log is, with the key that the auditor brought along."""
        try:
            genesis = Genesis.parse(payload)
        except InputError as error:
            self._see(0, "genesis", f"entry 0 does not say what this log is: {error.message}")
            return
        if (genesis.origin, genesis.log_vkey) != (self._log_key.name, str(self._log_key)):
            self._see(0, "genesis", "entry 0 names another log or key")

    def _check_payload(self, index: int, leaf: Leaf, payload: bytes) -> None:
        if len(payload) != leaf.payload_len:
            self._see(index, "payload", "the size of the payload is not what was admitted")
        derived = derive(leaf.kind, leaf.payload_type, payload)
        if derived.unreadable:
            self._findings.add(Code.MALFORMED, "payload", f"it was signed as a statement: {derived.unreadable}", entry=index)
        if derived.notice != leaf.notice:
            self._see(index, "notices", "the notice flag is not what the payload calls for")
        if (leaf.kind is EntryKind.POLICY and leaf.payload_type == GENESIS_TYPE) != (index == 0):
            self._see(index, "genesis", "entry 0, and no other, is the genesis")
        if leaf.kind is EntryKind.INCARNATION:
            self._findings.add(Code.ROLLBACK, "incarnation", told_of(payload), entry=index)
        named = withheld(leaf.kind, payload)
        if named:
            self._erased.add(named)

    def _blob(self, index: int, digest: bytes) -> bytes | None:
        """The bytes that a leaf names; none when they are not here, or are others."""
        name = payload_path(digest)
        self.files.add(name)
        try:
            data = read_export_file(self._folder, name, MAX_PAYLOAD_BYTES)
        except InputError as error:
            self._findings.error(error, "payload", f"{name}: ", entry=index)
            return None
        if data is None:
            self._missing.setdefault(digest, []).append(index)
            return None
        if sha256(data).digest() != digest:
            self._see(index, "payload", "the payload or bundle is not what was signed")
            return None
        return data

    def _see(self, index: int, checker: str, observed: str) -> None:
        self._findings.add(Code.TAMPERED, checker, observed, entry=index)
