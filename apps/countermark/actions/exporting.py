"""`ledger export` and `verify export`: the log as files that anybody can serve and check."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from countermark.actions.audit import BundleKeys
from countermark.actions.believed_logs import read_note
from countermark.actions.cores import cores
from countermark.actions.workspace import Workspace, open_reader, public_key
from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.attestations.keys import PublicKey
from countermark.attestations.trust import TrustPolicy
from countermark.ledger.audit_report import AuditReport
from countermark.ledger.audit_signatures import BundleKey
from countermark.ledger.cosigned import note_at
from countermark.ledger.export import Exported, export
from countermark.ledger.export_audit import ExportOptions, audit_export
from countermark.ledger.freshness import Freshness
from countermark.ledger.witness_policy import WitnessPolicy


@dataclass(frozen=True, slots=True)
class Signers:
    """Keys by fingerprint, what judges the certificate of a sigstore bundle, and the policy that says so, if it is one."""

    keys: dict[bytes, PublicKey]
    bundle_key: BundleKey | None = None
    trust: TrustPolicy | None = None


def export_ledger(workspace: Workspace, folder: Path, progress: Callable[[int, int], None], *, payloads: bool) -> Exported:
    """Bring the export in a folder up to the ledger's head, and publish it with the cosignatures that there are."""
    with open_reader(workspace) as reader:
        return export(reader, folder, note_at(reader, reader.head.size), progress, payloads=payloads)


def check_export(
    folder: Path,
    policy: WitnessPolicy,
    signers: Signers,
    checkpoints: Sequence[Path],
    progress: Callable[[int, int], None],
    *,
    hash_only: bool,
    fresh: Freshness | None = None,
    strict: bool = False,
) -> AuditReport:
    """Audit an export of the one log that is believed."""
    at = Location(str(folder))
    if not folder.is_dir():
        raise InputError(Code.UNREADABLE, "there is no folder here", at=at, fix="give the folder that `ledger export` wrote")
    if len(policy.logs) != 1:
        raise InputError(Code.UNTRUSTED, "several logs are believed", at=at, fix="say with --log-key which of them this must be")
    held = {str(path): read_note(path) for path in checkpoints}
    witnessed = policy if policy.witnesses or policy.quorum else None
    options = ExportOptions(signers.keys, held, witnessed, hash_only, progress, signers.bundle_key, cores(), fresh, strict, signers.trust)
    return audit_export(folder, policy.logs[0], options)


def signers_of(names: Sequence[str], trust: Path | None) -> Signers:
    """Who may have signed entries: the keys of the files, else whoever a trust policy knows."""
    if names:
        return Signers({key.fingerprint.raw: key for key in map(public_key, names)})
    policy = TrustPolicy.load(trust) if trust else None
    return Signers(policy.keys(), BundleKeys(policy), policy) if policy else Signers({})
