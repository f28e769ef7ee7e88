"""`waiver new`, `approve` and `check`: an exception is drafted, signed by those whom it names, and held against a policy."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from countermark.actions.appending import Recorded, record
from countermark.actions.clock import now
from countermark.actions.evidence import Gatherer
from countermark.actions.gate import Asked, Decider, documents_of
from countermark.actions.new_files import write_new
from countermark.actions.subjects import resolve_subject
from countermark.actions.workspace import Workspace, open_reader
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.documents import API_VERSION, Document, load_document, read_file
from countermark.attestations.errors import CannotTellError, Location, RefusedError
from countermark.attestations.located import JsonValue, as_object
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import Statement, Subject
from countermark.attestations.trust import TrustPolicy
from countermark.contracts.decision import Decision
from countermark.contracts.evidence import APPROVER, Record
from countermark.contracts.policy import WaiverRules
from countermark.contracts.waiver import Objection, Waiver, faults, out_of_bounds, out_of_time
from countermark.contracts.weighed import WeighedWaiver
from countermark.recorders.recording import Recording


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person asks for. Without an id the requirement and the image name it; without a beginning it counts from now."""

    image: str
    policy: Path
    requirement: str
    codes: tuple[str, ...]
    reason: str
    ticket: str
    requested_by: str
    approved_by: tuple[str, ...]
    expires: str
    not_before: str | None = None
    compensating: str | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """A waiver as a decision made now weighs it, and that decision."""

    weighed: WeighedWaiver
    decision: Decision


def draft(workspace: Workspace, wanted: Wanted, path: Path) -> Waiver:
    """Write the draft of a waiver to a new file. `InputError` for what is no waiver, `RefusedError` for one that could never count."""
    policy = load_document(read_file(wanted.policy), str(wanted.policy), "ReleasePolicy")
    with open_reader(workspace) as reader:
        kinds = [DigestKind(kind) for kind in sorted(policy.spec["subject"]["kinds"])]
        subject = resolve_subject(reader, wanted.image, kinds)
    document = _document(wanted, policy, subject)
    data = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120).encode()
    waiver = Waiver.of(load_document(data, str(path), "Waiver").located.value, str(path))
    _refuse([*faults(waiver, workspace.trust()), *out_of_bounds(waiver, WaiverRules.of(policy)), *_over(waiver)], path)
    write_new(path, data)
    return waiver


def _document(wanted: Wanted, policy: Document, subject: Digest) -> dict[str, JsonValue]:
    spec: dict[str, JsonValue] = {
        "subject": str(subject),
        "policy": policy.id,
        "requirement": wanted.requirement,
        "codes": list(wanted.codes),
        "reason": wanted.reason,
        "ticket": wanted.ticket,
        "requested_by": wanted.requested_by,
        "approved_by": list(wanted.approved_by),
        "not_before": wanted.not_before or str(now().whole_seconds()),
        "expires": wanted.expires,
        **({"compensating": wanted.compensating} if wanted.compensating else {}),
    }
    name = wanted.id or f"w-{subject.hex[:8]}-{wanted.requirement}"[:64]
    return {"apiVersion": API_VERSION, "kind": "Waiver", "metadata": {"id": name, "version": 1}, "spec": spec}


def approve(workspace: Workspace, path: Path, policy: Path | None, key: str | None) -> Recorded:
    """Sign a waiver as one of those whom it names, and append it; all of them sign the same bytes, each in an entry of their own.

    `RefusedError` for a waiver that could never count, and for a signer whom it does not name or who asks for it.
    """
    document = load_document(read_file(path), str(path), "Waiver")
    waiver, trust = Waiver.of(document.located.value, str(path)), workspace.trust()
    bounds = [*out_of_bounds(waiver, WaiverRules.of(load_document(read_file(policy), str(policy), "ReleasePolicy")))] if policy else []
    _refuse([*faults(waiver, trust), *bounds, *_over(waiver)], path)
    _check_approver(_principal(workspace, trust, key), waiver, path)
    statement = _statement(waiver, document)
    recording = Recording(PredicateName.WAIVER, statement.subjects, as_object(statement.predicate))
    return record(workspace, recording, APPROVER, key)


def _statement(waiver: Waiver, document: Document) -> Statement:
    return Statement((Subject.of(waiver.subject),), PredicateName.WAIVER.uri, document.located.value)


def _over(waiver: Waiver) -> Iterator[Objection]:
    """What has not begun yet may be approved; what is over may not."""
    return (item for item in out_of_time(waiver, now()) if waiver.is_over(now()))


def _refuse(objections: list[Objection], path: Path) -> None:
    if objections:
        fix = "correct it; an approval covers every word, so that all sign again"
        raise RefusedError(objections[0].code, "; ".join(objections), at=Location(str(path)), fix=fix)


def _principal(workspace: Workspace, trust: TrustPolicy, key: str | None) -> str:
    """Whose key it is, by the trust policy."""
    owned = trust.owner(workspace.signer(APPROVER, key).public.fingerprint)
    if owned is None:
        raise RefusedError(Code.SIGNER_UNTRUSTED, "the key belongs to no principal of the trust policy", fix="give the key of an approver")
    return owned[0].name


def _check_approver(name: str, waiver: Waiver, path: Path) -> None:
    at = Location(str(path), pointer="/spec/approved_by")
    if name == waiver.requested_by:
        raise RefusedError(Code.SEPARATION, f"{name} asks for it and cannot approve it", at=at, fix="have another approver sign")
    if name not in waiver.approved_by:
        message = f"{name} is not among those who shall approve it: {', '.join(waiver.approved_by)}"
        raise RefusedError(Code.ROLE, message, at=at, fix="have those sign whom it names, or draft another")


def check(workspace: Workspace, path: Path, asked: Asked) -> Checked:
    """How a decision made now weighs a waiver, with the approvals that the ledger has; one that nobody has signed is weighed as it is."""
    document = load_document(read_file(path), str(path), "Waiver")
    waiver = Waiver.of(document.located.value, str(path))
    statement = _statement(waiver, document)
    payload = Digest.of(DigestKind.PAYLOAD, statement.encode())
    by = documents_of(workspace, asked)
    with open_reader(workspace, by.trust) as reader:
        gatherer = Gatherer(reader, by.trust)
        instant = (asked.effective_time or now()).whole_seconds()
        signed = any(index < reader.head.size for index in reader.find_payload(payload.raw))
        unsigned = () if signed else (Record(reader.head.size, payload, statement, (), (), instant, Code.SIGNER_UNTRUSTED),)
        decision = Decider(gatherer, by.policy, instant, at_override=asked.effective_time is not None).decide(waiver.subject, unsigned)
    weighed = next((item for item in decision.waivers if item.payload == payload), None)
    if weighed is None:
        at = Location(str(workspace.ledger))
        raise CannotTellError(Code.INCOMPLETE, "the waiver's entry cannot be read back", at=at, fix="run `countermark verify ledger`")
    return Checked(weighed, decision)
