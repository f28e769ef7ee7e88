"""The quality report of one arm of a campaign: `{probes, strict_failures, all_checks_passed, …}`, no schema id.

It names neither its image nor its draft depth; bindings do. What is not bound is not recorded, and a failure then counts for all of it.
"""

from countermark.attestations.located import JsonValue
from countermark.contracts.adapters.base import Adapter
from countermark.contracts.adapters.fields import Field
from countermark.contracts.adapters.images import named_image
from countermark.contracts.adapters.notes import Case, Notes
from countermark.contracts.adapters.reading import Claim
from countermark.contracts.adapters.strict_output import RULES, judge_failures, skipped_roll_ups, tell_failures
from countermark.contracts.adapters.tables import Table


class QualityReport(Adapter):
    """Reads the strict failures; the roll-ups are held against them and make no claim."""

    name = "campaign-quality-report"
    version = 1
    tables = (
        Table(
            ("in the report", "gives"),
            (
                ("`strict_failures` with one that fails", "`output.contract` fail"),
                ("`strict_failures` empty and `all_checks_passed` true", "`output.contract` pass"),
                ("`long_context_passed`", "refused: it states no length"),
            ),
        ),
        RULES,
    )

    def recognises(self, root: Field) -> bool:
        """An object with what makes such a report."""
        return isinstance(root.value, dict) and {"probes", "strict_failures", "all_checks_passed"} <= root.value.keys()

    def schema(self, root: Field) -> str:
        """None is stated."""
        del root
        return "none stated; an object with probes, strict_failures and all_checks_passed"

    def read(self, case: Case, notes: Notes) -> None:
        """One claim."""
        root = case.root
        named = named_image(case, notes, root["image"], None)
        judged = judge_failures(notes, root, root["all_checks_passed"])
        skipped_roll_ups(notes, root, judged)
        tell_failures(notes, judged)
        if root["long_context_passed"].present:
            notes.refuse(root["long_context_passed"], "a roll-up that states no length of an input")
        if named:
            scope: dict[str, JsonValue] = {"image": str(named.image), "cells": [{}]}
            notes.claims.append(Claim("output.contract", judged.outcome, scope, "/strict_failures", derived=named.derived))
