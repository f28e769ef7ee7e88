"""`gate` and `explain`: read the documents, gather the evidence, ask the pure evaluator."""

from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from countermark.actions.clock import now
from countermark.actions.evidence import Gatherer
from countermark.actions.subjects import resolve_subject
from countermark.actions.workspace import Workspace, open_reader
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.documents import Document, load_document, read_file, read_structured
from countermark.attestations.errors import CannotTellError, InputError, Location, UsageError
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.times import Instant
from countermark.attestations.trust import TrustPolicy
from countermark.contracts.catalogue import Catalogue
from countermark.contracts.decision import Decision, Head, Mode
from countermark.contracts.gate import Question, decide
from countermark.contracts.policy import ReleasePolicy, adhoc_document
from countermark.contracts.profile import Profile
from countermark.ledger.read import LedgerReader


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line says: subjects, policy or requirements, profile, mode and time."""

    subjects: tuple[str, ...]
    policy: Path | None = None
    requires: tuple[str, ...] = ()
    profile: Path | None = None
    profile_map: Path | None = None
    mode: Mode = Mode.ENFORCE
    effective_time: Instant | None = None


@dataclass(frozen=True, slots=True)
class Decided:
    """The decisions, in the order of the subjects, and the ad-hoc policy if there was no policy file."""

    decisions: tuple[Decision, ...]
    adhoc: bytes | None


def gate(workspace: Workspace, asked: Asked) -> Decided:
    """Decide about each subject. Raises typed errors for what is not a decision: bad documents, no ledger, tampering."""
    policy, trust, adhoc = _documents(workspace, asked)
    with open_reader(workspace, trust) as reader:
        kinds = sorted(policy.kinds)
        subjects = [resolve_subject(reader, text, kinds) for text in asked.subjects]
        return Decided(tuple(_decide(reader, subject, policy, trust, asked) for subject in subjects), adhoc)


def _decide(reader: LedgerReader, subject: Digest, policy: ReleasePolicy, trust: TrustPolicy, asked: Asked) -> Decision:
    records, notices = Gatherer(reader, trust).gather(subject, policy.platform)
    head = reader.head
    return decide(
        Question(
            subject=subject,
            policy=policy,
            trust=trust,
            records=records,
            head=Head(head.origin, head.size, head.root.hex(), notices, None),
            effective_time=(asked.effective_time or now()).whole_seconds(),
            mode=asked.mode,
            at_override=asked.effective_time is not None,
            quarantined_rejections=_quarantined_rejections(reader, subject),
        )
    )


def _quarantined_rejections(reader: LedgerReader, subject: Digest) -> int:
    """Refused input that named the subject as a rejection: nobody vouches for it, and a person may want to look."""
    return sum(1 for item in reader.quarantined(str(subject)) if PredicateName.REJECTION.uri in item.reason)


def _documents(workspace: Workspace, asked: Asked) -> tuple[ReleasePolicy, TrustPolicy, bytes | None]:
    if asked.policy is None and not asked.requires:
        raise UsageError(Code.NOTHING_EVALUATED, "nothing is required of the image", fix="give --policy FILE or --require CAPABILITY@k=v")
    base = _load(asked.policy, "ReleasePolicy") if asked.policy else None
    catalogue = _catalogue()
    profile = _profile(asked)
    if not asked.requires and base:
        policy = ReleasePolicy.of(base, catalogue, profile)
        return policy, _trust_of(workspace, asked.policy, policy), None
    data = adhoc_document(asked.requires, trust=str(workspace.trust_file), base=base)
    policy = ReleasePolicy.of(load_document(data, "--require", "ReleasePolicy"), catalogue, profile, adhoc=True)
    return policy, _trust_of(workspace, asked.policy, policy), data


def _trust_of(workspace: Workspace, policy_file: Path | None, policy: ReleasePolicy) -> TrustPolicy:
    """The trust that the policy names, relative to its file; a `--trust` that is another file is a contradiction."""
    if policy_file is None:
        return workspace.trust()
    named = policy_file.parent / policy.trust
    if not named.exists():
        fix = f"put it there, or correct spec.trust in {policy_file}"
        raise CannotTellError(Code.UNTRUSTED, "the policy's trust policy is not here", at=Location(str(named)), fix=fix)
    trust = TrustPolicy.load(named)
    if workspace.trust_given and TrustPolicy.load(workspace.trust_file).digest != trust.digest:
        message = f"--trust is another trust policy than the {named} of the policy"
        raise InputError(Code.SCHEMA_INVALID, message, at=Location(str(workspace.trust_file)), fix="leave --trust away")
    return trust


def _profile(asked: Asked) -> Profile | None:
    if asked.profile is None:
        return None
    if asked.profile_map is None:
        return Profile.of(_load(asked.profile, "Profile"))
    data = read_file(asked.profile)
    return Profile.mapped(data, read_structured(data, str(asked.profile)), _load(asked.profile_map, "ProfileMap"))


def _catalogue() -> Catalogue:
    """The capability catalogue that is shipped with the program."""
    data = (resources.files("countermark.contracts") / "catalogue.yaml").read_bytes()
    return Catalogue.of(load_document(data, "catalogue.yaml", "CapabilityCatalog"))


def _load(path: Path, kind: str) -> Document:
    return load_document(read_file(path), str(path), kind)


def mode_of(text: str) -> Mode:
    """The mode of `--mode`; `UsageError` for another word."""
    if text not in set(Mode):
        raise UsageError(Code.UNKNOWN_NAME, f"there is no mode {text!r}", fix=f"use {' or '.join(Mode)}")
    return Mode(text)
