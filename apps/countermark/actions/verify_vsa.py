"""`verify vsa`: a verification summary, held against what slsa-verifier asks of one."""

from dataclasses import dataclass

from countermark.actions.envelopes import read_envelope, read_texts
from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location, NothingError, RefusedError
from countermark.attestations.located import as_list, as_object
from countermark.attestations.predicate_types import VERIFICATION_SUMMARY
from countermark.attestations.times import Instant
from countermark.attestations.verifier import Trust, VerifiedStatement, Verifier


@dataclass(frozen=True, slots=True)
class ExpectedSummary:
    """What the summary must say. Every level must be among its `verifiedLevels`."""

    subject_sha256: str
    verifier_id: str
    resource_uri: str
    levels: tuple[str, ...] = ()


def check_summary(path: str, expected: ExpectedSummary, trust: Trust, now: Instant) -> VerifiedStatement:
    """The statement of a summary that is signed by somebody trusted, is about the subject, and says PASSED as asked.

    `RefusedError` names the first thing that it does not say; a FAILED summary is refused whatever else it says.
    """
    texts = list(read_texts(path))
    if len(texts) != 1:
        message = f"{len(texts)} attestations; a summary is one"
        raise NothingError(Code.NOTHING_EVALUATED, message, at=Location(path), fix="give the file that `gate --record -o vsa=FILE` wrote")
    envelope = read_envelope(texts[0][1], path)
    if isinstance(envelope, InputError):
        raise envelope
    verified = Verifier(trust).verify(envelope, at=now)
    problem = _problem(verified, expected)
    if problem:
        code, message = problem
        raise RefusedError(code, message, at=Location(path), fix="give the summary of this artifact by the verifier that you trust")
    return verified


def _problem(verified: VerifiedStatement, expected: ExpectedSummary) -> tuple[Code, str] | None:
    statement = verified.statement
    fields = as_object(statement.predicate)
    who = as_object(fields.get("verifier")).get("id")
    missing = [level for level in expected.levels if level not in as_list(fields.get("verifiedLevels"))]
    checks = (
        (statement.predicate_type == VERIFICATION_SUMMARY, Code.PAYLOAD_TYPE, f"it is a {statement.predicate_type}"),
        (_is_about(verified, expected.subject_sha256), Code.SUBJECT_MISMATCH, f"it is not about sha256:{expected.subject_sha256}"),
        (who == expected.verifier_id, Code.SIGNER_UNTRUSTED, f"the verifier is {who}, not {expected.verifier_id}"),
        (fields.get("resourceUri") == expected.resource_uri, Code.SUBJECT_MISMATCH, f"the resource is {fields.get('resourceUri')}"),
        (fields.get("verificationResult") == "PASSED", Code.CAP_FAILED, f"the result is {fields.get('verificationResult')}"),
        (not missing, Code.CAP_NO_EVIDENCE, f"it does not state {', '.join(missing)}"),
    )
    return next(((code, message) for holds, code, message in checks if not holds), None)


def _is_about(verified: VerifiedStatement, sha256: str) -> bool:
    return any(subject.digests.get("sha256") == sha256 for subject in verified.statement.subjects)
