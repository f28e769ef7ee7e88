"""`gate` and `explain`: read the documents, gather the evidence, ask the pure evaluator."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from countermark.actions.catalogue import load_catalogue, shipped_catalogue
from countermark.actions.clock import now
from countermark.actions.evidence import Gatherer
from countermark.actions.image_list import ListedImage, resolve_images
from countermark.actions.subjects import resolve_subject
from countermark.actions.workspace import Workspace, open_reader
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.documents import Document, exists, load_document, read_file, read_structured
from countermark.attestations.errors import CannotTellError, InputError, Location, NothingError, UsageError
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.times import Instant
from countermark.attestations.trust import TrustPolicy
from countermark.contracts.decision import Decision, DecisionHead, Mode
from countermark.contracts.evidence import Record
from countermark.contracts.gate import Question, decide
from countermark.contracts.policy import ReleasePolicy, adhoc_document
from countermark.contracts.profile import Profile, with_map
from countermark.ledger.read import LedgerReader

Told: TypeAlias = Callable[[int, int], None]


def _unheard(_done: int, _total: int) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line says: subjects, policy or requirements, profile, mode and time.

    `at` asks of the ledger as it was then, and ages count to that time unless `effective_time` is another. `images` are those of a file;
    one that is named twice is asked about once.
    """

    subjects: tuple[str, ...]
    policy: Path | None = None
    requires: tuple[str, ...] = ()
    profile: Path | None = None
    profile_map: Path | None = None
    mode: Mode = Mode.ENFORCE
    effective_time: Instant | None = None
    at: Instant | None = None
    images: tuple[ListedImage, ...] = ()


@dataclass(frozen=True, slots=True)
class Documents:
    """What decisions are made by, and the bytes of each file, policy first. `adhoc` says that the policy was written on the spot."""

    policy: ReleasePolicy
    trust: TrustPolicy
    files: tuple[bytes, ...]
    adhoc: bool


@dataclass(frozen=True, slots=True)
class Decided:
    """The decisions, in the order of the subjects, and the documents that they were made by.

    `failed` are images about which nothing can be said, and why; where there is one image only, the error itself travels on.
    """

    decisions: tuple[Decision, ...]
    documents: Documents
    failed: tuple[tuple[Digest, CannotTellError], ...] = ()


def gate(workspace: Workspace, asked: Asked, told: Told = _unheard) -> Decided:
    """Decide about each subject. Raises typed errors for what is not a decision: bad documents, no ledger, tampering.

    `told` hears how many images of how many are done.
    """
    documents = documents_of(workspace, asked)
    policy, trust = documents.policy, documents.trust
    with open_reader(workspace, trust) as reader:
        if asked.at:
            rewind_to(reader, asked.at)
        kinds = sorted(policy.kinds)
        subjects = [resolve_subject(reader, text, kinds) for text in asked.subjects]
        listed = resolve_images(reader, asked.images, kinds)
        subjects += [digest for digest in listed if digest not in subjects]
        instant = (asked.effective_time or asked.at or now()).whole_seconds()
        decider = Decider(Gatherer(reader, trust), policy, instant, mode=asked.mode, at_override=asked.effective_time is not None)
        decisions: list[Decision] = []
        failed: list[tuple[Digest, CannotTellError]] = []
        for done, subject in enumerate(subjects, start=1):
            try:
                decisions.append(decider.decide(subject))
            except CannotTellError as error:
                failed.append((subject, error))
            told(done, len(subjects))
        if failed and not decisions:
            raise failed[0][1]
        return Decided(tuple(decisions), documents, tuple(failed))


def rewind_to(reader: LedgerReader, instant: Instant) -> None:
    """Look at the ledger as it was at an instant; `NothingError` when it had not begun."""
    size = reader.size_at(instant.ms)
    if not size:
        begun = Instant.from_ms(reader.genesis.created_ms)
        raise NothingError(Code.NOTHING_EVALUATED, f"the ledger began at {begun}", at=Location("--at"), fix="give a later time")
    reader.rewind(size)


class Decider:
    """Decides about images at the head that a reader shows, with ages counted to one instant; what is read once serves all of them."""

    def __init__(
        self, gatherer: Gatherer, policy: ReleasePolicy, instant: Instant, *, mode: Mode = Mode.ENFORCE, at_override: bool = False
    ) -> None:
        self._gatherer = gatherer
        self._policy = policy
        self._instant = instant
        self._mode = mode
        self._at_override = at_override

    def decide(self, subject: Digest, also: tuple[Record, ...] = ()) -> Decision:
        """The decision about one image; `also` is weighed as if it stood in the ledger.

        Where nothing about it meets a demand, the newest receipts of other images are read too, so that a person hears which of them do.
        """
        records, walked = self._gatherer.gather(subject, self._policy.platform)
        decision = self._decided(subject, (*records, *also), walked)
        if any(result.code is Code.CAP_NO_EVIDENCE for result in decision.requirements):
            decision = self._decided(subject, (*records, *self._gatherer.strangers, *also), walked)
        return decision

    def _decided(self, subject: Digest, records: tuple[Record, ...], walked: int) -> Decision:
        head = self._gatherer.reader.head
        return decide(
            Question(
                subject=subject,
                policy=self._policy,
                trust=self._gatherer.trust,
                records=records,
                head=DecisionHead(head.origin, head.size, head.root.hex(), walked, None),
                effective_time=self._instant,
                mode=self._mode,
                at_override=self._at_override,
                quarantined_rejections=self._quarantined_rejections[str(subject)],
            )
        )

    @cached_property
    def _quarantined_rejections(self) -> Counter[str]:
        """Refused input that named an image as a rejection: nobody vouches for it, and a person may want to look."""
        before = self._instant.ms + 1000
        refused = self._gatherer.reader.quarantined()
        found = (item for item in refused if item.received_ms < before and item.predicate_type == PredicateName.REJECTION.uri)
        return Counter(subject for item in found for subject in set(item.subjects))


def documents_of(workspace: Workspace, asked: Asked) -> Documents:
    """The policy with all that it is read with. Raises typed errors for what is no policy, or is not here."""
    if asked.policy is None and not asked.requires:
        raise UsageError(Code.NOTHING_EVALUATED, "nothing is required of the image", fix="give --policy FILE or --require CAPABILITY@k=v")
    data = read_file(asked.policy) if asked.policy else b""
    document = load_document(data, str(asked.policy), "ReleasePolicy") if asked.policy else None
    if asked.requires or document is None:
        data = adhoc_document(asked.requires, trust=workspace.trust_file.name, base=document)
        document = load_document(data, "--require", "ReleasePolicy")
    policy = ReleasePolicy.of(document, load_catalogue(), _profile(asked), adhoc=bool(asked.requires))
    trust_file = trust_file_of(workspace, asked.policy, policy.trust)
    beside = [read_file(trust_file), *([_profile_bytes(asked)] if asked.profile else [])]
    return Documents(policy, TrustPolicy.load(trust_file), (data, shipped_catalogue(), *beside), bool(asked.requires))


def trust_file_of(workspace: Workspace, policy_file: Path | None, stated: str) -> Path:
    """The trust policy that the policy names, relative to its file; a `--trust` that is another file is a contradiction."""
    if policy_file is None:
        workspace.trust()
        return workspace.trust_file
    named = policy_file.parent / stated
    if not exists(named):
        fix = f"put it there, or correct spec.trust in {policy_file}"
        raise CannotTellError(Code.UNTRUSTED, "the policy's trust policy is not here", at=Location(str(named)), fix=fix)
    if workspace.trust_given and read_file(workspace.trust_file) != read_file(named):
        message = f"--trust is another trust policy than the {named} of the policy"
        raise InputError(Code.SCHEMA_INVALID, message, at=Location(str(workspace.trust_file)), fix="leave --trust away")
    return named


def _profile(asked: Asked) -> Profile | None:
    if asked.profile is None:
        return None
    if asked.profile_map is None:
        return Profile.of(_load(asked.profile, "Profile"))
    located = read_structured(read_file(asked.profile), str(asked.profile))
    return Profile.mapped(_profile_bytes(asked), located, _load(asked.profile_map, "ProfileMap"))


def _profile_bytes(asked: Asked) -> bytes:
    """The bytes that a decision names as its profile: those of the file, with those of its map where there is one."""
    data = read_file(asked.profile) if asked.profile else b""
    return with_map(data, read_file(asked.profile_map)) if asked.profile_map else data


def _load(path: Path, kind: str) -> Document:
    return load_document(read_file(path), str(path), kind)


def mode_of(text: str) -> Mode:
    """The mode of `--mode`; `UsageError` for another word."""
    if text not in set(Mode):
        raise UsageError(Code.UNKNOWN_NAME, f"there is no mode {text!r}", fix=f"use {' or '.join(Mode)}")
    return Mode(text)
