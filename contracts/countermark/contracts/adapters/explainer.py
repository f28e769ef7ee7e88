"""A report about somebody's campaign that pins its sources by hash: `record_type: source_backed_explainer`, version 1.0.0.

Its numbers are quoted, and where the quoted file is at hand they are computed again from that file's operands. It names the image by a
digest without a kind, which a binding states.
"""

from collections.abc import Iterable, Mapping

from countermark.attestations.codes import Outcome
from countermark.attestations.located import JsonValue
from countermark.contracts.adapters.base import Adapter
from countermark.contracts.adapters.explainer_arms import Arm, arm_in, arms_of, campaign_of, scope_of
from countermark.contracts.adapters.explainer_rates import DENOMINATORS, across_arms, rate_claim
from countermark.contracts.adapters.fields import Field, shown
from countermark.contracts.adapters.notes import Case, Notes, settle
from countermark.contracts.adapters.reading import SOURCE_REPORTED, Claim, Reference
from countermark.contracts.adapters.strict_output import RULES, judge_failures, same_failures, skipped_roll_ups, tell_failures
from countermark.contracts.adapters.tables import Table


class Explainer(Adapter):
    """Reads each arm: retrieval, output contract, decode rate."""

    name = "source-backed-explainer"
    version = 2
    tables = (
        Table(
            ("in the record", "gives"),
            (
                (
                    "`long_context_cases/*`, each of `arms`, `exact_all_three_markers` true",
                    "`longcontext.retrieval` pass at `actual_input_tokens`, the arm's concurrency and draft",
                ),
                ("`quality_comparisons/*/strict_failures` with one that fails", "`output.contract` fail at draft `speculative_tokens`"),
                ("`quality_comparisons/*` without one and `quality_passed` true", "`output.contract` pass there"),
                (
                    "`reported_results/*` with metric `decode_rate`",
                    "`decode.rate` pass at the arm's concurrency and draft, `research-only`",
                ),
                (
                    "`quality_comparisons/*/semantic_checks_passed` behind a failure that stopped the run",
                    "refused: a roll-up over checks that did not run",
                ),
                ("`executed_image_digest`", "the image; its kind is stated by --bind"),
            ),
        ),
        Table(
            ("`metric_denominator` in words", "definition"),
            (*((f"`{words}`", f"`{name}`") for words, name in DENOMINATORS.items()), ("anything else", "refused")),
        ),
        RULES,
    )

    def recognises(self, root: Field) -> bool:
        """The record type and version."""
        return root["record_type"].text == "source_backed_explainer" and root["schema_version"].text == "1.0.0"

    def schema(self, root: Field) -> str:
        """Record type and version."""
        return f"{root['record_type'].text} {root['schema_version'].text}"

    def references(self, root: Field) -> Iterable[Reference]:
        """The documents that it pins."""
        pinned = [item["document_sha256"] for key in ("sources", "supplemental_sources") for item in root[key].elements]
        return [Reference(item.pointer, item.hex64) for item in pinned if item.hex64]

    def published(self, root: Field) -> Mapping[str, JsonValue] | None:
        """The path that it gives itself."""
        path = root["path"].text
        return {"repository": None, "revision": None, "path": path} if path else None

    def evidence_state(self, root: Field) -> Mapping[str, JsonValue]:
        """As it states it; what it leaves out was not reproduced by anybody."""
        runs = root["conditions"]["independent_site_runs"].count
        return {
            **SOURCE_REPORTED,
            "source_reported": root["evidence_state"].text == "source_reported",
            "site_reproduced": root["site_reproduced"].flag is True,
            "independent_runs": runs or 0,
        }

    def read(self, case: Case, notes: Notes) -> None:
        """Claims by arm, in the order of the sections of the record."""
        arms, campaign = arms_of(case, notes), campaign_of(case)
        for retrieval in case.root["long_context_cases"].elements:
            _retrieval(notes, retrieval, arms)
        for arm in arms.values():
            _contract(notes, arm, arm_in(campaign, arm))
        for arm in arms.values():
            rate_claim(notes, arm, arm_in(campaign, arm))
        across_arms(notes, case.root, arms)
        _state(notes, case.root)


def _retrieval(notes: Notes, retrieval: Field, arms: Mapping[str, Arm]) -> None:
    exact, tokens, limit = retrieval["exact_all_three_markers"], retrieval["actual_input_tokens"], retrieval["configured_limit_tokens"]
    if exact.flag is None or tokens.count is None:
        notes.refuse(retrieval, "no tested length, or no result at it")
        return
    within = None if limit.count is None else tokens.count <= limit.count
    words = {"required": f"at most {shown(limit.value)} tokens, as configured", "observed": f"{tokens.count} tokens"}
    fits = notes.hold(within, tokens, "bench.tested-vs-configured", **words, fix="record the length that was tested")
    for item in retrieval["arms"].elements:
        arm = arms.get(item.text or "")
        if arm is None:
            notes.refuse(item, "no arm of that name has conditions here")
        elif arm.named:
            passed = arm.quality["long_context_passed"]
            agrees = notes.hold(
                passed.flag is exact.flag if passed.present else None,
                passed,
                "quality.aggregate-consistent",
                required=f"{shown(exact.value)}, as {retrieval.pointer} reports of {arm.variant}",
                observed=shown(passed.value),
                fix="sum up what the case reports",
            )
            outcome = settle(Outcome.PASS if exact.flag else Outcome.FAIL, checks=[fits, agrees])
            scope = scope_of(arm, arm.named, context_tokens=tokens.count)
            notes.claims.append(Claim("longcontext.retrieval", outcome, scope, retrieval.pointer, derived=arm.named.derived))
    for key in ("full_window_tested", "general_long_context_reasoning_proven"):
        if retrieval[key].flag is False:
            notes.limit(retrieval[key], f"{key}: false")


def _contract(notes: Notes, arm: Arm, source: Field | None) -> None:
    judged = judge_failures(notes, arm.quality, arm.quality["quality_passed"])
    skipped_roll_ups(notes, arm.quality, judged)
    tell_failures(notes, judged)
    listed, against = arm.quality["strict_failures"], [judged.outcome]
    agrees = Outcome.NOT_RUN
    if source:
        against.append(judge_failures(notes, source, source["quality_passed"]).outcome)
        agrees = notes.hold(
            same_failures(listed.elements, source["strict_failures"].elements),
            listed,
            "quality.aggregate-consistent",
            required=f"the failures that {source.at.file} lists for {arm.variant}",
            observed=f"{len(listed.elements)} failures, or others",
            fix="quote what the source lists",
        )
    if arm.named:
        scope: dict[str, JsonValue] = {"image": str(arm.named.image), "cells": [{"draft_tokens": arm.quality["speculative_tokens"].count}]}
        outcome = settle(Outcome.PASS, against, [agrees])
        notes.claims.append(Claim("output.contract", outcome, scope, listed.pointer, derived=arm.named.derived))


def _state(notes: Notes, root: Field) -> None:
    """What the report says of itself, each a limitation."""
    conditions = root["conditions"]
    refusing = (root["site_reproduced"], root["performance_ranking_allowed"], conditions["production_ready"])
    for item in refusing:
        if item.flag is False:
            notes.limit(item, f"{item.pointer.rpartition('/')[2]}: false")
