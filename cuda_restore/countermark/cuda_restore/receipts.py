"""What a climb is worth: the qualification receipts that may be derived from its run, and nothing beyond what it tested.

`restore.structural` rests on rungs 1 to 3; `restore.correctness` on rung 5 and a real device as well. Who placed the bytes stands in the
run, so a receipt of a CPU shows a gate that the code works, never that a server's restore does.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.digests import Digest
from countermark.attestations.errors import InputError
from countermark.attestations.located import JsonValue
from countermark.attestations.outcomes import roll_up
from countermark.attestations.times import Instant
from countermark.cuda_restore.device import DeviceKind
from countermark.cuda_restore.faults import FAULTS
from countermark.cuda_restore.ladder import Qualification
from countermark.cuda_restore.qualified_ranks import SignedRoot
from countermark.cuda_restore.restore_plan import RestorePlan
from countermark.cuda_restore.restore_run import least_device
from countermark.cuda_restore.rungs import Rung

STRUCTURAL: Final = "restore.structural"
CORRECTNESS: Final = "restore.correctness"
NOT_RECORDED: Final = "not-recorded"
CLEAN_SOURCE: Final = "clean-source"
RECOMPUTED: Final = frozenset(
    {
        "signed-root",
        "coverage",
        "readback",
        "all-ranks-structural",
        "one-image",
        "exact-answer",
        "recompute-control",
        "negative-control",
        "restore-happened",
    }
)
"""The controls that the gate recomputes from a restore-run. A clean source it recomputes from the `source/v1` that a receipt rests on
beside the run; a receipt with any other control is `reported`."""

_TOPOLOGY: Final = re.compile(r"TP(?P<tp>[0-9]+)/DCP(?P<dcp>[0-9]+)(?:/PP(?P<pp>[0-9]+))?")
_STRUCTURAL_RUNGS: Final = {"signed-root": Rung.SIGNED_ROOT, "coverage": Rung.COVERAGE, "readback": Rung.READBACK}
_DEVICE_LIMITS: Final = {
    DeviceKind.CPU: "The bytes were placed by the CPU device: this shows the engine's logic, and nothing about a GPU.",
    DeviceKind.SIMULATED: "The bytes were placed by a simulated driver: this shows the engine's calls, and nothing about a GPU.",
}


@dataclass(frozen=True, slots=True)
class Basis:
    """What the receipts rest on: the payload of the run and the outcome that computes from it, and when it was observed.

    `clean_source` is what is known of the engine's work tree, and `also` the payloads of the `source/v1` statements that show it.
    """

    run: Digest
    run_outcome: Outcome
    observed_from: Instant
    observed_to: Instant
    clean_source: Outcome | None = None
    also: tuple[Digest, ...] = field(default=())


def derive_receipts(found: Qualification, basis: Basis) -> tuple[dict[str, JsonValue], ...]:
    """The predicates `qualification-receipt/v1`, none without an image in the plan.

    A snapshot that is not what was signed for is never restored, so it says nothing about an image, good or bad: no receipt either.
    Raises `InputError` when the plan's scope claims what the run did not test.
    """
    if found.plan.image is None or found.rungs[Rung.SIGNED_ROOT].outcome is Outcome.FAIL:
        return ()
    scope = tested_scope(found.plan, found.signed)
    structural = _structural(found)
    receipts = []
    if structural:
        receipts.append(_receipt(STRUCTURAL, structural, found, scope, basis))
    correctness = _correctness(found, basis)
    if correctness:
        receipts.append(_receipt(CORRECTNESS, correctness, found, scope, basis))
    return tuple(receipts)


def tested_scope(plan: RestorePlan, signed: SignedRoot | None) -> dict[str, JsonValue]:
    """The plan's scope with what a run of it itself shows; `InputError` where the two differ."""
    told, shown = dict(plan.scope or {}), _shown(plan, signed)
    cells = told.pop("cells", None)
    for name, value in shown.items():
        _check_told(name, told.get(name), value)
    tested: dict[str, JsonValue] = {"context_tokens": plan.committed_tokens, "concurrency": 1}
    return {**told, **shown, "cells": [_cell(cell, tested) for cell in (cells if isinstance(cells, list) else [tested])]}


def _shown(plan: RestorePlan, signed: SignedRoot | None) -> dict[str, JsonValue]:
    shown: dict[str, JsonValue] = {"image": str(plan.image)}
    if signed:
        root = signed.root
        shown |= {"topology": {"tp": root.tp, "dcp": root.dcp, "pp": 1}, "ranks": root.tp, "publication_mode": root.publication_mode}
        shown |= {name: one.to_json() for name, one in (("model", root.model), ("draft", root.draft)) if one}
    return shown


def _cell(told: JsonValue, tested: dict[str, JsonValue]) -> JsonValue:
    """One cell of the plan's scope, which may add what the run does not know but not another length or concurrency."""
    cell = told if isinstance(told, dict) else {}
    for name, value in tested.items():
        _check_told(f"cells/{name}", cell.get(name), value)
    return {**cell, **tested}


def _check_told(name: str, told: JsonValue, shown: JsonValue) -> None:
    """Raise `InputError` where a plan says other than the run; what it leaves out or says null for, it does not say."""
    if isinstance(told, str) and isinstance(shown, dict):
        found = _TOPOLOGY.fullmatch(told)
        told = {leaf: int(text) for leaf, text in found.groupdict("1").items()} if found else told
    if isinstance(told, dict) and isinstance(shown, dict):
        for leaf, value in told.items():
            _check_told(f"{name}/{leaf}", value, shown.get(leaf))
    elif told not in (None, shown):
        message = f"the scope of the plan has {name} {told}, the run tests {shown}"
        raise InputError(Code.CLAIM_EXCEEDS, message, fix="write what is tested, or leave it out")


def _structural(found: Qualification) -> dict[str, str] | None:
    """The controls of a structural receipt; none unless all three rungs are in the plan."""
    if not {rung.number for rung in _STRUCTURAL_RUNGS.values()} <= set(found.plan.rungs):
        return None
    return {name: str(_settled(found.rungs[rung].outcome)) for name, rung in _STRUCTURAL_RUNGS.items()}


def _correctness(found: Qualification, basis: Basis) -> dict[str, str] | None:
    """The controls of a correctness receipt. A pass needs a real device; a wrong answer of a served model counts without one too."""
    if found.live is None:
        return None
    real = all(device.kind is DeviceKind.CUDA for device in found.devices)
    if not real and found.live.outcome is not Outcome.FAIL:
        return None
    images = {str(run.image) for run in found.ranks.verdict.runs}
    return {
        "all-ranks-structural": str(_all_ranks(found)),
        **{check.name: str(check.outcome) for check in found.live.checks},
        "one-image": str(Outcome.PASS if images == {str(found.plan.image)} else Outcome.FAIL),
        CLEAN_SOURCE: str(basis.clean_source) if basis.clean_source else NOT_RECORDED,
    }


def _all_ranks(found: Qualification) -> Outcome:
    bad = found.ranks.bad_ranks
    return roll_up(Outcome.FAIL if run.result.rank in bad else run.result.structural for run in found.ranks.verdict.runs)


def _settled(outcome: Outcome) -> Outcome:
    """A rung that was not reached leaves its control open."""
    return Outcome.INCONCLUSIVE if outcome in (Outcome.NOT_RUN, Outcome.ERROR) else outcome


def _receipt(
    capability: str, controls: Mapping[str, str], found: Qualification, scope: dict[str, JsonValue], basis: Basis
) -> dict[str, JsonValue]:
    recorded = [Outcome(word) for word in controls.values() if word != NOT_RECORDED]
    return {
        "capability": capability,
        "outcome": str(roll_up([*recorded, basis.run_outcome])),
        "basis": "measured" if all(_recomputes(found, basis, name) for name in controls) else "reported",
        "claim": None,
        "scope": scope,
        "controls": dict(controls),
        "observed": {"from": str(basis.observed_from), "to": str(basis.observed_to)},
        "runs": 1,
        "boots": None,
        "rests_on": [str(digest) for digest in (basis.run, *(basis.also if CLEAN_SOURCE in controls else ()))],
        "limitations": list(_limitations(found)),
    }


def _recomputes(found: Qualification, basis: Basis, control: str) -> bool:
    """Whether the gate can recompute a control: an answer only when it was compared as it came, a clean source only from a statement."""
    if control == CLEAN_SOURCE:
        return bool(basis.also)
    plain = found.answer is not None and found.answer["normalisation"] == ["none"]
    return control in RECOMPUTED and (plain or control != "exact-answer")


def _limitations(found: Qualification) -> Sequence[str]:
    limit = _DEVICE_LIMITS.get(least_device(found.devices).kind)
    skipped = sorted({fault.name for fault in FAULTS} - set(found.plan.faults)) if found.plan.faults is not None else []
    told = [limit] if limit else []
    if skipped:
        told.append(f"Not injected: {', '.join(skipped)}.")
    if found.live is None:
        told.append("No served model was asked.")
    return [*told, "One run of one context, one request at a time."]
