"""All that keeps a receipt that covers a demand from satisfying it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.times import Instant
from countermark.attestations.trust import TrustPolicy
from countermark.contracts.basis import Basis
from countermark.contracts.evidence import Entry, conflicted
from countermark.contracts.receipt import Receipt
from countermark.contracts.requirement import EvidenceRules

_CLOCK_SKEW_NS: Final = 60 * 1_000_000_000
"""How far a rig's clock may be ahead of the ledger's."""
_LAST_NS: Final = Instant.parse("9999-12-31T23:59:59Z").ns
"""The last second that RFC 3339 can write."""


@dataclass(frozen=True, slots=True)
class Deficit:
    """Why a receipt does not satisfy: a code of the status table, and the reason in words."""

    code: Code
    why: str

    def __str__(self) -> str:
        return f"{self.code}: {self.why}"


def deficits(receipt: Receipt, basis: Basis, rules: EvidenceRules, trust: TrustPolicy, now: Instant) -> tuple[Deficit, ...]:
    """What is lacking, in the order in which the codes are told; a contradiction comes first, for it questions all else."""
    reasons = {
        Code.RECEIPT_CONTRADICTED: basis.contradictions(),
        Code.EVIDENCE_EXPIRED: _expired(receipt, rules, now),
        Code.EVIDENCE_BASIS: _refused(basis, rules),
        Code.CONTROLS_INCOMPLETE: _incomplete(receipt, basis),
        Code.SIGNER_UNTRUSTED: _untrusted(receipt.entry, rules, trust),
        Code.RUNS_TOO_FEW: _too_few(receipt, rules),
        Code.EVIDENCE_INCONCLUSIVE: [f"its outcome is {receipt.outcome}"] if receipt.outcome is not Outcome.PASS else [],
    }
    return tuple(Deficit(code, why) for code, found in reasons.items() for why in found)


def expiry(receipt: Receipt, rules: EvidenceRules) -> Instant | None:
    """The last moment at which the receipt is young enough; None when it never gets too old, or its age is not known."""
    if rules.max_age_ns is None or receipt.observed_to is None:
        return None
    return Instant(min(receipt.observed_to.ns + rules.max_age_ns, _LAST_NS))


def _expired(receipt: Receipt, rules: EvidenceRules, now: Instant) -> Iterator[str]:
    ended, last = receipt.observed_to, expiry(receipt, rules)
    if rules.max_age_ns is None:
        return
    if ended is None or last is None:
        yield "it does not record when it was observed"
    elif ended.ns > receipt.entry.admitted.ns + _CLOCK_SKEW_NS:
        yield f"it says that it was observed at {ended}, after it was recorded"
    elif now > last:
        yield f"observed until {ended}, too old after {rules.max_age_text}"


def _refused(basis: Basis, rules: EvidenceRules) -> Iterator[str]:
    if basis.kind not in rules.basis:
        open_controls = ", ".join(name for name, outcome in basis.controls.items() if outcome is None)
        yield f"its basis is {basis.kind}, accepted is {' or '.join(sorted(rules.basis))}" + (
            f"; not recorded: {open_controls}" if open_controls else ""
        )


def _incomplete(receipt: Receipt, basis: Basis) -> Iterator[str]:
    yield from basis.unusable()
    missing = [name for name in basis.controls if name not in receipt.controls]
    if missing:
        yield f"it says nothing of {', '.join(missing)}"


def _untrusted(entry: Entry, rules: EvidenceRules, trust: TrustPolicy) -> Iterator[str]:
    if not entry.counts_as(rules.signed_by):
        code = entry.code if entry.code is not Code.OK else Code.ROLE
        yield f"{entry.signer} does not count as {rules.signed_by} [{code}]{in_both_roles(entry, (rules.signed_by,), trust)}"


def in_both_roles(entry: Entry, roles: Iterable[str], trust: TrustPolicy) -> str:
    """Which of those who signed a statement hold a role that must be kept separate from the one it takes; empty for another fault."""
    if entry.code is not Code.SEPARATION:
        return ""
    both = {name: (role, other) for role in roles for name, other in conflicted(trust, role).items() if name in entry.vouching}
    told = [f"{name} is both {role} and {other}, which the trust policy keeps apart" for name, (role, other) in sorted(both.items())]
    return f": {'; '.join(told)}" if told else ""


def _too_few(receipt: Receipt, rules: EvidenceRules) -> Iterator[str]:
    for have, what, least in ((receipt.runs, "runs", rules.min_runs), (receipt.boots, "boots", rules.min_boots)):
        if have < least:
            yield f"{have} {what}, required {least}"
