"""Failures of strict output rules, judged again from the texts that are recorded, and the roll-ups that campaigns keep beside them.

Two shapes are published: a probe with its requirement and what was seen, and an early stop with an error. What a stop kept from
running was skipped: it is neither a pass nor a fail, whatever a roll-up over it says.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from countermark.attestations.codes import Code, Outcome, Severity
from countermark.contracts.adapters.fields import Field, shown
from countermark.contracts.adapters.notes import Notes
from countermark.contracts.adapters.tables import Table
from countermark.contracts.quality.rules import hold

_EXACT: Final = re.compile(r"Final content exactly (.+)\Z", re.DOTALL)
_FENCE: Final = "Only Python code, no Markdown fence"
_ONE_BLOCK: Final = "Expected one code block"
_KNOWN: Final = {_FENCE: "no-fence", _ONE_BLOCK: "one-code-block"}

RULES: Final = Table(
    ("requirement or error", "rule over the raw response"),
    (
        ("`Final content exactly X`", "`exact`: the whole response is X"),
        (f"`{_FENCE}`", "`no-fence`: no Markdown fence in it"),
        (f"`{_ONE_BLOCK}`", "`one-code-block`: one fenced block and nothing else"),
        ("anything else", "refused; a stated failure stands"),
    ),
)


@dataclass(frozen=True, slots=True)
class StrictFailure:
    """One listed failure: what it demands, whether it stopped the run, and its outcome computed again."""

    at: Field
    probe: str
    demand: str
    category: str | None
    stops: bool
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Judged:
    """The strict rules of one arm or report: its failures, and the outcome of all its raw responses."""

    failures: tuple[StrictFailure, ...]
    outcome: Outcome


def judge_failures(notes: Notes, record: Field, passed: Field) -> Judged:
    """Judge `strict_failures` of a record; `passed` is its roll-up, which only ever lowers what the list gives."""
    failures = tuple(_failure(notes, item) for item in record["strict_failures"].elements)
    if any(failure.outcome is Outcome.FAIL for failure in failures):
        _aggregate(notes, passed, False, f"{len(failures)} strict failures are listed")
        return Judged(failures, Outcome.FAIL)
    if not failures and isinstance(record["strict_failures"].value, list) and passed.flag is True:
        return Judged(failures, Outcome.PASS)
    if not failures:
        notes.refuse(passed, "no strict failure is listed that says why, and it does not say that all passed")
    return Judged(failures, Outcome.INCONCLUSIVE)


def tell_failures(notes: Notes, judged: Judged) -> None:
    """Each failure as a finding, for a receipt to carry on."""
    for failure in judged.failures:
        if failure.outcome is Outcome.FAIL:
            notes.find(
                failure.at,
                Code.CAP_FAILED,
                "quality.output-contract",
                Severity.WARN,
                Outcome.FAIL,
                required=f"{failure.probe}: {failure.demand}",
                observed=shown(failure.at["observed"].value)
                if failure.at["observed"].present
                else "another form; the response is not recorded",
                fix="a response that has to be repaired does not keep the contract; qualify the image for another one",
            )


def skipped_roll_ups(notes: Notes, record: Field, judged: Judged) -> None:
    """Refuse the roll-ups of the categories in which a failure stopped the run: the later checks were skipped, not measured."""
    for failure in judged.failures:
        roll_up = record[f"{failure.category}_checks_passed"]
        if failure.stops and failure.category and roll_up.present:
            notes.refuse(roll_up, "a roll-up over checks that did not run")
            notes.find(
                roll_up,
                Code.EVIDENCE_INCONCLUSIVE,
                "quality.skipped-declared",
                Severity.WARN,
                Outcome.SKIPPED,
                required=f"each {failure.category} check after {failure.probe} as skipped, with its cause",
                observed=f"{failure.category} checks after {failure.probe}: skipped, not measured",
                fix="record a check that did not run as skipped, and name what stopped it",
            )
        elif failure.category and not failure.stops and failure.outcome is Outcome.FAIL and roll_up.flag is True:
            _aggregate(notes, roll_up, False, f"{failure.probe} of this category failed")


def _aggregate(notes: Notes, roll_up: Field, wanted: bool, why: str) -> None:
    notes.hold(
        roll_up.flag is wanted if roll_up.present else None,
        roll_up,
        "quality.aggregate-consistent",
        required=f"{str(wanted).lower()}: {why}",
        observed=shown(roll_up.value),
        fix="compute the roll-up from its checks, or leave it out",
    )


def _failure(notes: Notes, item: Field) -> StrictFailure:
    demand = item["requirement"].text or item["error"].text or "a rule that is not recorded"
    rule, observed, stated = _rule(demand), item["observed"].text, item["passed"].flag
    computed = rule(observed) if rule and observed is not None else None
    if rule is None:
        notes.refuse(item, f"{shown(demand)} is no rule that this adapter knows")
    notes.hold(
        None if stated is None else stated is bool(computed),
        item["passed"],
        "quality.aggregate-consistent",
        required=f"{str(bool(computed)).lower()}, as the response against {shown(demand)} computes to",
        observed=shown(stated),
        fix="compute it from the response, or leave it out",
    )
    outcome = Outcome.INCONCLUSIVE if computed else Outcome.FAIL
    return StrictFailure(
        item, item["probe"].text or "a probe without a name", shown(demand), item["category"].text, item["error"].present, outcome
    )


def _rule(demand: str) -> Callable[[str], bool] | None:
    """The rule of a demand, over the raw response."""
    exact = _EXACT.match(demand)
    rule, required = ("exact", exact[1]) if exact else (_KNOWN.get(demand), demand)
    if rule is None:
        return None
    name = rule
    return lambda response: hold(name, required, response.encode()).outcome is Outcome.PASS


def same_failures(left: Sequence[Field], right: Sequence[Field]) -> bool:
    """Whether two lists of failures say the same."""
    return [item.value for item in left] == [item.value for item in right]
