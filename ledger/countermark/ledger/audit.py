"""The audit of a ledger: everything that is stored, held against everything that was signed.

Called in a fresh process, it trusts nothing but the keys it is given. It goes on after each finding, so that one does not hide another;
what cannot be read at all is a finding too. What an owner of the log key rewrote consistently shows only against a checkpoint that
somebody else holds: the anchor, or the notes in `held`.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from countermark.attestations.codes import Code, Severity
from countermark.attestations.errors import CountermarkError, InputError
from countermark.attestations.keys import PublicKey
from countermark.attestations.trust import TrustPolicy
from countermark.ledger import audit_tree as tree
from countermark.ledger.anchor import Anchor, default_path
from countermark.ledger.audit_entries import Scope, check_duplicates, check_payloads
from countermark.ledger.audit_keys import check_keys
from countermark.ledger.audit_pass import EntryAudit
from countermark.ledger.audit_report import AuditReport, Findings
from countermark.ledger.audit_schema import check_guards, check_indexes, check_schema, check_tables
from countermark.ledger.audit_signatures import BundleKey
from countermark.ledger.audit_witnesses import NOBODYS, check_cosignatures, check_witnesses
from countermark.ledger.database import connect
from countermark.ledger.freshness import Freshness
from countermark.ledger.genesis import Genesis
from countermark.ledger.merkle import EMPTY_ROOT
from countermark.ledger.note import Checkpoint, VerifierKey, open_checkpoint
from countermark.ledger.snapshot import Snapshot
from countermark.ledger.witness_policy import WitnessPolicy

Progress = Callable[[int, int], None]

NOBODY: Final[Mapping[str, str]] = MappingProxyType({})

_WORTH_PROCESSES: Final = 8192
"""Of fewer entries the processes would take longer to start than to check them."""


def audit(
    path: Path,
    keys: Mapping[bytes, PublicKey],
    log_vkey: VerifierKey | None = None,
    anchor: Path | None = None,
    progress: Progress | None = None,
    *,
    bundle_key: BundleKey | None = None,
    held: Mapping[str, str] = NOBODY,
    signatures: bool = True,
    derived: bool = True,
    since: int = 0,
    workers: int = 1,
    policy: TrustPolicy | None = None,
    witnesses: WitnessPolicy | None = None,
    fresh: Freshness | None = None,
    strict: bool = False,
) -> AuditReport:
    """Check a ledger from end to end.

    `keys` are the public keys that may sign entries, by the 32 bytes of their fingerprint; `bundle_key` reads and judges the certificate
    of a sigstore bundle. `log_vkey` is the key of the log, without which the log's own word is taken. `anchor` is a file, by default the
    one in the user's state directory. `policy` says whose key events count; without it none is judged. `held` are notes of this log that
    somebody keeps elsewhere, by who keeps them; `witnesses` says whose cosignatures count, and `fresh` how old the newest checkpoint
    may be; its age is not judged otherwise. Without `signatures` none is verified, and without `derived` the rows that follow from
    payloads are held to their hash, and not worked out again. `strict` makes warnings block. Of the entries before `since` the leaves alone
    are read, and the key events; of all of them the tree is built. A long ledger is checked in `workers` processes, to which
    `bundle_key` must be able to travel (`pickle`). `progress` is told how many entries of how many are done. Raises
    `CannotTellError` only when the ledger cannot be opened: LEDGER_MISSING, LEDGER_SCHEMA, LEDGER_LOCKED, UNREADABLE.
    """
    options = _Options(keys, log_vkey, anchor, progress, bundle_key, held, signatures, derived, since, workers, policy, witnesses, fresh)
    with Snapshot(path, connect(path)) as ledger:
        return _Audit(ledger, options, Findings(strict=strict)).run()


_SIGNED: Final = "SELECT DISTINCT idx FROM signature WHERE key_sha256 = ? AND outcome = 'OK' ORDER BY idx"


@dataclass(frozen=True, slots=True)
class _Options:
    keys: Mapping[bytes, PublicKey]
    log_key: VerifierKey | None
    anchor: Path | None
    progress: Progress | None
    bundle_key: BundleKey | None
    held: Mapping[str, str]
    signatures: bool
    derived: bool
    since: int
    workers: int
    policy: TrustPolicy | None
    witnesses: WitnessPolicy | None
    fresh: Freshness | None


@dataclass(slots=True)
class _Audit:
    ledger: Snapshot
    options: _Options
    findings: Findings
    holders: dict[str, int] = field(default_factory=dict)

    def run(self) -> AuditReport:
        anchor = self._anchor()
        self.ledger.begin()
        for check in (check_tables, check_schema, check_guards, check_indexes):
            with self._stage():
                check(self.ledger, self.findings)
        entries = self._entries()
        if self.options.policy and self.options.signatures:
            with self._stage():
                check_keys(self._signed_by, entries.key_events, self.options.policy, self.findings)
        key, genesis = self._genesis(entries)
        head: tree.HeadRow | None = None
        if key and entries.complete:
            head = self._tree(entries, key, anchor)
        for check in (check_duplicates, check_cosignatures):
            with self._stage():
                check(self.ledger, self.findings)
        return self._report(entries, head, genesis, anchor)

    @contextmanager
    def _stage(self, checker: str = "database") -> Iterator[None]:
        """One part of the audit; when the database fails in it, that is a finding and the other parts go on."""
        try:
            yield
        except CountermarkError as error:
            self.findings.error(error, checker, "")

    def _anchor(self) -> Anchor | None:
        """The anchor, read before the snapshot is taken: it is written after COMMIT, so it can never be ahead of an honest ledger."""
        path, found = self.options.anchor, None
        with self._stage():
            if path is None:
                row = self.ledger.row("SELECT origin FROM ledger")
                path = default_path(str(row[0])) if row else None
            found = Anchor.read(path) if path else None
            if found is None:
                observed = f"no anchor at {path}: an older copy of this ledger could not be told from the newest"
                self.findings.add(Code.INCOMPLETE, "anchor", observed, severity=Severity.INFO)
        return found

    def _entries(self) -> EntryAudit:
        options = self.options
        scope = Scope(options.since, options.keys, options.bundle_key, self._signatures(), options.derived)
        entries = EntryAudit(self.ledger, self.findings, scope)
        total = 0
        with self._stage():
            total = (self.ledger.row("SELECT count(*) FROM entry") or (0,))[0]
            workers = options.workers if total - options.since >= _WORTH_PROCESSES else 1
            entries.run(workers, lambda done: self._progress(done, total))
            check_payloads(self.ledger, self.findings, entries.bundles)
        self._progress(total, total)
        return entries

    def _signed_by(self, key: bytes) -> Iterator[int]:
        return (index for (index,) in self.ledger.rows(_SIGNED, key))

    def _signatures(self) -> bool:
        """Whether signatures are to be verified and there is somebody to verify them."""
        known = bool(self.options.keys or self.options.bundle_key)
        if self.options.signatures and not known:
            self.findings.add(Code.INCOMPLETE, "signatures", "no keys are given, so no signature was verified")
        return self.options.signatures and known

    def _progress(self, done: int, total: int) -> None:
        if self.options.progress:
            self.options.progress(done, total)

    def _genesis(self, entries: EntryAudit) -> tuple[VerifierKey | None, Genesis | None]:
        """Entry 0, the row that repeats it, and the log's key, which it names."""
        try:
            genesis = Genesis.parse(entries.genesis or b"")
            key = VerifierKey.parse(genesis.log_vkey)
        except InputError as error:
            self.findings.add(Code.TAMPERED, "genesis", f"entry 0 does not say what this log is: {error.message}", entry=0)
            return self.options.log_key, None
        with self._stage():
            rows = self.ledger.rows("SELECT id, origin, incarnation, leaf_version, created_ms, log_vkey, trust_digest FROM ledger")
            if rows != [genesis.row]:
                self.findings.add(Code.TAMPERED, "genesis", "table ledger does not repeat entry 0")
        if self.options.log_key and self.options.log_key != key:
            self.findings.add(Code.UNTRUSTED, "log-key", f"the log's key is {key}", required=str(self.options.log_key))
        return key, genesis

    def _tree(self, entries: EntryAudit, key: VerifierKey, anchor: Anchor | None) -> tree.HeadRow | None:
        head: tree.HeadRow | None = None
        notes = self._held(key)
        with self._stage():
            head = tree.read_head(self.ledger, self.findings)
        sizes: list[int] = []
        with self._stage():
            sizes = tree.checkpoint_sizes(self.ledger)
        held = [note.size for note in notes.values()]
        roots = tree.Roots(entries.hashes, [*sizes, *held, *([anchor.size] if anchor else [])])
        intact = head is not None and tree.check_head(head, roots, key, entries.admitted_ms, self.findings)
        with self._stage():
            tree.check_tiles(self.ledger, roots, self.findings)
        with self._stage():
            tree.check_checkpoints(self.ledger, head, roots, key, intact, self.findings)
        size = len(entries.hashes)
        if anchor and tree.check_anchor_note(anchor, key, self.findings):
            tree.check_growth_since(Checkpoint(key.name, anchor.size, anchor.root), size, roots, intact, self.findings, "anchor")
        for who, note in notes.items():
            if tree.check_growth_since(note, size, roots, intact, self.findings, "held"):
                self.holders[who] = note.size
        if intact:
            self._witnessed(key, roots, entries.admitted_ms)
        return head

    def _witnessed(self, key: VerifierKey, roots: tree.Roots, admitted_ms: int) -> None:
        """Who holds the newest checkpoint of the policy, and how old it is."""
        witnesses, cosigned = self.options.witnesses, NOBODYS
        with self._stage():
            if witnesses:
                cosigned = check_witnesses(self.ledger, key.name, roots, witnesses, self.findings)
        self.holders |= cosigned.holders
        if self.options.fresh:
            with self._stage("age"):
                self.options.fresh.check(witnesses, cosigned.found, admitted_ms)

    def _held(self, key: VerifierKey) -> dict[str, Checkpoint]:
        notes = {}
        for who, note in self.options.held.items():
            try:
                notes[who] = open_checkpoint(note, key)
            except CountermarkError as error:
                self.findings.error(error, "held", f"{who}: ")
        return notes

    def _report(self, entries: EntryAudit, head: tree.HeadRow | None, genesis: Genesis | None, anchor: Anchor | None) -> AuditReport:
        size = head.size if head and isinstance(head.size, int) else 0
        protected_to = max(self.holders.values(), default=None)
        return AuditReport(
            origin=genesis.origin if genesis else None,
            size=size,
            root=head.root if head and isinstance(head.root, bytes) else EMPTY_ROOT,
            evaluated=entries.evaluated,
            of=max(size - self.options.since, len(entries.hashes) - self.options.since, 0),
            notices=entries.notices,
            findings=self.findings.result(),
            anchored=anchor.size if anchor else None,
            protected_to=protected_to,
            held_by=tuple(sorted(who for who, size in self.holders.items() if size == protected_to)),
            left_out=tuple(self._left_out()),
            withheld=entries.erased,
        )

    def _left_out(self) -> Iterator[str]:
        if self.options.since:
            yield f"payloads, signatures and rows of entries before {self.options.since}"
        if not self.options.signatures:
            yield "signatures of entries"
        if not self.options.derived:
            yield "whether derived rows and notice flags follow from the payloads"
