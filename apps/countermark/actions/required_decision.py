"""`gate --require-decision`: a publish step asks for the decision that was made before, since a skipped job counts as success elsewhere.

The file holds what `gate --record` wrote: the decision itself or its verification summary. It is held to the image, the policy's bytes,
who signed it and when, and, where there is a ledger, to what was said against the image since.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from countermark.actions.clock import now
from countermark.actions.envelopes import read_envelope, read_texts
from countermark.actions.evidence import Gatherer
from countermark.actions.gate import trust_file_of
from countermark.actions.subjects import resolve_subject
from countermark.actions.workspace import Workspace, admitting_trust, open_reader
from countermark.attestations.codes import Code, Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.documents import Document, exists, load_document, read_file
from countermark.attestations.envelope import Envelope
from countermark.attestations.errors import CountermarkError, InputError, Location, NothingError
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue, as_integer, as_list, as_object
from countermark.attestations.predicate_types import VERIFICATION_SUMMARY, PredicateName
from countermark.attestations.times import Instant
from countermark.attestations.trust import TrustPolicy
from countermark.attestations.verifier import PolicyTrust, Trust, VerifiedStatement, Verifier
from countermark.contracts.evidence import Entry, Evidence
from countermark.ledger.read import LedgerReader

_SKEW_NS: Final = 60 * 1_000_000_000
_GATE: Final = "gate"
_AGAIN: Final = "decide again with `gate --record`, and hand on what it writes"
_AGAINST: Final = (PredicateName.REJECTION, PredicateName.RETRACTION, PredicateName.SUPERSESSION)


@dataclass(frozen=True, slots=True)
class Demand:
    """What a decision is held to. `max_age_ns` counts from the decision's effective time to now."""

    policy: Path
    max_age_ns: int
    ledger_given: bool


@dataclass(frozen=True, slots=True)
class Found:
    """The answer for one image: the statement that allows it, or every reason why none does."""

    subject: Digest
    payload: Digest | None
    findings: tuple[Finding, ...]


def required_decisions(workspace: Workspace, file: Path, subjects: tuple[str, ...], demand: Demand) -> tuple[Found, ...]:
    """Hold a file to the demand for each image. Raises typed errors for a file that is no attestation, or a ledger that is not here."""
    document = load_document(read_file(demand.policy), str(demand.policy), "ReleasePolicy")
    trust = TrustPolicy.load(trust_file_of(workspace, demand.policy, document.spec["trust"]))
    texts = list(read_texts(str(file)))
    if not texts:
        raise NothingError(Code.NOTHING_EVALUATED, "the file holds no attestation", at=Location(str(file)), fix=_AGAIN)
    if not demand.ledger_given and not exists(workspace.ledger):
        digests = tuple(Digest.parse(text, at=Location("DIGEST")) for text in subjects)
        return tuple(_Judge(document, trust, PolicyTrust(trust), demand, None).judge(texts, digest) for digest in digests)
    workspace.check_ledger()
    with open_reader(workspace, trust) as reader:
        kinds = [DigestKind(kind) for kind in sorted(document.spec["subject"]["kinds"])]
        judge = _Judge(document, trust, admitting_trust(workspace, trust), demand, reader)
        return tuple(judge.judge(texts, resolve_subject(reader, text, kinds)) for text in subjects)


class _Judge:
    def __init__(self, policy: Document, trust: TrustPolicy, keys: Trust, demand: Demand, reader: LedgerReader | None) -> None:
        self.policy = policy
        self.trust = trust
        self.verifier = Verifier(keys)
        self.demand = demand
        self.reader = reader
        self.now = now()

    def judge(self, texts: list[tuple[str, bytes]], subject: Digest) -> Found:
        found: list[Finding] = []
        for source, data in texts:
            envelope = read_envelope(data, source)
            if isinstance(envelope, InputError):
                raise envelope
            problems = [*self._problems(envelope, subject)]
            if not problems:
                return Found(subject, Digest.of(DigestKind.PAYLOAD, envelope.payload), ())
            found += [self._finding(source, subject, code, why) for code, why in problems]
        return Found(subject, None, tuple(found))

    def _finding(self, source: str, subject: Digest, code: Code, why: str) -> Finding:
        return Finding(code, Outcome.FAIL, _AGAIN, location=Location(source), subject=str(subject), observed=why)

    def _problems(self, envelope: Envelope, subject: Digest) -> Iterator[tuple[Code, str]]:
        try:
            verified = self.verifier.verify(envelope, at=self.now)
        except CountermarkError as error:
            yield error.code, error.message
            return
        if _GATE not in verified.roles:
            yield Code.ROLE, f"{', '.join(verified.principals) or 'nobody known'} signed it, not as {_GATE}"
        said = _said(verified)
        if said is None:
            yield Code.PAYLOAD_TYPE, f"it is a {verified.statement.predicate_type}, no decision and no verification summary"
            return
        named = [digest for item in verified.statement.subjects for digest in item.typed]
        if subject not in named or said.subject != subject:
            yield Code.SUBJECT_MISMATCH, f"it is about {', '.join(map(str, named)) or 'nothing'}, not about {subject}"
        yield from self._wrong_policy(said)
        yield from said.refused
        age = self.now.ns - said.made.ns if said.made else None
        if age is None or age < -_SKEW_NS:
            yield Code.CLOCK, f"it says that it was made at {said.made}, which is not in the past"
        elif age > self.demand.max_age_ns:
            yield Code.STALE, f"it was made at {said.made}, longer ago than is allowed"
        if self.reader:
            yield from self._by_ledger(self.reader, verified, said, subject)

    def _wrong_policy(self, said: "_Said") -> Iterator[tuple[Code, str]]:
        if said.policy != (self.policy.id, self.policy.digest.hex):
            name, hexed = said.policy
            told = f"policy {self.policy.id} with the SHA-256 {self.policy.digest.hex[:12]}…"
            yield Code.SUBJECT_MISMATCH, f"it was made by policy {name} with the SHA-256 {hexed[:12]}…, not by {told}"
        if said.channel not in (None, self.policy.spec["channel"]):
            yield Code.SUBJECT_MISMATCH, f"it is for channel {said.channel}, not for {self.policy.spec['channel']}"

    def _by_ledger(self, reader: LedgerReader, verified: VerifiedStatement, said: "_Said", subject: Digest) -> Iterator[tuple[Code, str]]:
        """That this ledger holds it, and that nothing was said against the image since it was made."""
        if said.origin != reader.head.origin:
            yield Code.SPLIT_VIEW, f"it was made over ledger {said.origin}, and this is {reader.head.origin}"
            return
        entries = reader.find_payload(verified.digest.raw)
        if not entries:
            yield Code.REF_NOT_HERE, "this ledger does not hold it"
            return
        size = said.size if said.size is not None else entries[0]
        if said.root is not None and not (0 < size <= reader.head.size and reader.root_at(size).hex() == said.root):
            yield Code.SPLIT_VIEW, "this ledger never had the size and root that it names"
            return
        records, _ = Gatherer(reader, self.trust).gather(subject)
        for entry in Evidence.of(records, self.trust).entries:
            if entry.last >= size and entry.heard and (what := _against(entry, subject, said)):
                yield what, f"entry {entry.last} by {entry.signer} speaks against it, and is newer"


@dataclass(frozen=True, slots=True)
class _Said:
    """What a decision or a summary says, in one form."""

    subject: Digest | None
    policy: tuple[str, str]
    channel: str | None
    origin: str
    made: Instant | None
    refused: tuple[tuple[Code, str], ...]
    used: frozenset[str]
    size: int | None = None
    root: str | None = None


def _said(verified: VerifiedStatement) -> _Said | None:
    predicate = as_object(verified.statement.predicate)
    if verified.statement.predicate_type == PredicateName.DECISION.uri:
        return _of_decision(as_object(predicate.get("core")))
    return _of_summary(predicate) if verified.statement.predicate_type == VERIFICATION_SUMMARY else None


def _of_decision(core: dict[str, JsonValue]) -> _Said:
    inputs, ledger, notes = as_object(core.get("inputs")), as_object(core.get("ledger")), as_list(core.get("notes"))
    policy = as_object(inputs.get("policy"))
    refused = (
        (core.get("verdict") != "ALLOW", Code.CAP_FAILED, f"its verdict is {core.get('verdict')}"),
        (core.get("mode") != "enforce", Code.CAP_FAILED, f"its mode is {core.get('mode')}"),
        ("AT_OVERRIDE" in notes, Code.CLOCK, "somebody else than the clock chose its time [AT_OVERRIDE]"),
    )
    weighed = [as_object(item) for result in as_list(core.get("requirements")) for item in as_list(as_object(result).get("evidence"))]
    used = [item.get("payload") for item in weighed if item.get("used") is True]
    used += [as_object(item).get("digest") for name in ("contract_verdicts", "waivers") for item in as_list(inputs.get(name))]
    digest = Digest.stated(policy.get("digest"))
    return _Said(
        Digest.stated(core.get("subject")),
        (str(policy.get("id")), digest.hex if digest else ""),
        None,
        str(ledger.get("origin")),
        _instant(core.get("effective_time")),
        tuple((code, why) for holds, code, why in refused if holds),
        frozenset(digest.hex for item in used if (digest := Digest.stated(item))),
        as_integer(ledger.get("size")) or 0,
        str(ledger.get("root")),
    )


def _of_summary(predicate: dict[str, JsonValue]) -> _Said:
    policy = as_object(predicate.get("policy"))
    image, _, channel = str(predicate.get("resourceUri")).partition("#")
    result = predicate.get("verificationResult")
    inputs = (as_object(as_object(item).get("digest")).get("sha256") for item in as_list(predicate.get("inputAttestations")))
    return _Said(
        Digest.stated(image),
        (str(policy.get("uri")), str(as_object(policy.get("digest")).get("sha256"))),
        channel,
        str(as_object(predicate.get("verifier")).get("id")),
        _instant(predicate.get("timeVerified")),
        () if result == "PASSED" else ((Code.CAP_FAILED, f"its result is {result}"),),
        frozenset(map(str, inputs)),
    )


def _instant(value: JsonValue) -> Instant | None:
    try:
        return Instant.parse(value) if isinstance(value, str) else None
    except InputError:
        return None


def _against(entry: Entry, subject: Digest, said: _Said) -> Code | None:
    """What a newer statement takes away: the image, or something that the decision rests on. A rejection of other statements does not."""
    kind = entry.statement.predicate_type
    named = {hexed for item in entry.statement.subjects for hexed in item.digests.values()}
    if kind in {name.uri for name in _AGAINST} and named & said.used:
        return Code.STALE
    about_statement = any(digest.kind is DigestKind.PAYLOAD for item in entry.statement.subjects for digest in item.typed)
    if kind == PredicateName.REJECTION.uri and not about_statement:
        return Code.IMAGE_REJECTED
    failed = entry.outcome is Outcome.FAIL and kind == PredicateName.QUALIFICATION_RECEIPT.uri and entry.may_be_about(subject)
    return Code.CAP_FAILED if failed else None
