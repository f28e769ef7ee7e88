"""The arms of a source-backed explainer, each with its conditions, and the campaign's own file where that is at hand."""

import re
from dataclasses import dataclass
from typing import Final

from countermark.attestations.located import JsonValue
from countermark.contracts.adapters.fields import Field
from countermark.contracts.adapters.images import Named, named_image
from countermark.contracts.adapters.notes import Case, Notes

_TP: Final = re.compile(r"TP([1-9][0-9]{0,5})\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm: its name, its quality comparison, its reported decode rate, and the image that ran."""

    variant: str
    quality: Field
    result: Field
    named: Named | None

    @property
    def conditions(self) -> Field:
        """Under which its rate was measured."""
        return self.result["conditions"]


def arms_of(case: Case, notes: Notes) -> dict[str, Arm]:
    """The arms by name. The results of an arm are those at its draft depth; of several, the one that its label names."""
    found: dict[str, Arm] = {}
    results = [item for item in case.root["reported_results"].elements if item["metric"].text == "decode_rate"]
    for quality in case.root["quality_comparisons"].elements:
        variant, depth = quality["variant"].text or "", quality["speculative_tokens"].count
        same = [item for item in results if depth is not None and item["conditions"]["draft_tokens"].count == depth]
        named = [item for item in same if (item["label"].text or "").startswith(f"{variant} ")]
        mine = same if len(same) == 1 else named
        if len(mine) == 1 and variant and variant not in found:
            image = named_image(case, notes, mine[0]["conditions"]["executed_image_digest"], None)
            found[variant] = Arm(variant, quality, mine[0], image)
        else:
            notes.refuse(quality, "no single reported result is of this arm, so its image is not recorded")
    return found


def campaign_of(case: Case) -> Field | None:
    """The campaign's own file, where the results name one by hash that is at hand."""
    quoted = {item["source_document_sha256"].hex64 for item in case.root["reported_results"].elements}
    files = [file for file in case.files.values() if file.digest.hex in quoted]
    return Field.of(files[0]) if files else None


def arm_in(campaign: Field | None, arm: Arm) -> Field | None:
    """The arm of that name in the campaign's file."""
    arms = campaign.elements if campaign else ()
    return next((item for item in arms if item["variant"].text == arm.variant), None)


def scope_of(arm: Arm, named: Named, context_tokens: int | None = None) -> dict[str, JsonValue]:
    """What the conditions of an arm state; what they do not state is left out."""
    conditions, tp = arm.conditions, _TP.match(arm.conditions["parallelism"].text or "")
    depth = conditions["draft_tokens"].count
    cell: dict[str, JsonValue] = {
        "context_tokens": context_tokens,
        "concurrency": conditions["concurrency"].positive,
        "draft_tokens": depth,
    }
    no_draft = depth == 0 and not conditions["drafter"].present
    scope: dict[str, JsonValue] = {
        "image": str(named.image),
        "topology": {"tp": int(tp[1])} if tp else None,
        "nodes": conditions["node_count"].positive,
        "model": _pinned(conditions["model_artifact"], conditions["model_revision"]),
        "draft": {"repository": "none", "revision": "none"} if no_draft else _pinned(conditions["drafter"], conditions["drafter_revision"]),
        "cells": [{name: value for name, value in cell.items() if value is not None}],
    }
    return {name: value for name, value in scope.items() if value is not None}


def _pinned(repository: Field, revision: Field) -> JsonValue:
    return {"repository": repository.text, "revision": revision.git_id} if repository.text and revision.git_id else None
