"""The report of `verify attestation`."""

from collections.abc import Sequence
from typing import Any

from countermark.actions.verify_attestation import Checked
from countermark.attestations.codes import ExitCode
from countermark.attestations.foreign_predicates import Reading
from countermark.attestations.verifier import VerifiedStatement
from countermark.cli.report import Report


def attestation_report(checked: Sequence[Checked]) -> Report:
    """All results, good and bad; an empty list is "nothing evaluated"."""
    verified = [item for item in checked if item.verified]
    return Report(
        exit=ExitCode.first_of(item.exit for item in checked),
        evaluated=sum(1 for item in checked if item.exit in (ExitCode.YES, ExitCode.NO)),
        of=len(checked),
        findings=tuple(finding for item in checked if (finding := item.finding())),
        text="\n".join(_line(item.source, item.verified) for item in verified if item.verified),
        extra={"attestations": [_json(item.source, item.verified) for item in verified if item.verified]},
    )


def _line(source: str, verified: VerifiedStatement) -> str:
    who = ", ".join(verified.principals) or ", ".join(str(result.key.fingerprint) for result in verified.signers if result.key)
    return f"✓ {source}  {verified.statement.predicate_type}  signed by {who}  {verified.digest}"


def _json(source: str, verified: VerifiedStatement) -> dict[str, Any]:
    return {
        "source": source,
        "payload": str(verified.digest),
        "predicate_type": verified.statement.predicate_type,
        "subjects": [subject.to_json() for subject in verified.statement.subjects],
        "signers": [
            {"key": str(result.key.fingerprint) if result.key else None, "principal": result.principal, "outcome": str(result.code)}
            for result in verified.results
        ],
        "roles": list(verified.roles),
        "says": Reading.of(verified.statement.predicate_type, verified.statement.predicate).to_json(),
    }
