"""The audit of a static export: what an outsider can check with nothing but the files and the key of the log.

Leaves are hashed, tiles and the root worked out from them, and each file of the export held against that. What the checkpoint covers
and is not there is INCOMPLETE, as after a torn publish; what is there and different is TAMPERED. No key is taken from the export.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from countermark.attestations.codes import Code, Severity
from countermark.attestations.errors import CountermarkError
from countermark.attestations.keys import PublicKey
from countermark.attestations.trust import TrustPolicy
from countermark.ledger.audit_keys import check_keys
from countermark.ledger.audit_report import AuditReport, Findings
from countermark.ledger.audit_signatures import BundleKey, SignatureAudit
from countermark.ledger.cosignature import Cosignature
from countermark.ledger.entry_bundle import MAX_BUNDLE_BYTES, decode_bundle
from countermark.ledger.export_entries import EntryCheck
from countermark.ledger.export_files import CHECKPOINT, SCHEMA, SCHEMA_TEXT, SCHEMA_TEXT_BARE, list_files, read_export_file
from countermark.ledger.freshness import Freshness, ahead_of
from countermark.ledger.leaf import Leaf
from countermark.ledger.merkle import EMPTY_ROOT, HASH_BYTES, leaf_hash
from countermark.ledger.note import Checkpoint, VerifierKey, check_signed
from countermark.ledger.right_edge import RightEdge, Tile, split_hashes
from countermark.ledger.signed_note import MAX_NOTE_BYTES, SignedNote
from countermark.ledger.tiles import TILE_BYTES, TILE_WIDTH, entries_path, tile_path
from countermark.ledger.witness_policy import WitnessPolicy

Progress = Callable[[int, int], None]

_WIDTH = re.compile(r"(?:[1-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])\Z")


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What an auditor brings along: the signers' keys by fingerprint, checkpoints by who holds them, a witness policy, what judges the
    certificate of a sigstore bundle, how old the checkpoint may be, whether warnings block, and the trust policy that says whose key events
    count; without it none is judged. With `hash_only` neither payloads nor
    signatures of entries are looked at."""

    keys: Mapping[bytes, PublicKey] = field(default_factory=dict)
    held: Mapping[str, str] = field(default_factory=dict)
    policy: WitnessPolicy | None = None
    hash_only: bool = False
    progress: Progress | None = None
    bundle_key: BundleKey | None = None
    workers: int = 1
    fresh: Freshness | None = None
    strict: bool = False
    trust: TrustPolicy | None = None


def _width(count: int) -> int | None:
    return None if count == TILE_WIDTH else count


def _is_partial(name: str) -> bool:
    return ".p/" in name


def audit_export(folder: Path, log_key: VerifierKey, options: ExportOptions) -> AuditReport:
    """Check an export from end to end; everything that is wrong is a finding of the report."""
    return _ExportAudit(folder, log_key, options).run()


class _ExportAudit:
    def __init__(self, folder: Path, log_key: VerifierKey, options: ExportOptions) -> None:
        self._folder = folder
        self._key = log_key
        self._options = options
        self._findings = Findings(strict=options.strict)
        self._edge = RightEdge()
        self._whole = True
        self._roots: dict[int, bytes] = {0: EMPTY_ROOT}
        self._checked: set[str] = {SCHEMA, CHECKPOINT}
        self._current: dict[str, str] = {}
        self._wanted: set[int] = set()
        self._cosigned: tuple[Cosignature, ...] = ()
        self._newest = b""
        self._holders: dict[str, int] = {}

    def run(self) -> AuditReport:
        self._check_schema()
        head = self._head()
        if head is None:
            return self._report(None, None)
        entries = EntryCheck(self._folder, self._findings, self._key, hash_only=self._options.hash_only)
        held = dict(self._held())
        self._wanted = {note.size for note in held.values()} | {head.size}
        with self._signatures() as signatures:
            self._read_entries(entries, head.size, signatures)
        if self._options.trust:
            check_keys(lambda key: entries.signed_by[key], entries.key_events, self._options.trust, self._findings)
        intact = self._check_root(head)
        self._check_others(entries)
        for who, note in held.items():
            if self._check_growth(note, head, intact):
                self._holders[who] = note.size
        if intact:
            self._holders |= {item.key.name: head.size for item in self._cosigned}
            self._check_times(head)
        return self._report(head, entries)

    def _read_entries(self, entries: EntryCheck, size: int, signatures: SignatureAudit | None) -> None:
        for first in range(0, size, TILE_WIDTH):
            stop = min(first + TILE_WIDTH, size)
            self._bundle(entries, first, stop, signatures)
            if self._options.progress:
                self._options.progress(stop, size)
        if self._whole:
            self._check_tiles(self._edge.partial())
        entries.finish()
        if signatures:
            signatures.finish()

    def _signatures(self) -> AbstractContextManager[SignatureAudit | None]:
        options = self._options
        if options.hash_only:
            return nullcontext()
        if not (options.keys or options.bundle_key):
            self._findings.add(Code.INCOMPLETE, "signatures", "no keys are given, so no signature was verified")
            return nullcontext()
        return SignatureAudit(self._findings, options.keys, options.bundle_key, options.workers)

    @contextmanager
    def _stage(self, checker: str, name: str) -> Iterator[None]:
        """One part of the audit, whose error is a finding about the file `name`."""
        try:
            yield
        except CountermarkError as error:
            self._findings.error(error, checker, f"{name}: ")

    def _check_schema(self) -> None:
        with self._stage("export-schema", SCHEMA):
            found = read_export_file(self._folder, SCHEMA, 256)
            if found is None:
                self._findings.add(Code.INCOMPLETE, "export-schema", f"{SCHEMA} is missing")
            elif found not in (SCHEMA_TEXT, SCHEMA_TEXT_BARE):
                self._findings.add(Code.UNSUPPORTED, "export-schema", f"{SCHEMA} names no layout that this version knows")

    def _head(self) -> Checkpoint | None:
        head: Checkpoint | None = None
        with self._stage("export-checkpoint", CHECKPOINT):
            data = read_export_file(self._folder, CHECKPOINT, MAX_NOTE_BYTES)
            if data is None:
                self._findings.add(Code.INCOMPLETE, "export-checkpoint", f"{CHECKPOINT} is missing: nothing has been published here")
            else:
                head = check_signed(SignedNote.parse(data), self._key)
                self._witnessed(data)
        return head

    def _witnessed(self, note: bytes) -> None:
        if self._options.policy:
            with self._stage("witnesses", CHECKPOINT):
                self._cosigned = self._options.policy.open(note).cosignatures

    def _held(self) -> Iterator[tuple[str, Checkpoint]]:
        for who, note in self._options.held.items():
            with self._stage("held", who):
                yield who, check_signed(SignedNote.parse(note), self._key)

    def _bundle(self, entries: EntryCheck, first: int, stop: int, signatures: SignatureAudit | None) -> None:
        """Up to 256 entries: their bundle, and the tiles that they complete."""
        count = stop - first
        name, data = self._read(entries_path(first // TILE_WIDTH), _width(count), MAX_BUNDLE_BYTES)
        leaves: list[bytes] = []
        if data is None:
            self._findings.add(Code.INCOMPLETE, "export-entries", f"{name} is missing")
        else:
            with self._stage("export-entries", name):
                leaves = decode_bundle(data, count if _is_partial(name) else TILE_WIDTH)[:count]
        if not leaves:
            self._skip(entries, first, count)
        for index, leaf in enumerate(leaves, first):
            hashed = leaf_hash(leaf)
            self._grow(hashed)
            entries.take(index, leaf, hashed, signatures)
            self._newest = leaf

    def _skip(self, entries: EntryCheck, first: int, count: int) -> None:
        """Go on without a bundle, with the leaf hashes of its tile if that is there."""
        entries.skip()
        _, data = self._read(tile_path(0, first // TILE_WIDTH), _width(count), TILE_BYTES)
        hashes = split_hashes((data or b"")[: count * HASH_BYTES])
        if len(hashes) < count or len(hashes[-1]) != HASH_BYTES:
            self._whole = False
        for hashed in hashes:
            self._grow(hashed)

    def _grow(self, hashed: bytes) -> None:
        if not self._whole:
            return
        self._check_tiles(self._edge.push(hashed))
        if self._edge.size in self._wanted:
            self._roots[self._edge.size] = self._edge.root()

    def _check_tiles(self, tiles: Iterator[Tile]) -> None:
        for tile in tiles:
            name, data = self._read(tile_path(tile.level, tile.index), tile.width, TILE_BYTES)
            if data is None:
                self._findings.add(Code.INCOMPLETE, "export-tiles", f"{name} is missing")
            elif not data.startswith(tile.hashes) or len(data) != (len(tile.hashes) if _is_partial(name) else TILE_BYTES):
                self._findings.add(Code.TAMPERED, "export-tiles", f"{name} does not hold the hashes of the entries")

    def _read(self, full: str, width: int | None, limit: int) -> tuple[str, bytes | None]:
        """The file of a tile and its name: that of the width, or the full one that has replaced it (tlog-tiles, partial tiles)."""
        names = [full] if width is None else [f"{full}.p/{width}", full]
        for name in names:
            data: bytes | None = None
            with self._stage("export-files", name):
                data = read_export_file(self._folder, name, limit)
            if data is not None:
                self._checked.add(name)
                self._current[full] = name
                return name, data
        return names[0], None

    def _check_root(self, head: Checkpoint) -> bool:
        """Whether the entries are those that the log signed."""
        if not self._whole:
            self._findings.add(Code.INCOMPLETE, "export-root", "the root cannot be worked out without the missing entries")
            return False
        if self._roots.get(head.size) != head.root:
            self._findings.add(Code.TAMPERED, "export-root", "the entries do not hash to the root that was signed")
            return False
        return True

    def _check_times(self, head: Checkpoint) -> None:
        """The newest entry, which the root vouches for, held against the witnesses' times and the auditor's clock."""
        with self._stage("age", CHECKPOINT):
            newest_ms = Leaf.decode(self._newest).admitted_ms if self._newest else None
            ahead = ahead_of(self._cosigned, newest_ms or 0)
            if ahead:
                self._findings.add(Code.CLOCK, "witnesses", ahead, entry=head.size - 1)
            if self._options.fresh:
                self._options.fresh.check(self._options.policy, self._cosigned, newest_ms)

    def _check_growth(self, held: Checkpoint, head: Checkpoint, intact: bool) -> bool:
        """Whether the export continues a checkpoint that somebody holds."""
        if held.size > head.size:
            self._findings.add(Code.ROLLBACK, "held", f"the export has {head.size} entries; a checkpoint held elsewhere says {held.size}")
        elif self._whole and self._roots.get(held.size) != held.root:
            code = Code.SPLIT_VIEW if intact else Code.TAMPERED
            self._findings.add(code, "held", f"at {held.size} entries the export has another root than a checkpoint held elsewhere")
        return self._whole and self._roots.get(held.size) == held.root

    def _check_others(self, entries: EntryCheck) -> None:
        """Files that the head does not call for: those of smaller heads must be the beginning of what it does call for."""
        for name in list_files(self._folder):
            unread = self._options.hash_only and name.startswith("payload/")
            if name in self._checked or name in entries.files or unread:
                continue
            full, partial, width = name.partition(".p/")
            current = self._current.get(full)
            if current is None or not partial or not _WIDTH.match(width):
                observed = f"{name} belongs to nothing that the checkpoint covers"
                self._findings.add(Code.MALFORMED, "export-files", observed, severity=Severity.WARN)
            elif not self._begins(name, current, width):
                self._findings.add(Code.TAMPERED, "export-files", f"{name} is not the beginning of {current}")

    def _begins(self, name: str, current: str, width: str) -> bool:
        """Whether a file of an earlier head is the beginning of one that has been checked."""
        good = False
        with self._stage("export-files", name):
            part = read_export_file(self._folder, name, MAX_BUNDLE_BYTES) or b""
            whole = read_export_file(self._folder, current, MAX_BUNDLE_BYTES) or b""
            if name.startswith("tile/entries/"):
                decode_bundle(part, int(width))
                good = whole.startswith(part)
            else:
                good = len(part) == int(width) * HASH_BYTES and whole.startswith(part)
        return good

    def _report(self, head: Checkpoint | None, entries: EntryCheck | None) -> AuditReport:
        protected_to = max(self._holders.values(), default=None)
        return AuditReport(
            origin=head.origin if head else None,
            size=head.size if head else 0,
            root=head.root if head else EMPTY_ROOT,
            evaluated=entries.evaluated if entries else 0,
            of=head.size if head else 1,
            notices=entries.notices if entries else 0,
            findings=self._findings.result(),
            anchored=None,
            protected_to=protected_to,
            held_by=tuple(sorted(who for who, size in self._holders.items() if size == protected_to)),
            left_out=tuple(self._left_out(entries)),
            withheld=entries.withheld if entries else 0,
        )

    def _left_out(self, entries: EntryCheck | None) -> Iterator[str]:
        if self._options.hash_only:
            yield "payloads and signatures of entries"
        elif entries and entries.key_events and not self._options.trust:
            yield f"what {len(entries.key_events)} key events take away, which a trust policy judges"
