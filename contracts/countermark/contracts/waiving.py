"""Which of the failed requirements of a decision are waived, and what is to be told of every waiver that bears on it.

A waived requirement stays failed. One waiver must cover all codes that apply to it; two halves make no whole. Waivers are never joined
across versions or images, and one that counts for nothing is told with every reason.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.errors import InputError
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.times import Instant
from countermark.contracts.aliases import Names
from countermark.contracts.decision import Result
from countermark.contracts.evidence import Entry, Evidence
from countermark.contracts.policy import ReleasePolicy
from countermark.contracts.waiver import Objection, Waiver, approvals, claimed_subject, faults, out_of_bounds, out_of_time, unapproved
from countermark.contracts.weighed import WeighedWaiver

SHOWN_ELSEWHERE: Final = 4
"""How many waivers of the same policy that name other images a decision tells one by one, newest first; the others it counts."""


@dataclass(frozen=True, slots=True)
class Waived:
    """The results with `waived_by` where a waiver covers them, what was weighed by ledger index, and how many more name other images."""

    results: tuple[Result, ...]
    waivers: tuple[WeighedWaiver, ...]
    elsewhere: int


@dataclass(frozen=True, slots=True)
class Waiving:
    """What waivers are weighed by."""

    policy: ReleasePolicy
    names: Names
    evidence: Evidence
    now: Instant

    def weigh(self, results: tuple[Result, ...]) -> Waived:
        """Weigh every waiver of the evidence; of several that cover a requirement, the one with the lowest ledger index waives it."""
        found = list(results)
        mine: list[WeighedWaiver] = []
        others: list[WeighedWaiver] = []
        for entry in self.evidence.of_type(PredicateName.WAIVER):
            read = _read(entry)
            if not self._is_mine(entry):
                others += self._of_another_image(entry, read)
                continue
            place = _place(found, read)
            weighed = self._weigh(entry, read, found[place] if place is not None else None)
            mine.append(weighed)
            if place is not None and weighed.waiver and weighed.used:
                found[place] = replace(found[place], waived_by=weighed.waiver.name, next_expiry=weighed.waiver.expires)
        shown = others[-SHOWN_ELSEWHERE:]
        told = sorted((*mine, *shown), key=lambda item: item.index)
        return Waived(tuple(found), tuple(told), len(others) - len(shown))

    def _is_mine(self, entry: Entry) -> bool:
        """Whether it names the image, by any of its digests; only the exact one will do, but a person must hear of the others."""
        known = self.names.passes | self.names.rejections
        claimed = claimed_subject(entry.statement.predicate)
        return any(entry.may_be_about(digest) or (claimed is not None and claimed.hex == digest.hex) for digest in known)

    def _of_another_image(self, entry: Entry, read: Waiver | InputError) -> Iterator[WeighedWaiver]:
        """A live waiver of the same policy for another image: perhaps this one was meant."""
        if isinstance(read, Waiver) and read.policy == self.policy.id and not read.is_over(self.now):
            yield self._weigh(entry, read, None)

    def _weigh(self, entry: Entry, read: Waiver | InputError, result: Result | None) -> WeighedWaiver:
        if isinstance(read, InputError):
            return WeighedWaiver(entry.index, entry.payload, None, (), (Objection(f"it is no whole waiver: {read}", read.code),))
        why = (*self.objections(entry, read), *(_not_covering(read, result, self.policy) if result else ()))
        return WeighedWaiver(entry.index, entry.payload, read, approvals(read, entry, self.evidence.trust), why)

    def objections(self, entry: Entry | None, waiver: Waiver) -> Iterator[Objection]:
        """Everything that keeps a waiver from counting for this image under this policy now, but for how the requirement stands."""
        trust = self.evidence.trust
        yield from _wrong_image(entry, waiver, self.names.subject)
        yield from faults(waiver, trust)
        yield from out_of_bounds(waiver, self.policy.waivers)
        yield from out_of_time(waiver, self.now)
        yield from unapproved(waiver, entry, trust)
        taken_back = self.evidence.taken_back(entry) if entry else None
        if taken_back:
            yield Objection(f"taken back by {taken_back.signer}", Code.STALE)


def _wrong_image(entry: Entry | None, waiver: Waiver, subject: Digest) -> Iterator[Objection]:
    if waiver.subject != subject:
        yield Objection(f"it names {waiver.subject}, not this image's {subject.kind}:sha256:{subject.hex[:12]}…", Code.SUBJECT_MISMATCH)
    if entry and not entry.is_about(waiver.subject):
        yield Objection("its subject is another image than the one it names", Code.SUBJECT_MISMATCH)


def _not_covering(waiver: Waiver, result: Result, policy: ReleasePolicy) -> Iterator[Objection]:
    """Why it does not cover how a requirement stands."""
    if not result.evaluated:
        yield Objection(f"{result.id} does not apply", Code.NOTHING_EVALUATED)
    elif result.satisfied:
        yield Objection(f"{result.id} holds", Code.NOTHING_EVALUATED)
    elif result.waived_by:
        yield Objection(f"{result.id} is waived by {result.waived_by} already", Code.DUPLICATE)
    else:
        uncovered = [code for code in result.every_code if code not in waiver.codes]
        never = [code for code in result.every_code if code in policy.waivers.never]
        if uncovered:
            yield Objection(f"it covers {', '.join(waiver.codes)}, and {result.id} fails with {', '.join(uncovered)}", uncovered[0])
        if never:
            yield Objection(f"{', '.join(never)} can never be waived", never[0])


def _read(entry: Entry) -> Waiver | InputError:
    try:
        return Waiver.of(entry.statement.predicate)
    except InputError as error:
        return error


def _place(results: Iterable[Result], read: Waiver | InputError) -> int | None:
    """Where the requirement stands that a waiver names, if this policy has it."""
    named = read.requirement if isinstance(read, Waiver) else None
    return next((place for place, result in enumerate(results) if result.id == named), None)
