"""A campaign that compares arms of one image over the same prompts: a list of `{variant, speculative_tokens, rows, …}`, no schema id.

It names no image; a binding does. Beside each arm lies its quality report, in the folder of the arm's name.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from countermark.attestations.codes import Code, Outcome, Severity
from countermark.attestations.located import JsonValue
from countermark.contracts.adapters.base import Adapter
from countermark.contracts.adapters.fields import Field, shown
from countermark.contracts.adapters.images import Named, named_image
from countermark.contracts.adapters.notes import Case, Notes, settle
from countermark.contracts.adapters.rates import DECODE, FORMULAS, Operands, close, end_to_end, middle, recomputing
from countermark.contracts.adapters.reading import Claim, Reference
from countermark.contracts.adapters.strict_output import RULES, judge_failures, same_failures, skipped_roll_ups, tell_failures
from countermark.contracts.adapters.tables import Table
from countermark.contracts.measurements.serving_claim import MIN_BOOTS, MIN_REPEATS

REPORT: Final = "quality-report.json"
BAND: Final = 0.10
"""How far the total output of two arms may differ before their rates are no ratio."""
_SIGNIFICANT_N: Final = 6
"""With fewer pairs no two-sided sign test reaches 5 %: four give 0.125."""


class Campaign(Adapter):
    """Reads each arm: its rates from their operands, its strict failures from their texts."""

    name = "campaign-comparison"
    version = 2
    tables = (
        Table(
            ("in an arm", "gives"),
            (
                ("`strict_failures` with one that fails", "`output.contract` fail at draft `speculative_tokens`"),
                ("`strict_failures` empty and `quality_passed` true", "`output.contract` pass there"),
                (
                    "`rows`, `median_decode_est_tps` under one definition",
                    "`decode.rate` pass at draft `speculative_tokens`, `research-only`",
                ),
                ("`long_context_passed`", "refused: it states no length"),
                ("`semantic_checks_passed` behind a failure that stopped the run", "refused: a roll-up over checks that did not run"),
            ),
        ),
        Table(("definition", "formula"), tuple((f"`{name}`", FORMULAS[name]) for name in DECODE)),
        RULES,
    )

    def recognises(self, root: Field) -> bool:
        """A list whose every element has what makes an arm."""
        keys = ("variant", "speculative_tokens", "rows", "strict_failures")
        return bool(root.elements) and all(isinstance(arm.value, dict) and set(keys) <= arm.value.keys() for arm in root.elements)

    def schema(self, root: Field) -> str:
        """None is stated."""
        del root
        return "none stated; a list of arms with variant, speculative_tokens, rows and strict_failures"

    def references(self, root: Field) -> Iterable[Reference]:
        """The quality report of each arm, by the place where it lies; its digest is not stated."""
        arms = [arm["variant"] for arm in root.elements]
        return [Reference(arm.pointer, None, f"{arm.text}/{REPORT}", by_name=True) for arm in arms if arm.text]

    def read(self, case: Case, notes: Notes) -> None:
        """Two claims for each arm."""
        named = named_image(case, notes, case.root["image"], None)
        for arm in case.root.elements:
            judged = judge_failures(notes, arm, arm["quality_passed"])
            skipped_roll_ups(notes, arm, judged)
            tell_failures(notes, judged)
            contract = settle(judged.outcome, *_reported(case, notes, arm))
            if arm["long_context_passed"].present:
                notes.refuse(arm["long_context_passed"], "a roll-up that states no length of an input")
            rate = arm_rate(notes, arm)
            if named:
                notes.claims.append(_claim("output.contract", contract, named, arm, arm["strict_failures"], lowered=False))
                notes.claims.append(_claim("decode.rate", rate, named, arm, arm["median_decode_est_tps"], lowered=True))
        output_band(notes, case.root, {shown(arm["variant"].value): _total(arm) for arm in case.root.elements})


def _claim(capability: str, outcome: Outcome, named: Named, arm: Field, source: Field, *, lowered: bool) -> Claim:
    depth = arm["speculative_tokens"].count
    scope: dict[str, JsonValue] = {"image": str(named.image), "cells": [{} if depth is None else {"draft_tokens": depth}]}
    return Claim(capability, outcome, scope, source.pointer, research_only=lowered, derived=named.derived)


def _reported(case: Case, notes: Notes, arm: Field) -> tuple[list[Outcome], list[Outcome]]:
    """What the quality report of an arm shows, and whether the arm sums it up; nothing where it is not at hand."""
    report = case.file(arm["variant"])
    if report is None:
        return [], []
    listed = report["strict_failures"]
    agrees = notes.hold(
        same_failures(arm["strict_failures"].elements, listed.elements),
        listed,
        "quality.aggregate-consistent",
        required=f"the {len(arm['strict_failures'].elements)} failures of the arm {shown(arm['variant'].value)}",
        observed=f"{len(listed.elements)} failures, or others",
        fix="sum up what the report lists",
    )
    return [judge_failures(notes, report, report["all_checks_passed"]).outcome], [agrees]


def arm_rate(notes: Notes, arm: Field) -> Outcome:
    """Whether the rates of an arm follow from its operands, and under which definition; each row, then their median."""
    rows = arm["rows"].elements
    operands = [found for row in rows if (found := Operands.of(row))]
    if not rows or len(operands) < len(rows):
        notes.refuse(arm["rows"], "a row without tokens, wall time and time to first token: nothing can be computed again")
        return Outcome.INCONCLUSIVE
    fitting = recomputing(operands, [row["decode_est_tps"].number for row in rows])
    value = arm["median_decode_est_tps"]
    agreeing = [name for name in fitting if close(value.number, middle(operands, name))]
    checks = [_recomputes(notes, value, fitting, agreeing, operands)]
    for row, one in zip(rows, operands, strict=True):
        checks.append(_end_to_end(notes, row, one))
    if agreeing:
        notes.find(
            value,
            Code.RECORD_UNMAPPED,
            "bench.denominator-declared",
            Severity.INFO,
            Outcome.NOT_APPLICABLE,
            required="a definition of the closed list",
            observed=f"{len(rows)} of {len(rows)} rows are {' and '.join(f'{name} = {FORMULAS[name]}' for name in agreeing)}",
            fix="declare the definition beside the value",
        )
    _coherent(notes, arm["speculative_counters"], arm["speculative_tokens"])
    _few(notes, arm, len(rows))
    return settle(Outcome.PASS, checks=checks)


def _recomputes(notes: Notes, value: Field, fitting: list[str], agreeing: list[str], operands: list[Operands]) -> Outcome:
    computed = ", ".join(f"{middle(operands, name):.6f} by {name}" for name in fitting or DECODE)
    what = "the median" if fitting else "each row's rate"
    return notes.hold(
        bool(agreeing),
        value,
        "bench.recompute",
        required=f"{what} from its operands: {computed}",
        observed=shown(value.value),
        fix="publish the rates as they compute",
    )


def _end_to_end(notes: Notes, row: Field, operands: Operands) -> Outcome:
    stated, wanted = row["end_to_end_tps"], end_to_end(operands)
    return notes.hold(
        close(stated.number, wanted) if stated.present else None,
        stated,
        "bench.recompute",
        required=f"{wanted:.6f} by e2e.request = {FORMULAS['e2e.request']}",
        observed=shown(stated.value),
        fix="publish the rates as they compute",
    )


def _coherent(notes: Notes, counters: Field, depth: Field) -> None:
    """Drafted tokens are depth times drafts; acceptance and mean length follow from the accepted ones."""
    drafts, drafted, accepted = (counters[name].number for name in ("num_drafts", "num_draft_tokens", "num_accepted_tokens"))
    if drafts is None or drafted is None or accepted is None or depth.number is None:
        return
    rate, length = counters["acceptance_rate"].number, counters["mean_acceptance_length"].number
    holds = (
        accepted <= drafted == depth.number * drafts
        and (rate is None or (drafted > 0 and close(rate, accepted / drafted)))
        and (length is None or (drafts > 0 and close(length, 1 + accepted / drafts)))
    )
    words = {
        "required": f"{shown(depth.value)} x drafts drafted, rate and length by the accepted",
        "observed": f"{drafts:.0f} drafts, {drafted:.0f} drafted, {accepted:.0f} accepted",
    }
    notes.hold(holds, counters, "metric.speculation-coherent", **words, fix="record the counters of one run")


def _few(notes: Notes, arm: Field, n: int) -> None:
    """What keeps the rate of an arm from being more than a research result."""
    if arm["quality_passed"].flag is not True:
        notes.warn(
            arm["quality_passed"],
            Code.CLAIM_EXCEEDS,
            "bench.quality-attached",
            required="the quality verdict of the same deployment as a pass",
            observed=shown(arm["quality_passed"].value),
            fix="do not quote the rate without its quality verdict",
        )
    few_pairs(notes, arm["rows"], n)
    one_run_each(notes, arm["rows"], n)


def few_pairs(notes: Notes, at: Field, n: int) -> None:
    """Warn where arms have so few prompts in common that no difference between them can be significant."""
    if n < _SIGNIFICANT_N:
        notes.warn(
            at,
            Code.RUNS_TOO_FEW,
            "bench.attainable-significance",
            required=f"{_SIGNIFICANT_N} pairs, of which a sign test can reach 5 %",
            observed=f"n = {n}, different prompts of one arm",
            fix="repeat each prompt over several boots",
        )


def one_run_each(notes: Notes, at: Field, tasks: int) -> None:
    """Warn that several prompts are no repetitions of one: each ran once, and the server was started once or nobody says how often."""
    notes.warn(
        at,
        Code.RUNS_TOO_FEW,
        "bench.repetitions",
        required=f"{MIN_REPEATS} runs of each task, over {MIN_BOOTS} server starts",
        observed=f"{tasks} different prompts, each once; no server start is named",
        fix="repeat each prompt over several server starts, and record which ran in which",
    )


def output_band(notes: Notes, at: Field, totals: Mapping[str, int]) -> None:
    """Warn where the arms gave unequal output in total, which makes the ratio of two rates no speed-up."""
    known = {name: total for name, total in totals.items() if total}
    if len(known) > 1 and max(known.values()) * (1 - BAND) > min(known.values()):
        notes.warn(
            at,
            Code.CLAIM_EXCEEDS,
            "bench.output-length-band",
            required=f"total output of all arms within {BAND:.0%}",
            observed=", ".join(f"{name} {total} tokens" for name, total in known.items()),
            fix="claim no speed-up across these arms",
        )


def _total(arm: Field) -> int:
    return sum(row["usage"]["completion_tokens"].count or 0 for row in arm["rows"].elements)
