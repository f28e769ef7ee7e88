"""The derived status of a capability: the table of the design page, first match wins.

Rows 1 and 2 (nobody knows the image, the image is rejected) are about the image and stand in `gate`; here are rows 3 to 10, for each
point that a requirement demands. A row is decided by data alone: which receipts and rejections cover the point, and what they lack.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from countermark.attestations.codes import Code, Status
from countermark.attestations.located import as_list
from countermark.attestations.times import Instant
from countermark.contracts.aliases import Names
from countermark.contracts.answer import Answer, Considered
from countermark.contracts.case import Case, WeighedReceipt
from countermark.contracts.deficits import expiry
from countermark.contracts.evidence import Entry, Evidence
from countermark.contracts.receipt import Receipt
from countermark.contracts.requirement import CapabilityRequirement
from countermark.contracts.scope import Leaves, describe

ROWS: Final = (
    Code.CAP_REJECTED,
    Code.CAP_FAILED,
    Code.OK,
    Code.CAP_RESEARCH_ONLY,
    Code.RECEIPT_CONTRADICTED,
    Code.EVIDENCE_EXPIRED,
    Code.EVIDENCE_BASIS,
    Code.CONTROLS_INCOMPLETE,
    Code.SIGNER_UNTRUSTED,
    Code.RUNS_TOO_FEW,
    Code.EVIDENCE_INCONCLUSIVE,
    Code.CAP_UNQUALIFIED,
    Code.CAP_SCOPE,
    Code.CAP_NO_EVIDENCE,
)
"""The codes in the order of the rows of the table."""

_FIX: Final = {
    Code.OK: "",
    Code.CAP_REJECTED: "build a new image; only an approver other than the rejecter can retract the rejection",
    Code.CAP_FAILED: "build a new image and qualify it; only an approver other than the signer can retract the failure",
    Code.CAP_RESEARCH_ONLY: "qualify it for serving in this scope; a research result does not",
    Code.RECEIPT_CONTRADICTED: "endorse what the record shows, and supersede this receipt",
    Code.EVIDENCE_EXPIRED: "measure it again and endorse that; signing the old result again does not make it young",
    Code.EVIDENCE_BASIS: "record a run whose controls recompute from its operands, and endorse that",
    Code.CONTROLS_INCOMPLETE: "record what it rests on with all controls, and endorse that",
    Code.SIGNER_UNTRUSTED: "have it endorsed by a principal who holds the role",
    Code.RUNS_TOO_FEW: "repeat the run and endorse all of them together",
    Code.EVIDENCE_INCONCLUSIVE: "run it again until the outcome is clear, and endorse that",
    Code.CAP_UNQUALIFIED: "run it on the target machine, record the result and endorse it",
    Code.CAP_SCOPE: "test exactly the scope that is demanded, and endorse the result",
    Code.CAP_NO_EVIDENCE: "test it, record the result and endorse it",
}


def judge_capability(requirement: CapabilityRequirement, names: Names, evidence: Evidence, now: Instant) -> Answer:
    """The answer to a capability requirement: that of the point which keeps it from holding, by the order of the rows."""
    case = Case.collect(requirement, names, evidence, now)
    answers = [_Point(case, point).answer() for point in requirement.points]
    failing = [answer for answer in answers if not answer.accepted]
    decisive = min(failing, key=_row) if failing else max(answers, key=_row)
    counted = f" ({len(answers) - len(failing)} of {len(answers)} points hold)" if len(answers) > 1 else ""
    expiries = [answer.next_expiry for answer in answers if answer.next_expiry and not failing]
    return replace(
        decisive,
        observed=decisive.observed + counted,
        considered=_merged(answers),
        next_expiry=min(expiries, default=None),
        codes=tuple(dict.fromkeys(code for answer in sorted(failing, key=_row) for code in answer.every_code)),
    )


def _row(answer: Answer) -> int:
    return ROWS.index(answer.code)


def _merged(answers: Sequence[Answer]) -> tuple[Considered, ...]:
    """The entries of all points by index; one that the answer at some point rests on is used."""
    found: dict[int, Considered] = {}
    for item in (item for answer in answers for item in answer.considered):
        if item.entry.index not in found or item.why is None:
            found[item.entry.index] = item
    return tuple(found[index] for index in sorted(found))


class _Point:
    """The table at one demanded point. Each row gives its answer, or None where its condition is not met."""

    def __init__(self, case: Case, point: Leaves) -> None:
        self.case = case
        self.point = point
        covering = [found for found in case.receipts if found.receipt.scope.covers_as_pass(point)]
        self.real = [found for found in covering if not found.bench]
        self.bench = [found for found in covering if found.bench]

    def answer(self) -> Answer:
        """The first row that matches, or the best status that the policy accepts where nothing speaks against the image."""
        rejected, failed = self.rejected(), self.failed()
        if rejected and failed:
            return replace(rejected, observed=f"{rejected.observed}; {failed.observed}", codes=(rejected.code, failed.code))
        return rejected or failed or self.accepted() or self.first_match()

    def first_match(self) -> Answer:
        """Rows 5 to 10 of the table."""
        rows = (self.qualified(), self.research(self.real), self.lacking(), self.implemented(), self.uncovered())
        return next((row for row in rows if row), None) or self.no_evidence()

    def accepted(self) -> Answer | None:
        """The best answer that the policy accepts.

        Each status is asked for by what must be there, never by what must be missing: taking evidence away must not gain anything. So
        a better status is always accepted with a lesser one, and `implemented` does not mind a receipt that lacks something.
        """
        accept = self.case.requirement.evidence.accept
        found = self.qualified()
        if not found and Status.RESEARCH_ONLY in accept:
            found = self.research([weighed for weighed in self.real if not weighed.lacks])
        if not found and Status.IMPLEMENTED in accept:
            found = self.ran_without_accelerator([weighed for weighed in self.bench if not weighed.lacks]) or self.built()
        if not found and accept & {Status.UNQUALIFIED, Status.UNSUPPORTED}:
            found = self.first_match()
        return replace(found, accepted=True, fix="") if found else None

    def rejected(self) -> Answer | None:
        """Row 3."""
        covering = [found for found in self.case.rejections if found.covers(self.case.requirement.capability.id, self.point)]
        if not covering:
            return None
        return self._answer(Status.REJECTED, Code.CAP_REJECTED, str(covering[0]), [found.entry for found in covering])

    def failed(self) -> Answer | None:
        """Row 4."""
        covering = [found for found in self.case.failures if found.scope.covers_as_failure(self.point)]
        if not covering:
            return None
        told = [str(item) for item in as_list(covering[0].entry.predicate.get("limitations"))]
        observed = "; ".join([f"failed, by a receipt of {covering[0].entry.signer}", *told])
        return self._answer(Status.UNQUALIFIED, Code.CAP_FAILED, observed, [found.entry for found in covering])

    def qualified(self) -> Answer | None:
        """Row 5."""
        clean = [found for found in self.real if not found.lacks and not found.receipt.research_only]
        return self._resting(Status.QUALIFIED, Code.OK, clean) if clean else None

    def research(self, covering: Sequence[WeighedReceipt]) -> Answer | None:
        """Row 6."""
        claimed = [found for found in covering if found.receipt.research_only]
        return self._resting(Status.RESEARCH_ONLY, Code.CAP_RESEARCH_ONLY, claimed) if claimed else None

    def lacking(self) -> Answer | None:
        """Row 7: all that the nearest receipt lacks, the first of it as the code."""
        lacking = [found for found in self.real if found.lacks]
        if not lacking:
            return None
        nearest = min(lacking, key=lambda found: len(found.lacks))
        observed = f"receipt by {nearest.receipt.entry.signer}: {'; '.join(map(str, nearest.lacks))}"
        answer = self._answer(Status.UNQUALIFIED, nearest.lacks[0].code, observed, [])
        return replace(answer, codes=tuple(deficit.code for deficit in nearest.lacks))

    def implemented(self) -> Answer | None:
        """Row 8."""
        return self.ran_without_accelerator(self.bench) or (None if self.case.any_receipt else self.built())

    def ran_without_accelerator(self, bench: Sequence[WeighedReceipt]) -> Answer | None:
        """All covering receipts come from a device that is none of the kind that the capability needs."""
        if not bench:
            return None
        observed = f"it ran on no GPU, by a receipt of {bench[0].receipt.entry.signer}"
        return self._answer(Status.IMPLEMENTED, Code.CAP_UNQUALIFIED, observed, [bench[0].receipt.entry])

    def built(self) -> Answer | None:
        """The image was built and its tests pass."""
        if not self.case.built:
            return None
        observed = "the image was built and its tests passed; no receipt qualifies it"
        return self._answer(Status.IMPLEMENTED, Code.CAP_UNQUALIFIED, observed, self.case.built)

    def uncovered(self) -> Answer | None:
        """Row 9, with the nearest receipt and the dimensions in which it differs."""
        found = [weighed.receipt for weighed in self.case.receipts]
        if not found:
            return None
        nearest = min(found, key=lambda receipt: len(receipt.scope.differences(self.point)))
        differences = "; ".join(map(str, nearest.scope.differences(self.point)))
        observed = f"nearest receipt, by {nearest.entry.signer}: {differences}"
        return self._answer(Status.UNSUPPORTED, Code.CAP_SCOPE, observed, [])

    def no_evidence(self) -> Answer:
        """Row 10."""
        matching = [receipt for receipt in self.case.elsewhere if receipt.scope.covers_as_pass(self.point)]
        others = f"; {len(matching)} receipts of other images match, and results do not transfer" if matching else ""
        observed = f"no receipt of {self.case.requirement.capability.id}{others}"
        return self._answer(Status.UNSUPPORTED, Code.CAP_NO_EVIDENCE, observed, [])

    def _resting(self, status: Status, code: Code, covering: Sequence[WeighedReceipt]) -> Answer:
        """An answer that rests on the first of several receipts; it can change by age when the last of them gets too old."""
        used = covering[0]
        place = describe(self.point)
        lacks = "".join(f"; {deficit}" for deficit in used.lacks)
        observed = f"{used.receipt.outcome} {f'at {place} ' if place else ''}by {used.receipt.entry.signer}, {used.basis}{lacks}"
        ends = [expiry(found.receipt, self.case.requirement.evidence) for found in covering]
        last = max((end for end in ends if end), default=None) if None not in ends else None
        return replace(self._answer(status, code, observed, [used.receipt.entry]), next_expiry=last)

    def _answer(self, status: Status, code: Code, observed: str, used: Iterable[Entry]) -> Answer:
        rests_on = [Considered(entry) for entry in used]
        taken = {item.entry.index for item in rests_on}
        others = [Considered(weighed.receipt.entry, self._why_not(weighed)) for weighed in self.case.receipts]
        others += [Considered(receipt.entry, "it was taken back") for receipt in self.case.taken_back]
        others += [Considered(receipt.entry, "a failure in another scope") for receipt in self.case.failures]
        return Answer(status, code, observed, _FIX[code], (*rests_on, *(item for item in others if item.entry.index not in taken)))

    def _why_not(self, weighed: WeighedReceipt) -> str:
        differences = _differences(weighed.receipt, self.point)
        reasons = [*differences, *(str(deficit) for deficit in weighed.lacks)]
        if weighed.bench:
            reasons.append("it ran on no GPU")
        if weighed.receipt.research_only:
            reasons.append("it claims research-only")
        return "; ".join(reasons) or "an earlier receipt or a failure decides"


def _differences(receipt: Receipt, point: Leaves) -> list[str]:
    return [str(difference) for difference in receipt.scope.differences(point)]
