"""The report of `verify bundle`."""

from collections.abc import Sequence
from typing import Any

from countermark.actions.verify_bundle import CheckedBundle
from countermark.attestations.bundle_verifier import Proven, VerifiedBundle, VerifiedFile
from countermark.attestations.codes import ExitCode
from countermark.attestations.foreign_predicates import Reading
from countermark.attestations.sigstore_trust import SigstoreRoot
from countermark.cli.report import Report


def bundle_report(results: Sequence[CheckedBundle], root: SigstoreRoot) -> Report:
    """All results, good and bad, and the trust root they rest on; an empty list is "nothing evaluated"."""
    checked = [result.checked for result in results]
    verified = [(result.checked.source, result.bundle) for result in results if result.bundle]
    files = [(result.checked.source, result.file) for result in results if result.file]
    lines = [_line(source, bundle) for source, bundle in verified] + [_file_line(source, file) for source, file in files]
    return Report(
        exit=ExitCode.first_of(item.exit for item in checked),
        evaluated=sum(1 for item in checked if item.exit in (ExitCode.YES, ExitCode.NO)),
        of=len(checked),
        findings=tuple(finding for item in checked if (finding := item.finding())),
        text="\n".join([*lines, f"trust root {root.digest}, {root.source}"]),
        extra={
            "trusted_root": {"digest": str(root.digest), "source": root.source},
            "bundles": [_json(source, bundle) for source, bundle in verified],
            "signed_files": [_file_json(source, file) for source, file in files],
        },
    )


def _line(source: str, bundle: VerifiedBundle) -> str:
    return f"✓ {source}  {bundle.verified.statement.predicate_type}  {_signed(bundle)}  {bundle.verified.digest}"


def _file_line(source: str, file: VerifiedFile) -> str:
    return f"✓ {source}  {file.artifact}  {_signed(file)}"


def _signed(proven: Proven) -> str:
    who = f"{proven.identity.san} (issuer {proven.identity.issuer})" if proven.identity else str(proven.key.fingerprint)
    return f"signed by {who}" + (f" at {min(time.at for time in proven.times)}" if proven.times else "")


def _file_json(source: str, file: VerifiedFile) -> dict[str, Any]:
    principals = [file.principal] if file.principal else []
    return {"source": source, "artifact": str(file.artifact), "principals": principals, **_proven_json(file)}


def _json(source: str, bundle: VerifiedBundle) -> dict[str, Any]:
    """What was verified and nothing else: no outer log index, key id or hint."""
    verified = bundle.verified
    return {
        "source": source,
        "payload": str(verified.digest),
        "predicate_type": verified.statement.predicate_type,
        "subjects": [subject.to_json() for subject in verified.statement.subjects],
        "principals": list(verified.principals),
        "roles": list(verified.roles),
        "says": Reading.of(verified.statement.predicate_type, verified.statement.predicate).to_json(),
        **_proven_json(bundle),
    }


def _proven_json(proven: Proven) -> dict[str, Any]:
    identity, log = proven.identity, proven.log
    return {
        "bundle": str(proven.bundle),
        "identity": {"san": identity.san, "issuer": identity.issuer} if identity else None,
        "key": str(proven.key.fingerprint),
        "source_commit": proven.commit,
        "times": [{"at": str(time.at), "by": time.by} for time in proven.times],
        "log": {"origin": log.origin, "index": log.index, "size": log.size, "root_hash": log.root_hash.hex()} if log else None,
    }
