"""The five rungs of the qualification ladder, and how one is written down in a restore-run."""

from dataclasses import dataclass
from enum import StrEnum

from countermark.attestations.codes import Outcome
from countermark.attestations.located import JsonValue


class Rung(StrEnum):
    """What is asked, from the root of a snapshot up to a served model."""

    SIGNED_ROOT = "1-signed-root"
    COVERAGE = "2-coverage"
    READBACK = "3-readback"
    ORACLE = "4-oracle"
    LIVE = "5-live"

    @property
    def number(self) -> int:
        """Its number in a plan."""
        return int(self[0])


@dataclass(frozen=True, slots=True)
class Control:
    """A fault that was injected, or another question whose answer is known: which rung noticed, and whether the right one did."""

    fault: str
    caught_by: Rung | None
    outcome: Outcome

    @classmethod
    def must_be_caught(cls, fault: str, by: Rung, seen_by: set[Rung]) -> "Control":
        """A fault that rung `by` must notice; who else did is told when it did not."""
        caught = by in seen_by
        return cls(fault, by if caught else min(seen_by, default=None), Outcome.PASS if caught else Outcome.INCONCLUSIVE)

    def to_json(self) -> dict[str, JsonValue]:
        """The element of `controls`."""
        return {"fault": self.fault, "caught_by": str(self.caught_by) if self.caught_by else None, "outcome": str(self.outcome)}


@dataclass(frozen=True, slots=True)
class RungReport:
    """What one rung said. A rung whose control went unnoticed cannot see, so its own pass is worth nothing: `inconclusive`."""

    own: Outcome
    reason: str | None = None
    controls: tuple[Control, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """The rung's own outcome, lowered by its controls."""
        unseen = any(control.outcome is not Outcome.PASS for control in self.controls)
        return Outcome.INCONCLUSIVE if self.own is Outcome.PASS and unseen else self.own

    @property
    def why(self) -> str | None:
        """Why it did not pass, or was not run."""
        unseen = [control.fault for control in self.controls if control.outcome is not Outcome.PASS]
        return self.reason or (f"not caught: {', '.join(unseen)}" if unseen else None)

    def to_json(self) -> dict[str, JsonValue]:
        """The rung in `rungs`."""
        reason: dict[str, JsonValue] = {"reason": self.why} if self.why else {}
        return {"outcome": str(self.outcome), **reason, "controls": [control.to_json() for control in self.controls]}


def not_run(why: str) -> RungReport:
    """The report of a rung that was not climbed."""
    return RungReport(Outcome.NOT_RUN, why)
