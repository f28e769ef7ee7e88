"""The report of `verify bundle`."""

from collections.abc import Sequence
from typing import Any

from countermark.actions.verify_bundle import CheckedBundle
from countermark.attestations.bundle_verifier import VerifiedBundle
from countermark.attestations.codes import ExitCode
from countermark.attestations.sigstore_trust import SigstoreRoot
from countermark.cli.report import Report


def bundle_report(results: Sequence[CheckedBundle], root: SigstoreRoot) -> Report:
    """All results, good and bad, and the trust root they rest on; an empty list is "nothing evaluated"."""
    checked = [result.checked for result in results]
    verified = [(result.checked.source, result.bundle) for result in results if result.bundle]
    lines = [_line(source, bundle) for source, bundle in verified]
    return Report(
        exit=ExitCode.first_of(item.exit for item in checked),
        evaluated=sum(1 for item in checked if item.exit in (ExitCode.YES, ExitCode.NO)),
        of=len(checked),
        findings=tuple(finding for item in checked if (finding := item.finding())),
        text="\n".join([*lines, f"trust root {root.digest}, {root.source}"]),
        extra={
            "trusted_root": {"digest": str(root.digest), "source": root.source},
            "bundles": [_json(source, bundle) for source, bundle in verified],
        },
    )


def _line(source: str, bundle: VerifiedBundle) -> str:
    who = f"{bundle.identity.san} (issuer {bundle.identity.issuer})" if bundle.identity else str(bundle.key.fingerprint)
    when = f" at {min(time.at for time in bundle.times)}" if bundle.times else ""
    return f"✓ {source}  {bundle.verified.statement.predicate_type}  signed by {who}{when}  {bundle.verified.digest}"


def _json(source: str, bundle: VerifiedBundle) -> dict[str, Any]:
    """What was verified and nothing else: no outer log index, key id or hint."""
    verified, identity, log = bundle.verified, bundle.identity, bundle.log
    return {
        "source": source,
        "bundle": str(bundle.bundle),
        "payload": str(verified.digest),
        "predicate_type": verified.statement.predicate_type,
        "subjects": [subject.to_json() for subject in verified.statement.subjects],
        "identity": {"san": identity.san, "issuer": identity.issuer} if identity else None,
        "key": str(bundle.key.fingerprint),
        "source_commit": bundle.commit,
        "principals": list(verified.principals),
        "roles": list(verified.roles),
        "times": [{"at": str(time.at), "by": time.by} for time in bundle.times],
        "log": {"origin": log.origin, "index": log.index, "size": log.size, "root_hash": log.root_hash.hex()} if log else None,
    }
