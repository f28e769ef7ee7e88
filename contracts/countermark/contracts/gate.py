"""The gate: from a policy and the ledger's records to a decision. All rules, no input or output.

A decision is ALLOW when at least one requirement holds and every other one that applies holds or is waived. Removing a record that speaks
for an image never turns a DENY into an ALLOW, unless approvers have waived what is left; a record that speaks against it counts whatever
else there is. That is sound only over all of the ledger's notices, so the decision names the head at which they were read.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from countermark.attestations.codes import Code, Outcome, Status
from countermark.attestations.digests import Digest
from countermark.attestations.errors import InputError
from countermark.attestations.predicate_types import VERIFICATION_SUMMARY, PredicateName
from countermark.attestations.times import Instant
from countermark.attestations.trust import TrustPolicy
from countermark.contracts.aliases import Names
from countermark.contracts.answer import Answer, Considered
from countermark.contracts.contract_status import judge_contract, verdict_checkers, verdict_identity
from countermark.contracts.decision import Decision, DecisionHead, Identified, Inputs, Mode, Result
from countermark.contracts.evidence import Entry, Evidence, Record
from countermark.contracts.policy import ReleasePolicy
from countermark.contracts.profile import Profile
from countermark.contracts.receipt import Receipt
from countermark.contracts.rejection import Rejection
from countermark.contracts.relevance import relevant
from countermark.contracts.requirement import CapabilityRequirement, ContractRequirement, NotApplicable, Requirement
from countermark.contracts.status import judge_capability
from countermark.contracts.waiving import Waived, Waiving
from countermark.contracts.weighed import Weighed

_SAY_NOTHING: Final = frozenset({PredicateName.WAIVER.uri, PredicateName.DECISION.uri, VERIFICATION_SUMMARY})


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked.

    `records` are every notice of the ledger at `head`, and every record that names the subject or one of its aliases, is a contract
    verdict, or is what a receipt among them rests on. `quarantined_rejections` counts rejections of the subject that no signature
    carries. `at_override` says that somebody else than the clock chose the effective time.
    """

    subject: Digest
    policy: ReleasePolicy
    trust: TrustPolicy
    records: tuple[Record, ...]
    head: DecisionHead
    effective_time: Instant
    mode: Mode = Mode.ENFORCE
    at_override: bool = False
    quarantined_rejections: int = 0

    def __post_init__(self) -> None:
        if not self.subject.kind.is_oci:
            raise InputError(Code.BAD_DIGEST, f"{self.subject} is not an image", fix="ask about an oci-index, oci-manifest or oci-config")


def decide(question: Question) -> Decision:
    """The decision: pure, total, and the same for the same question, in whatever order its records come."""
    evidence = Evidence.of(relevant(question.records, question.subject), question.trust)
    names = Names.of(question.subject, evidence, question.policy.platform)
    now = question.effective_time.whole_seconds()
    barrier = _barrier(question, names, evidence)
    answered = [(item, _answer(item, barrier, names, evidence, now)) for item in question.policy.requires]
    verdicts = _verdicts_used(answer for _, answer in answered)
    waived = Waiving(question.policy, names, evidence, now).weigh(tuple(_result(item, answer) for item, answer in answered))
    return Decision(
        question.mode,
        question.subject,
        question.policy.channel,
        _inputs(question, verdicts, waived),
        question.head,
        now,
        waived.results,
        tuple(_notes(question, waived)),
        _checkers(verdicts),
        waived.waivers,
    )


def _barrier(question: Question, names: Names, evidence: Evidence) -> Answer | None:
    """What is true of the image whatever is asked of it: nobody knows it, it is rejected, or it is of the wrong kind."""
    if not is_known(names, evidence):
        observed = f"no record of the ledger names {question.subject}"
        return Answer(Status.UNQUALIFIED, Code.SUBJECT_UNKNOWN, observed, "record the image, or correct the digest")
    rejections = [rejection for rejection in Rejection.standing(names, evidence) if rejection.image_wide]
    if rejections:
        fix = "build a new image; this rejection is image-wide and cannot be waived"
        used = tuple(Considered(rejection.entry) for rejection in rejections)
        return Answer(Status.REJECTED, Code.IMAGE_REJECTED, f"image {rejections[0]}", fix, used)
    if question.subject.kind not in question.policy.kinds:
        kinds = " or ".join(sorted(question.policy.kinds))
        fix = f"ask about a digest of kind {kinds}"
        return Answer(Status.UNQUALIFIED, Code.SUBJECT_KIND, f"{question.subject.kind}, and the policy takes {kinds}", fix)
    return _other_image(question.policy.profile, names) or _platform(question.policy.platform, names)


def is_known(names: Names, evidence: Evidence) -> bool:
    """Whether anything was said of the image itself; that somebody decided about it, or waived something of it, says nothing."""
    told = (entry for entry in evidence.entries if entry.statement.predicate_type not in _SAY_NOTHING)
    if names.mentioned or any(entry.may_be_about(names.subject) for entry in told):
        return True
    receipts = evidence.of_type(PredicateName.QUALIFICATION_RECEIPT)
    return any(Receipt.of(entry).scope.image == names.subject for entry in receipts)


def _other_image(profile: Profile | None, names: Names) -> Answer | None:
    """A profile that states its image is a profile for that image only."""
    stated = profile.image if profile else None
    if profile is None or stated is None or stated in set(map(str, names.passes)):
        return None
    observed = f"profile {profile.id} is for {stated}"
    return Answer(Status.UNQUALIFIED, Code.SUBJECT_MISMATCH, observed, "ask about that image, or give the profile of this one")


def _platform(wanted: str | None, names: Names) -> Answer | None:
    """The platform that the policy demands must be recorded, by someone who may, for the image itself."""
    recorded = names.platforms
    if wanted is None or wanted in recorded:
        return None
    observed = f"platform {' or '.join(sorted(recorded)) or 'not recorded'}, and the policy takes {wanted}"
    return Answer(
        Status.UNQUALIFIED, Code.SUBJECT_KIND, observed, "record the image from its bytes, or ask about the one for that platform"
    )


def _answer(item: Requirement | NotApplicable, barrier: Answer | None, names: Names, evidence: Evidence, now: Instant) -> Answer:
    if isinstance(item, NotApplicable):
        return Answer(Status.UNQUALIFIED, Code.NOTHING_EVALUATED, f"it does not apply: {item.why}", "")
    if barrier:
        return barrier
    if isinstance(item, ContractRequirement):
        return judge_contract(item, names, evidence)
    return judge_capability(item, names, evidence, now)


def _result(item: Requirement | NotApplicable, answer: Answer) -> Result:
    outcome = Outcome.NOT_APPLICABLE if isinstance(item, NotApplicable) else Outcome.PASS if answer.accepted else Outcome.FAIL
    return Result(
        id=item.id,
        status=answer.status,
        code=answer.code,
        outcome=outcome,
        required=str(item),
        observed=answer.observed,
        location=item.location,
        fix=answer.fix,
        capability=_capability(item),
        any=item.any if isinstance(item, CapabilityRequirement) else (),
        evidence=tuple(sorted((_weighed(considered) for considered in answer.considered), key=lambda item: item.index)),
        next_expiry=answer.next_expiry,
        codes=answer.codes,
    )


def _capability(item: Requirement | NotApplicable) -> str | None:
    if isinstance(item, CapabilityRequirement):
        return item.capability.id
    return item.capability if isinstance(item, NotApplicable) else None


def _weighed(considered: Considered) -> Weighed:
    entry = considered.entry
    return Weighed(entry.index, entry.payload, entry.signer, considered.why is None, considered.why)


def _inputs(question: Question, verdicts: list[Entry], waived: Waived) -> Inputs:
    policy, trust, catalogue, profile = question.policy, question.trust, question.policy.catalogue, question.policy.profile
    return Inputs(
        Identified(policy.id, policy.version, policy.digest),
        Identified(trust.id, trust.version, trust.digest),
        Identified(catalogue.id, catalogue.version, catalogue.digest),
        Identified(profile.id, profile.version, profile.digest) if profile else None,
        tuple(Identified(*verdict_identity(entry), entry.payload) for entry in verdicts),
        tuple(Identified(item.waiver.id, item.waiver.version, item.payload) for item in waived.waivers if item.waiver and item.used),
    )


def _verdicts_used(answers: Iterable[Answer]) -> list[Entry]:
    used = {item.entry.index: item.entry for answer in answers for item in answer.considered if item.why is None}
    return [used[index] for index in sorted(used) if used[index].statement.predicate_type == PredicateName.CONTRACT_VERDICT.uri]


def _checkers(verdicts: Iterable[Entry]) -> dict[str, int]:
    """The checkers behind the verdicts that count; of two versions of one, the older."""
    found: dict[str, int] = {}
    for name, version in (item for entry in verdicts for item in verdict_checkers(entry).items()):
        found[name] = min(version, found.get(name, version))
    return found


def _notes(question: Question, waived: Waived) -> Iterable[str]:
    if question.trust.single_operator:
        yield "SINGLE_OPERATOR"
    if question.at_override:
        yield "AT_OVERRIDE"
    if question.quarantined_rejections:
        yield f"QUARANTINED_REJECTIONS:{question.quarantined_rejections}"
    if question.head.unprotected > 0:
        yield f"UNPROTECTED_TAIL:{question.head.unprotected}"
    applied = [result for result in waived.results if result.evaluated]
    if applied and all(result.waived_by for result in applied):
        yield "ALL_WAIVED"
    if waived.elsewhere:
        yield f"WAIVERS_OF_OTHER_IMAGES:{waived.elsewhere}"
