"""`query expiring`: which requirement of a policy stops holding for which image, and when."""

from collections.abc import Iterator
from dataclasses import dataclass

from countermark.actions.clock import duration_ns
from countermark.actions.gate import Asked
from countermark.actions.queries.candidates import images
from countermark.actions.queries.judged_by import documents, told
from countermark.actions.queries.listing import Bearing, Listing, bearing_of
from countermark.actions.queries.view import View, When, open_view
from countermark.actions.workspace import Workspace
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.times import Instant
from countermark.contracts.decision import Decision
from countermark.contracts.policy import ReleasePolicy
from countermark.contracts.requirement import HOUR_NS, CapabilityRequirement


@dataclass(frozen=True, slots=True)
class ExpiryRow:
    """A requirement that holds until `expires`, `left_h` whole hours from the effective time; or one that does not hold."""

    image: Digest
    requirement: str
    capability: str | None
    required: str
    code: Code
    expires: Instant | None
    left_h: int | None
    observed: str
    entries: tuple[int, ...]
    bearing: Bearing

    def cells(self) -> dict[str, str]:
        """The columns for people."""
        return {
            "image": str(self.image),
            "requirement": self.requirement,
            "required": self.required,
            "expires": str(self.expires.whole_seconds()) if self.expires else f"does not hold [{self.code}]",
            "left": f"{self.left_h // 24}d {self.left_h % 24}h" if self.left_h is not None else "",
            "observed": self.observed,
        }


def expiring_listing(workspace: Workspace, asked: Asked, within: str) -> Listing:
    """What stops holding within a time from the effective one, soonest first, and what has stopped by age already."""
    until_ns = duration_ns(within)
    by = documents(workspace, asked)
    with open_view(workspace, When.of(asked), by.trust) as view:
        last = Instant(view.effective_time.ns + until_ns)
        decided = [view.decide(image, by.policy) for image in images(view)]
        rows = [row for decision in decided for row in _rows(view, decision, last)]
        rows.sort(key=lambda row: (row.expires is None, row.expires or last, str(row.image), row.requirement))
        question = f"what stops holding within {within}, by {last}"
        missing = tuple(_missing(decided, by.policy))
        return Listing(question, view.head, view.effective_time, rows, missing, (told(by, by.policy.requires[0])[0], _later(decided, last)))


def _rows(view: View, decision: Decision, last: Instant) -> Iterator[ExpiryRow]:
    """Of one image, the requirements that stop holding by `last`, and those that do not hold."""
    for result in decision.requirements:
        goes_on = result.satisfied or result.waived_by is not None
        expires = result.next_expiry if goes_on else None
        if not result.evaluated or (goes_on and (expires is None or expires > last)):
            continue
        yield ExpiryRow(
            decision.subject,
            result.id,
            result.capability,
            result.required,
            result.code,
            expires,
            (expires.ns - view.effective_time.ns) // HOUR_NS if expires else None,
            f"waived by {result.waived_by}, which ends then: {result.observed}" if result.waived_by else result.observed,
            tuple(item.index for item in result.evidence if item.used),
            bearing_of(result.code, holds=goes_on),
        )


def _missing(decided: list[Decision], policy: ReleasePolicy) -> Iterator[str]:
    """An empty answer may mean that there is nothing to hold, or that nothing has an age; neither is "nothing expires"."""
    if not decided:
        yield "any image: the ledger names none"
    ageless = [item.id for item in policy.requires if not isinstance(item, CapabilityRequirement) or item.evidence.max_age_ns is None]
    if ageless:
        yield f"an age limit of {', '.join(ageless)}: the policy sets none, so that age alone never ends them"


def _later(decided: list[Decision], last: Instant) -> str:
    satisfied = [result for decision in decided for result in decision.requirements if result.satisfied]
    later = [result for result in satisfied if result.next_expiry is None or result.next_expiry > last]
    return f"{len(later)} of {len(satisfied)} that hold now hold for longer"
