"""From the text of an attestation to what a ledger takes, or to why it is refused; in other processes when there are many texts."""

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from multiprocessing import get_context
from typing import TYPE_CHECKING, ClassVar, Final, Self

from countermark.actions.appending import submission
from countermark.actions.envelopes import read_envelope
from countermark.actions.verify_attestation import Checked, Expectation, check_one
from countermark.actions.workspace import Workspace, admitting_trust
from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.errors import CannotTellError, InputError
from countermark.attestations.findings import Finding
from countermark.attestations.statement import Statement
from countermark.attestations.times import Instant
from countermark.attestations.trust import TrustPolicy
from countermark.attestations.verifier import Verifier
from countermark.ledger.key_history import LedgerTrust
from countermark.ledger.prepare import Prepared
from countermark.ledger.submission import Refusal

if TYPE_CHECKING:
    from countermark.attestations.bundle_verifier import BundleVerifier

_CHUNK_TEXTS: Final = 512
_CHUNK_BYTES: Final = 8 * 1024 * 1024

Text = tuple[str, bytes]
"""Where a text stands, and its bytes."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A text that is not admitted: what is kept of it, what is told, and what it alone would exit with."""

    refusal: Refusal
    finding: Finding
    exit: ExitCode

    @classmethod
    def of(cls, checked: Checked) -> Self:
        """The reason, what came by its digest, and what it claims as far as it can be read at all."""
        finding = checked.finding()
        assert finding is not None
        data = checked.envelope.payload if checked.envelope else checked.source.encode()
        claim = _claim(checked)
        subjects = tuple(str(digest) for subject in claim.subjects for digest in subject.typed) if claim else ()
        claimed = claim.predicate_type if claim else None
        refusal = Refusal(finding.code, str(checked.error), hashlib.sha256(data).digest(), subjects, claimed)
        return cls(refusal, finding, checked.exit)


Taken = Prepared | Refused


def _claim(checked: Checked) -> Statement | None:
    if checked.envelope is None:
        return None
    try:
        return Statement.parse(checked.envelope.payload, checked.source)
    except InputError:
        return None


class Admission:
    """Judges texts as the ledger's trust policy and key events do at one head, for one time."""

    def __init__(self, policy: TrustPolicy, trust: LedgerTrust, at: Instant) -> None:
        self._policy, self._trust, self._at = policy, trust, at
        self._verifier = Verifier(trust)

    @classmethod
    def under(cls, workspace: Workspace, at: Instant) -> Self:
        """What the ledger admits next; raises what reading it and its trust policy raise."""
        policy = workspace.trust()
        return cls(policy, admitting_trust(workspace, policy), at)

    def take(self, text: Text) -> Taken:
        """What the ledger takes of an envelope or bundle, ready to be written; whatever it meets is in the result."""
        source, data = text
        return self._bundle(source, data) if _is_certified(data) else self._envelope(source, data)

    def _envelope(self, source: str, data: bytes) -> Taken:
        checked = check_one(read_envelope(data, source), source, self._verifier, self._at, Expectation())
        verified = checked.verified
        return Prepared.of(submission(verified), read=verified.statement) if verified else Refused.of(checked)

    def _bundle(self, source: str, data: bytes) -> Taken:
        from countermark.actions.verify_bundle import check_bundle

        checked = check_bundle(data, source, self._bundles, self._at, Expectation())
        taken = checked.submission()
        return Prepared.of(taken) if taken else Refused.of(checked.checked)

    @cached_property
    def _bundles(self) -> "BundleVerifier":
        """Made for the first bundle only: it brings the sigstore package, which takes longer than the rest of an import."""
        from countermark.actions.verify_bundle import policy_verifier

        return policy_verifier(self._policy, keys=self._trust, joining=True)


def _is_certified(data: bytes) -> bool:
    """Whether a text is a bundle with its own verification material; it is parsed strictly by whoever verifies it."""
    return b'"verificationMaterial"' in data or b'"verification_material"' in data


def take_all(texts: Iterable[Text], admission: Admission, workers: int) -> Iterator[Sequence[Taken]]:
    """Judge all texts, in portions and in their order.

    From the second portion on, `workers` processes share the work, and no more portions are read than they have in hand, so that
    memory does not grow with the input. `CannotTellError` when such a process dies.
    """
    portions = _portions(texts)
    first = list(islice(portions, 2))
    if len(first) < 2 or workers < 2:
        for portion in chain(first, portions):
            yield [admission.take(text) for text in portion]
    else:
        yield from _shared(chain(first, portions), admission, workers)


def _portions(texts: Iterable[Text]) -> Iterator[list[Text]]:
    """Texts in portions that end at a count and at a size: one text may have megabytes."""
    portion: list[Text] = []
    size = 0
    for text in texts:
        portion.append(text)
        size += len(text[1])
        if len(portion) == _CHUNK_TEXTS or size >= _CHUNK_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


class _Worker:
    """What a process of the pool keeps between portions."""

    admission: ClassVar[Admission]


def _start(admission: Admission) -> None:
    _Worker.admission = admission


def _take(portion: Sequence[Text]) -> list[Taken]:
    return [_Worker.admission.take(text) for text in portion]


def _shared(portions: Iterator[list[Text]], admission: Admission, workers: int) -> Iterator[Sequence[Taken]]:
    """The processes are started anew, not forked: this one may have threads and an open database."""
    waiting: deque[Future[list[Taken]]] = deque()
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_start, initargs=(admission,))
    try:
        for portion in portions:
            waiting.append(pool.submit(_take, portion))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        message = "a process that verified signatures ended unexpectedly"
        raise CannotTellError(Code.INCOMPLETE, message, fix="import again: what is in the ledger already is not added twice") from None
    finally:
        pool.shutdown(cancel_futures=True)
