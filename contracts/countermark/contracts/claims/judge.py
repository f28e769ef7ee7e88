"""What a text says, beside what is derived: findings where it says more."""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from countermark.attestations.codes import Code, Outcome, Status
from countermark.attestations.digests import Digest
from countermark.attestations.errors import InputError
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.contracts.claims.markers import NumberMarker, shown
from countermark.contracts.claims.rank import RANK
from countermark.contracts.claims.reading import Claim, Mention, TextReading
from countermark.contracts.decision import Result

Derive = Callable[[Digest], Mapping[str, Result]]
"""What the gate answers about an image, for everything that is asked of any."""
Recorded = Callable[[Digest, str], JsonValue]
"""The value at a pointer of a recorded statement or file; an `InputError` says why there is none that counts."""

CHECKER: Final = "claim.within-evidence"
_NO_TRANSFER: Final = "claim.no-transfer"
_SLIP: Final = 0.9
"""How much of a digest must agree with a known one to be read as a slip of it."""


def judge(reading: TextReading, derive: Derive, recorded: Recorded, known: Sequence[Digest]) -> tuple[Finding, ...]:
    """Every finding of one text, in reading order. `known` are all images that there are records of."""
    findings = [finding for claim in reading.claims for finding in _exceeding(claim, derive, known)]
    findings += [finding for number in reading.numbers for finding in _number(number, recorded)]
    told = {finding.subject for finding in findings}
    findings += [finding for mention in reading.mentions for finding in _named(mention, reading, derive, known, told)]
    findings += [
        Finding(error.code, Outcome.ERROR, error.fix, checker=CHECKER, location=error.at, observed=error.message)
        for error in reading.mistakes
    ]
    return tuple(sorted(dict.fromkeys(findings), key=_reading_order))


def _exceeding(claim: Claim, derive: Derive, known: Sequence[Digest]) -> Iterator[Finding]:
    """A finding for the first thing asked that does not bear the claim."""
    for group in claim.asks:
        result = _best(derive(claim.image), group)
        if RANK[claim.status] > RANK[result.status]:
            owner = _borne_by(claim, group, derive, known)
            yield _exceeds(claim, result, group, owner, slip(claim.image, known))
            return


def _best(answers: Mapping[str, Result], group: Sequence[str]) -> Result:
    return max((answers[ask] for ask in group), key=lambda result: RANK[result.status])


def _borne_by(claim: Claim, group: Sequence[str], derive: Derive, known: Sequence[Digest]) -> Digest | None:
    """Another image for which the claim would be right. A claim that names neither capability nor scope is borne by too many."""
    others = (image for image in known if image != claim.image) if claim.is_specific else ()
    return next((image for image in others if RANK[_best(derive(image), group).status] >= RANK[claim.status]), None)


def _exceeds(claim: Claim, result: Result, group: Sequence[str], owner: Digest | None, near: Digest | None) -> Finding:
    of = f" for {group[0]}" if len(group) == 1 else ""
    bound = f"at most {result.status}{of}, which is derived for {claim.image} [{result.code}]: {result.observed}"
    return Finding(
        Code.CLAIM_TRANSFER if owner else Code.CLAIM_EXCEEDS,
        Outcome.FAIL,
        f"write {near}, if that is meant" if near else f"write {result.status}, or earn the word{f': {result.fix}' if result.fix else ''}",
        checker=_NO_TRANSFER if owner else CHECKER,
        location=claim.at,
        subject=str(claim.image),
        required=bound,
        observed=f"{claim.status}{of}" + (f", which is so for {owner}; results do not transfer" if owner else ""),
        evidence=tuple(str(item.payload) for item in result.evidence if item.used),
    )


def _number(number: NumberMarker, recorded: Recorded) -> Iterator[Finding]:
    try:
        value = recorded(number.digest, number.pointer)
    except InputError as error:
        yield Finding(
            error.code, Outcome.FAIL, error.fix, checker=CHECKER, location=number.at, required="a recorded number", observed=error.message
        )
        return
    if not number.equals(value):
        yield Finding(
            Code.CLAIM_EXCEEDS,
            Outcome.FAIL,
            f"write {shown(value)}, or name the place where {number.written} is recorded",
            checker=CHECKER,
            location=number.at,
            required=f"{shown(value)}, as recorded at {number.digest}#{number.pointer}",
            observed=number.written,
            evidence=(str(number.digest),),
        )


def _named(mention: Mention, reading: TextReading, derive: Derive, known: Sequence[Digest], told: set[str | None]) -> Iterator[Finding]:
    """An image that is rejected while the text does not say so, and a digest that is nearly that of a known image."""
    for image in mention.images:
        if str(image) in told:
            continue
        near = slip(image, known)
        if near:
            required = f"a recorded digest; the nearest is {near}"
            yield _mentioned(mention, image, Code.SUBJECT_UNKNOWN, f"write {near.hex}, or record the image", required)
        rejection = next((result for result in derive(image).values() if result.code is Code.IMAGE_REJECTED), None)
        if rejection and not (image in reading.rejects or reading.rejects_unnamed):
            required = f"the word {Status.REJECTED}: {rejection.observed}"
            evidence = tuple(str(item.payload) for item in rejection.evidence if item.used)
            yield _mentioned(mention, image, rejection.code, "say that it is rejected, or name another image", required, evidence)


def _mentioned(mention: Mention, image: Digest, code: Code, fix: str, required: str, evidence: tuple[str, ...] = ()) -> Finding:
    return Finding(
        code,
        Outcome.FAIL,
        fix,
        checker=CHECKER,
        location=mention.at,
        subject=str(image),
        required=required,
        observed=str(mention.quoted),
        evidence=evidence,
    )


def slip(image: Digest, known: Sequence[Digest]) -> Digest | None:
    """The known image that a digest nobody recorded is a slip of, or another kind of."""
    if image in known:
        return None
    near = difflib.get_close_matches(image.hex, [other.hex for other in known], n=1, cutoff=_SLIP)
    return next((other for other in known if near and other.hex == near[0]), None)


def _reading_order(finding: Finding) -> tuple[int, int, str]:
    at = finding.location
    return (at.line or 0, at.column or 0, str(finding.subject)) if at else (0, 0, "")
