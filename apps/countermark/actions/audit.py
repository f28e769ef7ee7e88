"""`verify ledger`: the audit, with the keys of the trust policy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from countermark.actions.workspace import Workspace
from countermark.attestations.codes import Code
from countermark.attestations.documents import exists, read_file
from countermark.attestations.errors import InputError, Location
from countermark.attestations.keys import PublicKey
from countermark.attestations.trust import TrustPolicy
from countermark.ledger.audit import audit
from countermark.ledger.audit_report import AuditReport
from countermark.ledger.note import MAX_NOTE_BYTES, VerifierKey


def audit_ledger(
    workspace: Workspace, checkpoints: Sequence[Path], *, signatures: bool, progress: Callable[[int, int], None] | None = None
) -> AuditReport:
    """Check a ledger from end to end under its trust policy, and against checkpoints that somebody holds."""
    trust = workspace.trust() if exists(workspace.trust_file) else None
    held = [_note(path) for path in checkpoints]
    keys = trust.keys() if trust else {}
    bundles = _BundleKeys(trust) if trust else None
    return audit(
        workspace.ledger,
        keys,
        _believed_log(trust),
        progress=progress,
        bundle_key=bundles,
        held=held,
        signatures=signatures,
        policy=trust,
    )


@dataclass(frozen=True)
class _BundleKeys:
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


def _note(path: Path) -> str:
    data = read_file(path, limit=MAX_NOTE_BYTES)
    try:
        return data.decode()
    except UnicodeDecodeError:
        fix = "give the note as it was published"
        raise InputError(Code.MALFORMED, "a checkpoint is UTF-8 text", at=Location(str(path)), fix=fix) from None
