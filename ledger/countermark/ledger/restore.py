"""Putting a backup back: only if it is whole, and no older than anything that anybody is known to hold of the log.

A backup below the anchor, or below a checkpoint held elsewhere, would have the log sign other entries at places that it has signed
before. That is a ROLLBACK. Only a new incarnation goes on from there: an entry of kind 6 that says what is lost.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from countermark.attestations.codes import Code, ExitCode, Severity
from countermark.attestations.errors import CannotTellError, InputError, Location, TamperError
from countermark.attestations.findings import Finding
from countermark.ledger.anchor import Anchor, default_path
from countermark.ledger.audit import audit
from countermark.ledger.audit_report import AuditReport
from countermark.ledger.backup import Manifest, remove_database
from countermark.ledger.database import sqlite_errors, use_wal
from countermark.ledger.note import Checkpoint, VerifierKey, open_checkpoint
from countermark.ledger.read import LedgerReader
from countermark.ledger.signed_note import SignedNote


@dataclass(frozen=True, slots=True)
class Candidate:
    """A copy of a backup that may become the ledger, what its audit found, and the newest head known of the log that it lacks."""

    path: Path
    manifest: Manifest
    findings: tuple[Finding, ...]
    lost: Checkpoint | None
    lost_note: str | None


@contextmanager
def candidate(backup: Path, target: Path, key: VerifierKey | None, held: Sequence[str], anchor: Path | None = None) -> Iterator[Candidate]:
    """A verified copy of a backup beside `target`, which must not exist; removed at the end of the block unless it has become that.

    `key` is the log's key, without which the log's own word is taken; `held` are checkpoints that somebody keeps. Raises
    `InputError` for an existing target, `CannotTellError`, and `TamperError` for a backup that does not verify or belongs to another
    history than a checkpoint that is known.
    """
    _refuse_existing(target)
    manifest = Manifest.read(backup)
    copy = target.with_name(target.name + ".restoring")
    remove_database(copy)
    try:
        _copy(backup, copy, manifest)
        believed = key or _own_key(copy)
        manifest.check_note(believed)
        yield _judged(copy, manifest, believed, held, anchor)
    finally:
        remove_database(copy)


def install(copy: Path, target: Path) -> None:
    """Give a copy its place, once the disk holds it."""
    with sqlite_errors(copy):
        use_wal(copy)  # the last writer to close folds the log of all readers and writers before it into the file
    try:
        descriptor = os.open(copy, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        _refuse_existing(target)
        if os.path.lexists(copy.with_name(copy.name + "-wal")):
            message = "a part of the copy is still in its write-ahead log"
            raise CannotTellError(
                Code.INCOMPLETE, message, at=Location(str(copy)), fix="end the process that has the copy open, and restore again"
            )
        copy.rename(target)
    except OSError as error:
        raise _unwritable(target, error) from None


def _copy(backup: Path, copy: Path, manifest: Manifest) -> None:
    try:
        shutil.copyfile(backup, copy)
        manifest.check_file(copy, backup)
    except OSError as error:
        raise _unwritable(copy, error) from None
    with sqlite_errors(copy):
        use_wal(copy)


def _own_key(copy: Path) -> VerifierKey:
    with LedgerReader.open(copy, anchor=copy.with_name(copy.name + ".no-anchor")) as reader:
        return VerifierKey.parse(reader.genesis.log_vkey)


def _judged(copy: Path, manifest: Manifest, key: VerifierKey, held: Sequence[str], anchor: Path | None) -> Candidate:
    """The audit of a copy. Whoever is ahead of it is what a new incarnation must name; anything else that is wrong ends here."""
    told = {f"checkpoint {number}": note for number, note in enumerate(held, 1)}
    report = audit(copy, {}, key, anchor or default_path(key.name), held=told, signatures=False)
    if (report.size, report.root) != (manifest.size, manifest.root):
        message = f"the backup ends at {report.size} entries, and its manifest says {manifest.size}"
        raise TamperError(Code.TAMPERED, message, at=Location(str(copy)), fix="restore another backup")
    _refuse_damage(copy, report)
    known = list(_known(key, held, anchor))
    newest = max(known, key=lambda item: item[0].size, default=None)
    if newest is None or newest[0].size <= manifest.size:
        return Candidate(copy, manifest, report.findings, None, None)
    return Candidate(copy, manifest, report.findings, *newest)


def _known(key: VerifierKey, held: Sequence[str], anchor: Path | None) -> Iterator[tuple[Checkpoint, str]]:
    """The heads of the log that are known from outside the backup; the audit has verified all of them."""
    remembered = Anchor.read(anchor or default_path(key.name))
    for note in [*held, *([remembered.note] if remembered else [])]:
        yield open_checkpoint(note, key), str(SignedNote.parse(note))


def _refuse_damage(copy: Path, report: AuditReport) -> None:
    """`TamperError` or `CannotTellError` for each blocking finding other than that the backup is old, which the caller decides on."""
    blocking = [finding for finding in report.findings if finding.severity is Severity.BLOCK and finding.code is not Code.ROLLBACK]
    if blocking:
        message = "; ".join(f"{finding.code} {finding.checker}: {finding.observed}" for finding in blocking[:3])
        kind: Callable[..., Exception] = TamperError if report.exit is ExitCode.TAMPERED else CannotTellError
        raise kind(blocking[0].code, f"the backup does not verify: {message}", at=Location(str(copy)), fix="restore another backup")


def _refuse_existing(target: Path) -> None:
    for end in ("", "-wal"):
        path = target.with_name(target.name + end)
        if os.path.lexists(path):
            fix = "move it away, with its -wal file, and keep it: it may hold entries that the backup lacks"
            raise InputError(Code.UNREADABLE, "a ledger stands here", at=Location(str(path)), fix=fix)


def _unwritable(path: Path, error: OSError) -> CannotTellError:
    why = error.strerror or "it cannot be written"
    return CannotTellError(Code.UNREADABLE, why, at=Location(str(path)), fix="check the rights and the room on the disk")
