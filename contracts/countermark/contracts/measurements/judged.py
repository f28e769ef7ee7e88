"""A benchmark run judged: what contradicts itself, what a serving claim still lacks, and the controls of the claim.

One function for everybody who asks: `verify evidence`, `record benchmark`, `endorse`, and the gate when it computes a receipt again.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from countermark.attestations.codes import Outcome, Severity
from countermark.attestations.errors import InputError
from countermark.attestations.located import JsonValue
from countermark.attestations.outcomes import quality_outcome, roll_up
from countermark.contracts.measurements.broken import Broken
from countermark.contracts.measurements.consistency import contradictions
from countermark.contracts.measurements.run import BenchmarkRun
from countermark.contracts.measurements.serving_claim import Quality, controls, limits

CAPABILITY = {"decode.excl-first": "decode.rate", "decode.all": "decode.rate"}
"""The capability that a run of a definition can show; the catalogue has none for the others."""


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """The run, what speaks against it, what it lacks for a claim, and the controls that its operands show."""

    run: BenchmarkRun
    contradictions: tuple[Broken, ...]
    limits: tuple[Broken, ...]
    controls: Mapping[str, Outcome]

    @property
    def capability(self) -> str | None:
        """What it can show."""
        return CAPABILITY.get(self.run.definition)

    @property
    def outcome(self) -> Outcome:
        """The outcome of the claim. A failed control fails it; anything else that is missing or broken leaves it inconclusive."""
        if self.contradictions:
            return Outcome.INCONCLUSIVE
        blocked = any(item.severity is Severity.BLOCK for item in self.limits)
        return roll_up([*self.controls.values(), Outcome.INCONCLUSIVE if blocked else Outcome.PASS])


def judge(predicate: Mapping[str, JsonValue], quality: JsonValue = None) -> JudgedRun:
    """Judge a run; `quality` is the predicate of the quality report that it names, where that is at hand.

    `InputError` for what is no benchmark-run.
    """
    run = BenchmarkRun.of(predicate)
    attached = predicate.get("quality") is not None
    known = Quality(attached, quality_outcome(quality) if attached and quality is not None else None)
    against = tuple(contradictions(run))
    return JudgedRun(run, against, tuple(limits(run, known)), {} if against else controls(run, known))


def judged(predicate: Mapping[str, JsonValue], quality: JsonValue = None) -> JudgedRun | None:
    """As `judge`; none for what is no benchmark-run. For readers of statements that no schema has seen."""
    try:
        return judge(predicate, quality)
    except InputError:
        return None
