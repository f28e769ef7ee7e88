"""`ledger backup` and `ledger restore`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from countermark.actions.believed_logs import read_note
from countermark.actions.workspace import Workspace, log_signer, open_reader
from countermark.attestations.codes import Code
from countermark.attestations.documents import exists
from countermark.attestations.errors import InputError, Location, RefusedError, TamperError
from countermark.attestations.findings import Finding
from countermark.ledger.backup import Manifest, back_up
from countermark.ledger.incarnation import Incarnation
from countermark.ledger.note import VerifierKey
from countermark.ledger.read import Head

if TYPE_CHECKING:
    from countermark.ledger.restore import Candidate


@dataclass(frozen=True, slots=True)
class Loss:
    """That newer entries are given up, why, and the key of whoever says so (`--key`, else the builder's)."""

    reason: str
    key: str | None


@dataclass(frozen=True, slots=True)
class Restored:
    """The ledger that stands in its place again; `entry` is the number of the entry that began a new incarnation, if one did."""

    ledger: Path
    head: Head
    findings: tuple[Finding, ...]
    entry: int | None
    incarnation: Incarnation | None


def back_up_ledger(workspace: Workspace, target: Path) -> Manifest:
    """Write the ledger into a new file, with its manifest."""
    from countermark.ledger.write import now_ms

    with open_reader(workspace) as reader:
        head = reader.head
    return back_up(workspace.ledger, target, head, now_ms())


def restore_ledger(workspace: Workspace, backup: Path, checkpoints: Sequence[Path], loss: Loss | None) -> Restored:
    """Put a backup in the ledger's place. `TamperError` ROLLBACK when newer entries are known of and nobody gives them up."""
    from countermark.ledger.restore import candidate, install

    held = [read_note(path) for path in checkpoints]
    key = _believed_key(workspace, Manifest.read(backup))
    begun: Incarnation | None = None
    entry: int | None = None
    with candidate(backup, workspace.ledger, key, held) as found:
        _check_loss(found, loss, Location(str(backup)))
        if loss and found.lost and found.lost_note:
            begun = Incarnation.make(found.manifest.size, found.lost, found.lost_note, loss.reason)
            entry = _begin_again(workspace, found.path, found.manifest.origin, begun, loss.key)
        install(found.path, workspace.ledger)
        findings = tuple(item for item in found.findings if item.code is not Code.ROLLBACK)
    with open_reader(workspace) as reader:
        return Restored(workspace.ledger, reader.head, findings, entry, begun)


def _believed_key(workspace: Workspace, manifest: Manifest) -> VerifierKey | None:
    """The key that the trust policy names for this log; none where there is no policy, or it believes no log."""
    logs = workspace.trust().logs if exists(workspace.trust_file) else ()
    if not logs:
        return None
    for log in logs:
        if log.origin == manifest.origin:
            return VerifierKey.parse(log.vkey)
    message = f"{workspace.trust_file} does not believe the log {manifest.origin}"
    raise RefusedError(Code.UNTRUSTED, message, fix="restore this backup where its own trust.yaml lies")


def _check_loss(found: "Candidate", loss: Loss | None, at: Location) -> None:
    if found.lost and loss is None:
        message = f"the backup has {found.manifest.size} entries, and the log is known to have had {found.lost.size}"
        fix = "restore a newer backup; if there is none, --new-incarnation goes on without the lost entries"
        raise TamperError(Code.ROLLBACK, message, at=at, fix=fix)
    if loss and found.lost is None:
        raise InputError(Code.UNKNOWN_NAME, "nothing is known to be lost", at=at, fix="restore it without --new-incarnation")


def _begin_again(workspace: Workspace, copy: Path, origin: str, begun: Incarnation, key: str | None) -> int:
    from countermark.ledger.write import LedgerWriter

    entry = begun.sign(workspace.signer("builder", key))
    with LedgerWriter.open(copy, log_signer(workspace, origin)) as writer:
        return writer.append_incarnation(entry).index
