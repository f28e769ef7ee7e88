"""The decode rates that a source-backed explainer quotes, held against the file that it quotes them from.

A definition in words is none: where the file is at hand, its operands say which definition the number follows.
"""

from collections.abc import Mapping
from typing import Final

from countermark.attestations.codes import Code, Outcome, Severity
from countermark.contracts.adapters.campaign import arm_rate, few_pairs, one_run_each, output_band
from countermark.contracts.adapters.explainer_arms import Arm, scope_of
from countermark.contracts.adapters.fields import Field, shown
from countermark.contracts.adapters.notes import Notes, settle
from countermark.contracts.adapters.rates import DECODE, FORMULAS, Operands, close, middle
from countermark.contracts.adapters.reading import Claim

DENOMINATORS: Final = {"completion tokens / (wall minus measured TTFT); estimated decode": "decode.all"}
"""The metric definitions as these reports put them in words."""


def rate_claim(notes: Notes, arm: Arm, source: Field | None) -> None:
    """The claim of an arm's decode rate: research-only, for it is a point observation of one boot."""
    value, stated = arm.result["value"], arm.conditions["metric_denominator"]
    declared = DENOMINATORS.get(stated.text or "")
    if declared is None:
        notes.refuse(stated, f"{shown(stated.value)} is no definition that this adapter knows")
    checks = _quoted(notes, arm, source, declared) if source else []
    for key, checker in (("runtime_execution_revision", "bench.execution-revision"), ("experiment_date", "bench.date-window")):
        if not arm.conditions[key].present:
            _lacks(notes, arm.conditions[key], checker)
    if not arm.result["uncertainty"].present:
        _lacks(notes, arm.result["uncertainty"], "bench.uncertainty")
    if arm.conditions["quality_passed"].flag is not True:
        notes.warn(
            arm.conditions["quality_passed"],
            Code.CLAIM_EXCEEDS,
            "bench.quality-attached",
            required="the quality verdict of the same deployment as a pass",
            observed=shown(arm.conditions["quality_passed"].value),
            fix="do not quote the rate without its quality verdict",
        )
    if value.number is None:
        notes.refuse(value, "no number")
    elif arm.named:
        scope = scope_of(arm, arm.named)
        outcome = settle(Outcome.PASS, checks=checks)
        notes.claims.append(Claim("decode.rate", outcome, scope, value.pointer, research_only=True, derived=arm.named.derived))


def _quoted(notes: Notes, arm: Arm, source: Field, declared: str | None) -> list[Outcome]:
    """The value against the file that it is quoted from, and its definition in words against that file's operands."""
    value, median = arm.result["value"], source["median_decode_est_tps"]
    line = arm.result["source_line"]
    same = notes.hold(
        value.number == median.number,
        value,
        "evidence.refs-resolve",
        required=f"{shown(median.value)}, as {median.at}",
        observed=shown(value.value),
        fix="quote the value as the source has it",
    )
    notes.hold(
        line.integer == median.at.line if line.present else None,
        line,
        "evidence.refs-resolve",
        required=f"line {median.at.line} of {median.at.file}",
        observed=shown(line.value),
        fix="point at the line of the value",
    )
    operands = [found for row in source["rows"].elements if (found := Operands.of(row))]
    counts, quoted = [one.completion for one in operands], arm.conditions["actual_completion_tokens_by_prompt"]
    tokens = notes.hold(
        counts == quoted.value if quoted.present else None,
        quoted,
        "evidence.refs-resolve",
        required=f"{counts}, as {source['rows'].at}",
        observed=shown(str(quoted.value)),
        fix="quote the token counts as the source has them",
    )
    outcome = arm_rate(notes, source)
    if declared and outcome is Outcome.PASS and value.number is not None and not close(value.number, middle(operands, declared)):
        _misdeclared(notes, arm, value.number, declared, operands)
    return [same, tokens, *([Outcome.FAIL] if outcome is not Outcome.PASS else [])]


def _misdeclared(notes: Notes, arm: Arm, value: float, declared: str, operands: list[Operands]) -> None:
    """The number is right and its definition in words is not: both are told, with both values."""
    other = next((name for name in DECODE if close(value, middle(operands, name))), "no definition here")
    notes.find(
        arm.conditions["metric_denominator"],
        Code.RECORD_CONTRADICTED,
        "bench.denominator-declared",
        Severity.BLOCK,
        Outcome.FAIL,
        required=f"{declared} = {FORMULAS[declared]}, as stated: {middle(operands, declared):.4f}",
        observed=f"{value:.4f}, which is {other} = {FORMULAS.get(other, '')}",
        fix=f"declare {other}",
    )
    notes.find(
        arm.result["value"],
        Code.RECORD_CONTRADICTED,
        "bench.recompute",
        Severity.WARN,
        Outcome.FAIL,
        required=f"{middle(operands, declared):.4f} by the stated definition",
        observed=f"{value:.4f}",
        fix=f"keep the value and declare {other}",
    )


def _lacks(notes: Notes, at: Field, checker: str) -> None:
    notes.warn(at, Code.RECORD_UNMAPPED, checker, required="a recorded value", observed="not recorded", fix="record it in the next run")


def across_arms(notes: Notes, root: Field, arms: Mapping[str, Arm]) -> None:
    """What the token counts of all arms leave of a comparison."""
    counts = {
        name: [item.count or 0 for item in arm.conditions["actual_completion_tokens_by_prompt"].elements] for name, arm in arms.items()
    }
    told = {name: found for name, found in counts.items() if found}
    output_band(notes, root["reported_results"], {name: sum(found) for name, found in told.items()})
    if told:
        tasks = min(map(len, told.values()))
        few_pairs(notes, root["reported_results"], tasks)
        one_run_each(notes, root["reported_results"], tasks)
