"""Waivers: bounded exceptions from one requirement of one policy for one image, and all that keeps one from counting.

A waiver is the signed document itself. Whoever ignores a field of it must ignore the waiver, so one that does not obey its schema to the
letter is none. Every reason why it does not count is told, not the first.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.errors import InputError, Location
from countermark.attestations.located import JsonValue, as_object
from countermark.attestations.times import Instant
from countermark.attestations.trust import TrustPolicy
from countermark.contracts.evidence import APPROVER, Entry, conflicted
from countermark.contracts.policy import WaiverRules
from countermark.contracts.requirement import DAY_NS


class Objection(str):
    """Why a waiver does not count, in words, with the result code that stands for it."""

    code: Code

    def __new__(cls, why: str, code: Code) -> Self:
        """The words and the code."""
        made = super().__new__(cls, why)
        made.code = code
        return made


@dataclass(frozen=True, slots=True)
class Waiver:
    """A waiver whose fields are all there. It counts from `not_before` to `expires`, both included."""

    id: str
    version: int
    subject: Digest
    policy: str
    requirement: str
    codes: tuple[Code, ...]
    reason: str
    ticket: str
    requested_by: str
    approved_by: tuple[str, ...]
    not_before: Instant
    expires: Instant
    compensating: str | None

    @classmethod
    def of(cls, document: JsonValue, source: str = "waiver") -> Self:
        """Read a Waiver document, or the predicate of a `waiver/v1`, which is one; `InputError` for the first thing wrong with it."""
        from countermark.attestations.schema import problems

        for problem in problems("Waiver", document):
            raise InputError(Code.SCHEMA_INVALID, problem.message, at=Location(source, pointer=problem.pointer), fix=problem.fix)
        whole: Any = document
        metadata, spec = whole["metadata"], whole["spec"]
        return cls(
            metadata["id"],
            metadata["version"],
            Digest.parse(spec["subject"], at=Location(source, pointer="/spec/subject")),
            spec["policy"],
            spec["requirement"],
            tuple(map(Code, spec["codes"])),
            spec["reason"],
            spec["ticket"],
            spec["requested_by"],
            tuple(spec["approved_by"]),
            Instant.parse(spec["not_before"], at=Location(source, pointer="/spec/not_before")),
            Instant.parse(spec["expires"], at=Location(source, pointer="/spec/expires")),
            spec.get("compensating"),
        )

    @property
    def name(self) -> str:
        """Id and version."""
        return f"{self.id}@{self.version}"

    def is_over(self, now: Instant) -> bool:
        """Whether its last moment has passed."""
        return now > self.expires


def claimed_subject(document: JsonValue) -> Digest | None:
    """The image that a document says it is about, however little else of it can be read."""
    return Digest.stated(as_object(as_object(document).get("spec")).get("subject"))


def faults(waiver: Waiver, trust: TrustPolicy) -> Iterator[Objection]:
    """What is wrong with a waiver whatever the policy says: it has no life, or is approved by nobody else than who asks."""
    if waiver.not_before > waiver.expires:
        yield Objection(f"it ends at {waiver.expires}, before it begins at {waiver.not_before}", Code.BAD_TIME)
    if trust.single_operator:
        yield Objection("the trust policy says that one person holds all roles, so nobody else can have approved it", Code.SEPARATION)
    if waiver.requested_by not in trust.principals:
        yield Objection(f"{waiver.requested_by}, who asks, is no principal of the trust policy", Code.UNKNOWN_NAME)
    if not waiver.approved_by:
        yield Objection("it names nobody who approves it", Code.THRESHOLD)
    if waiver.requested_by in waiver.approved_by:
        yield Objection(f"{waiver.requested_by} asks and approves", Code.SEPARATION)
    approver = trust.roles.get(APPROVER)
    apart = conflicted(trust, APPROVER)
    for name in waiver.approved_by:
        if approver is None or name not in approver.members:
            yield Objection(f"{name} is no approver of the trust policy", Code.ROLE)
        elif name in apart:
            yield Objection(f"{name} is both {APPROVER} and {apart[name]}, which the trust policy keeps apart", Code.SEPARATION)


def out_of_bounds(waiver: Waiver, rules: WaiverRules) -> Iterator[Objection]:
    """What the policy does not allow: another policy's, a requirement that it does not have or let waive, codes, too long a life."""
    if waiver.policy != rules.policy:
        yield Objection(f"it is for policy {waiver.policy}, and this is {rules.policy}", Code.UNKNOWN_NAME)
        return
    if waiver.requirement not in rules.requirements:
        yield Objection(f"policy {rules.policy} has no requirement {waiver.requirement}", Code.UNKNOWN_NAME)
    elif waiver.requirement not in rules.waivable:
        yield Objection(f"policy {rules.policy} does not let {waiver.requirement} be waived", Code.UNSUPPORTED)
    if set(waiver.codes) <= rules.never:
        yield Objection(f"{', '.join(waiver.codes)} can never be waived", Code.UNSUPPORTED)
    if waiver.expires.ns - waiver.not_before.ns > rules.max_days * DAY_NS:
        yield Objection(
            f"it lasts from {waiver.not_before} to {waiver.expires}, longer than the {rules.max_days} days of policy {rules.policy}",
            Code.BAD_TIME,
        )


def out_of_time(waiver: Waiver, now: Instant) -> Iterator[Objection]:
    """Whether it has not begun, or is over."""
    if now < waiver.not_before:
        yield Objection(f"it begins at {waiver.not_before}", Code.STALE)
    if waiver.is_over(now):
        yield Objection(f"it ended at {waiver.expires}", Code.STALE)


def approvals(waiver: Waiver, entry: Entry | None, trust: TrustPolicy) -> tuple[str, ...]:
    """Those named as approvers whose signature holds: approvers of the trust policy, in no conflict, and not who asks."""
    approver = trust.roles.get(APPROVER)
    if approver is None or entry is None:
        return ()
    able = set(approver.members) - conflicted(trust, APPROVER).keys() - {waiver.requested_by}
    return tuple(name for name in waiver.approved_by if name in able & entry.vouching)


def unapproved(waiver: Waiver, entry: Entry | None, trust: TrustPolicy) -> Iterator[Objection]:
    """Who of those named has not approved it, and whether those who have are enough; thresholds count principals."""
    approver, given = trust.roles.get(APPROVER), approvals(waiver, entry, trust)
    missing = [name for name in waiver.approved_by if name not in given and name != waiver.requested_by]
    if missing:
        yield Objection(f"not approved by {', '.join(missing)}", Code.THRESHOLD)
    if approver and not approver.met_by(given):
        yield Objection(
            f"role {APPROVER} needs {approver.k} of {len(set(approver.members))} principals, {len(given)} approve", Code.THRESHOLD
        )
    if entry and approver and entry.statement.predicate_type not in approver.makes:
        yield Objection(f"the trust policy lets no {APPROVER} make waivers", Code.SIGNER_UNTRUSTED)
