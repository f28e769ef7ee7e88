"""`verify ledger`: the audit, with the keys of the trust policy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from countermark.actions.believed_logs import read_note, read_policy
from countermark.actions.clock import now
from countermark.actions.cores import cores
from countermark.actions.workspace import Workspace
from countermark.attestations.codes import ExitCode
from countermark.attestations.documents import exists
from countermark.attestations.errors import CannotTellError
from countermark.attestations.keys import PublicKey
from countermark.attestations.release import __version__
from countermark.attestations.trust import TrustPolicy
from countermark.ledger.audit import audit
from countermark.ledger.audit_report import AuditReport, write_record
from countermark.ledger.freshness import Freshness
from countermark.ledger.note import VerifierKey


@dataclass(frozen=True, slots=True)
class Extent:
    """How much an audit checks: everything or hashes alone, every entry or those from `since` on; `workers` processes for a long
    ledger, by default one a core. `fresh` says how old the newest checkpoint may be, and `strict` makes warnings block."""

    signatures: bool = True
    since: int = 0
    workers: int | None = None
    fresh: Freshness | None = None
    strict: bool = False


WHOLE: Final = Extent()


def audit_ledger(
    workspace: Workspace,
    checkpoints: Sequence[Path],
    extent: Extent = WHOLE,
    progress: Callable[[int, int], None] | None = None,
    witnesses: Path | None = None,
) -> AuditReport:
    """Check a ledger under its trust policy, and against checkpoints that somebody holds: in files, or as `witnesses` of a policy file.

    That is by default the file `witnesses.policy` beside the ledger, if there is one. `CannotTellError` UNTRUSTED when a trust policy was
    named that is not there.
    """
    believed = witnesses or (workspace.witness_file if exists(workspace.witness_file) else None)
    trust = workspace.trust() if workspace.trust_given or exists(workspace.trust_file) else None
    return audit(
        workspace.ledger,
        trust.keys() if trust else {},
        _believed_log(trust),
        workspace.anchor,
        progress=progress,
        bundle_key=BundleKeys(trust) if trust else None,
        held={str(path): read_note(path) for path in checkpoints},
        signatures=extent.signatures,
        derived=extent.signatures,
        since=extent.since,
        workers=extent.workers or cores(),
        policy=trust,
        witnesses=read_policy(believed) if believed else None,
        fresh=extent.fresh,
        strict=extent.strict,
    )


def put_on_record(workspace: Workspace, report: AuditReport) -> str | None:
    """Write `NAME.audit` beside the ledger after a complete audit that found it whole; why it could not be written, if it could not.

    The audit holds all the same: nobody may be kept from checking a ledger in a folder that is not theirs.
    """
    if report.exit is not ExitCode.YES or report.left_out:
        return None
    try:
        write_record(report, workspace.ledger, f"countermark {__version__}", now().ms)
    except CannotTellError as error:
        return str(error)
    return None


@dataclass(frozen=True)
class BundleKeys:
    """Tells who signed a stored bundle; the sigstore package is brought in by the first one."""

    trust: TrustPolicy

    def __call__(self, data: bytes) -> PublicKey | None:
        return self._key(data)

    @cached_property
    def _key(self) -> Callable[[bytes], PublicKey | None]:
        from countermark.actions.verify_bundle import bundle_key, policy_verifier

        return bundle_key(policy_verifier(self.trust, joining=True))


def _believed_log(trust: TrustPolicy | None) -> VerifierKey | None:
    """The log key of a policy that believes one log; one that believes several cannot say which this must be."""
    keys = [VerifierKey.parse(log.vkey) for log in trust.logs] if trust else []
    return keys[0] if len(keys) == 1 else None
