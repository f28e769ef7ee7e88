"""Checks of each entry: its leaf, its columns, its payload, its signatures, and everything that was derived from it.

Nothing stored is taken for granted: hashes are computed again from the leaf bytes, the derived rows again from the payload bytes. A
portion of entries comes with all that is stored for them, so that it can be checked in another process, which reads no database.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple, Self, TypeAlias

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError
from countermark.attestations.keys import PublicKey
from countermark.ledger.audit_report import Findings
from countermark.ledger.audit_rows import EntryTables, StoredRows
from countermark.ledger.audit_signatures import BundleKey, SignatureAudit
from countermark.ledger.chains import EMPTY, extend_rows
from countermark.ledger.derive import derive, withheld
from countermark.ledger.incarnation import told_of
from countermark.ledger.leaf import NO_HASH, EntryKind, Leaf
from countermark.ledger.merkle import leaf_hash
from countermark.ledger.prepare import derived_rows
from countermark.ledger.read import Entry
from countermark.ledger.schema import DERIVED
from countermark.ledger.snapshot import Snapshot
from countermark.ledger.submission import GENESIS_TYPE

Blobs: TypeAlias = Mapping[bytes, tuple[Any, Any]]
"""Size and bytes of what is stored by digest."""

_SIGNATURES = DERIVED.index("signature")


class Stored(NamedTuple):
    """One row of `entry`, and the payload that its column names."""

    idx: int
    leaf: bytes
    leaf_hash: Any
    dedup: Any
    payload_sha256: Any
    kind: Any
    admitted_ms: Any
    size: Any
    data: Any


@dataclass(frozen=True, slots=True)
class Portion:
    """Neighbouring entries, and what is stored for them.

    `rows` are their derived rows and those of `earlier`, the indices before them in the same tile of the index; none where those rows
    are not read. `blobs` are the size and the bytes, by digest, of what leaves name and the join of the entries does not bring.
    """

    entries: list[Stored]
    rows: StoredRows | None
    earlier: tuple[int, ...]
    blobs: dict[bytes, tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class Scope:
    """What is checked of entries: their contents from `since` on, their signatures by `keys` if there is somebody to check them, and
    what follows from their payloads; without `derived` the rows are held to their hash alone."""

    since: int
    keys: Mapping[bytes, PublicKey]
    bundle_key: BundleKey | None
    signatures: bool
    derived: bool


@dataclass(slots=True)
class PortionAudit:
    """The checks of one portion, and what the checks of all the ledger need from it.

    `unreadable` are the entries whose leaf is none, `unread` those whose payload is not there; `digest` is over the derived rows of the
    tile so far.
    """

    since: int = 0
    derived: bool = True
    findings: Findings = field(default_factory=Findings)
    of_signatures: Findings = field(default_factory=Findings)
    evaluated: int = 0
    hashes: list[bytes] = field(default_factory=list)
    unreadable: set[int] = field(default_factory=set)
    missing: dict[bytes, list[int]] = field(default_factory=dict)
    withheld: set[bytes] = field(default_factory=set)
    bundles: set[bytes] = field(default_factory=set)
    genesis: bytes | None = None
    unread: set[int] = field(default_factory=set)
    key_events: list[Entry] = field(default_factory=list)
    digest: bytes | None = None

    @classmethod
    def of(cls, portion: Portion, scope: Scope) -> Self:
        """Check every entry of a portion. The result does not keep the scope, whose keys need not be able to travel once they were used."""
        audit = cls(scope.since, scope.derived)
        signatures = SignatureAudit(audit.of_signatures, scope.keys, scope.bundle_key, 1) if scope.signatures else None
        audit._run(portion, signatures)
        return audit

    def _run(self, portion: Portion, signatures: SignatureAudit | None) -> None:
        rows = self._rows(portion)
        for stored in portion.entries:
            self._entry(stored, rows.get(stored.idx, ()), portion.blobs, signatures)
        if signatures:
            signatures.finish()

    def _rows(self, portion: Portion) -> Mapping[int, EntryTables]:
        """The derived rows of each entry; their hash is worked out along the way."""
        if portion.rows is None:
            return {}
        rows = portion.rows.by_entry((*portion.earlier, *(stored.idx for stored in portion.entries)), self.findings)
        self.digest = EMPTY
        for of_entry in rows.values():
            self.digest = extend_rows(self.digest, of_entry)
        return rows

    def _entry(self, stored: Stored, rows: EntryTables, blobs: Blobs, signatures: SignatureAudit | None) -> None:
        hashed = leaf_hash(stored.leaf)
        self.hashes.append(hashed)
        self._see(stored, hashed == stored.leaf_hash, "leaf", "the leaf does not hash to its leaf hash")
        leaf = self._decode(stored)
        if leaf is None:
            return
        self._check_columns(stored, leaf)
        if leaf.bundle_sha256 != NO_HASH:
            self.bundles.add(leaf.bundle_sha256)
        if stored.idx >= self.since or stored.idx == 0 or leaf.kind is EntryKind.KEY_EVENT:
            self._content(stored, leaf, rows, blobs, signatures)

    def _content(self, stored: Stored, leaf: Leaf, rows: EntryTables, blobs: Blobs, signatures: SignatureAudit | None) -> None:
        """What the leaf stands for. The payloads of entry 0, which says what this log is, and of key events are read in any case."""
        payload = self._check_payload(stored, leaf, blobs)
        if payload is not None:
            self._check_genesis(stored, leaf, payload)
            if leaf.kind is EntryKind.KEY_EVENT:
                self.key_events.append(Entry(stored.idx, leaf, leaf_hash(stored.leaf), payload))
        if stored.idx < self.since:
            return
        bundle = self._check_bundle(stored, leaf, blobs)
        if payload is None:
            return
        if erased := withheld(leaf.kind, payload):
            self.withheld.add(erased)
        if self.derived:
            self._check_derived(stored, leaf, payload, rows)
        if leaf.kind is EntryKind.INCARNATION:
            self.findings.add(Code.ROLLBACK, "incarnation", told_of(payload), entry=stored.idx)
        if signatures:
            signatures.add(stored.idx, leaf, payload, bundle)
        self.evaluated += 1

    def _see(self, stored: Stored, good: bool, checker: str, observed: str) -> None:
        if not good:
            self.findings.add(Code.TAMPERED, checker, observed, entry=stored.idx)

    def _decode(self, stored: Stored) -> Leaf | None:
        try:
            return Leaf.decode(stored.leaf)
        except InputError as error:
            self.findings.add(error.code, "leaf", error.message, entry=stored.idx)
            self.unreadable.add(stored.idx)
            return None

    def _check_columns(self, stored: Stored, leaf: Leaf) -> None:
        """The columns repeat the leaf."""
        for name, value in (
            ("dedup", leaf.dedup),
            ("payload_sha256", leaf.payload_sha256),
            ("kind", int(leaf.kind)),
            ("admitted_ms", leaf.admitted_ms),
        ):
            self._see(stored, getattr(stored, name) == value, "columns", f"column {name} is not what the leaf says")

    def _check_payload(self, stored: Stored, leaf: Leaf, blobs: Blobs) -> bytes | None:
        """The payload is there and is what the leaf names; none when there is nothing to derive from."""
        size, data = stored.size, stored.data
        if stored.payload_sha256 != leaf.payload_sha256:
            size, data = blobs.get(leaf.payload_sha256, (None, None))
        if data is None:
            self.unread.update({stored.idx} if stored.idx >= self.since else ())
            self.missing.setdefault(leaf.payload_sha256, []).append(stored.idx)
            return None
        if not isinstance(data, bytes) or sha256(data).digest() != leaf.payload_sha256:
            self._see(stored, False, "payload", "the payload is not what was signed")
            return None
        self._see(stored, size == len(data) == leaf.payload_len, "payload", "the size of the payload is not what was admitted")
        return data

    def _check_bundle(self, stored: Stored, leaf: Leaf, blobs: Blobs) -> bytes | None:
        if leaf.bundle_sha256 == NO_HASH:
            return None
        size, data = blobs.get(leaf.bundle_sha256, (None, None))
        if data is None:
            self.missing.setdefault(leaf.bundle_sha256, []).append(stored.idx)
            return None
        good = isinstance(data, bytes) and sha256(data).digest() == leaf.bundle_sha256 and size == len(data)
        self._see(stored, good, "bundle", "the sigstore bundle is not the one that was admitted")
        return data if good else None

    def _check_genesis(self, stored: Stored, leaf: Leaf, payload: bytes) -> None:
        genesis = (leaf.kind, leaf.payload_type) == (EntryKind.POLICY, GENESIS_TYPE)
        self._see(stored, genesis == (stored.idx == 0), "genesis", "entry 0, and no other, is the genesis")
        if genesis and stored.idx == 0:
            self.genesis = payload

    def _check_derived(self, stored: Stored, leaf: Leaf, payload: bytes, rows: EntryTables) -> None:
        """The derived rows and the notice flag follow from the payload."""
        derived = derive(leaf.kind, leaf.payload_type, payload)
        if derived.unreadable:
            self.findings.add(Code.MALFORMED, "payload", f"it was signed as a statement: {derived.unreadable}", entry=stored.idx)
        self._see(stored, derived.notice == leaf.notice, "notices", "the notice flag is not what the payload calls for")
        for table, wanted, found in zip(DERIVED, derived_rows(derived, leaf.signatures), rows, strict=True):
            same = found[: len(wanted)] == wanted if table == "signature" else found == wanted
            self._see(stored, same, "derived", f"the rows of table {table} are not what the payload calls for")
        beyond = rows[_SIGNATURES][len(leaf.signatures) :]
        self._see(stored, all(row[-1] != str(Code.OK) for row in beyond), "derived", "a signature that is not in the leaf is called OK")


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
