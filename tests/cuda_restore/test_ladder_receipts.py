"""What a climb is worth: the receipts derived from it, with and without a served model, and what they must not claim."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from live_server import LOCAL, MODEL, RESTORED, Confused, OracleService, prime, save, serving, stored_request
from qualifying import FROM, IMAGE, ROOT, RUN, STORED, TO, Stored, outcomes, receipts_of, run_of, store

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.errors import InputError
from countermark.attestations.located import JsonValue
from countermark.attestations.outcomes import restore_outcome
from countermark.attestations.predicate_types import PredicateName
from countermark.contracts.controls import control
from countermark.cuda_restore import receipts
from countermark.cuda_restore.cpu_device import CpuDevice
from countermark.cuda_restore.device import DeviceInfo, DeviceKind, DriverState
from countermark.cuda_restore.ladder import Qualification
from countermark.cuda_restore.oracle_prompt import write_prompt
from countermark.cuda_restore.receipts import Basis, derive_receipts
from countermark.cuda_restore.result import RestoreOutcome

FEW = ["page-swap", "other-prompt"]
LIVE_CONTROLS = ("exact-answer", "restore-happened", "negative-control", "recompute-control")


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    return store(tmp_path_factory.mktemp("stored"))


@pytest.fixture(scope="module")
def climbed(stored: Stored) -> Qualification:
    return stored.qualify()


def test_a_cpu_climb_derives_structure_alone_and_says_cpu(climbed: Qualification) -> None:
    derived = receipts_of(climbed)
    assert list(derived) == ["restore.structural"]
    receipt = derived["restore.structural"]
    assert (receipt["outcome"], receipt["basis"]) == ("pass", "measured")
    assert receipt["controls"] == {"signed-root": "pass", "coverage": "pass", "readback": "pass"}
    assert receipt["rests_on"] == [str(RUN)]
    assert receipt["observed"] == {"from": "2026-12-01T00:00:00Z", "to": "2026-12-01T00:01:00Z"}
    assert receipt["scope"] == {
        "image": IMAGE,
        "topology": {"tp": 2, "dcp": 1, "pp": 1},
        "ranks": 2,
        "publication_mode": "snapshot-v1",
        "cells": [{"context_tokens": 512, "concurrency": 1}],
    }
    assert "placed by the CPU device" in receipt["limitations"][0]


def test_without_an_image_nothing_is_derived(stored: Stored, climbed: Qualification) -> None:
    bare = replace(climbed, plan=stored.plan(image=None))
    assert derive_receipts(bare, Basis(RUN, Outcome.PASS, FROM, TO)) == ()


@pytest.mark.parametrize(
    ("scope", "name"),
    [
        ({"topology": {"tp": 4}}, "topology/tp"),
        ({"topology": "TP4/DCP1"}, "topology/tp"),
        ({"topology": "TP2/DCP1/PP2"}, "topology/pp"),
        ({"publication_mode": "page-tail-cow-v1"}, "publication_mode"),
        ({"ranks": 4}, "ranks"),
        ({"image": f"oci-config:sha256:{'00' * 32}"}, "image"),
        ({"cells": [{"context_tokens": 512}, {"context_tokens": 1024}]}, "cells/context_tokens"),
        ({"cells": [{"concurrency": 16}]}, "cells/concurrency"),
    ],
)
def test_a_scope_cannot_claim_what_was_not_tested(stored: Stored, climbed: Qualification, scope: dict[str, JsonValue], name: str) -> None:
    with pytest.raises(InputError, match=name) as caught:
        derive_receipts(replace(climbed, plan=stored.plan(scope=scope)), Basis(RUN, Outcome.PASS, FROM, TO))
    assert caught.value.code is Code.CLAIM_EXCEEDS


def test_a_scope_adds_what_the_run_does_not_know(stored: Stored, climbed: Qualification) -> None:
    scope = {
        "topology": "TP2/DCP1",
        "hardware": {"accelerator": "GB10"},
        "nodes": 2,
        "cells": [{"draft_tokens": 7, "context_tokens": None}],
    }
    found = receipts_of(replace(climbed, plan=stored.plan(scope=scope)))["restore.structural"]["scope"]
    assert (found["hardware"], found["nodes"], found["topology"]) == ({"accelerator": "GB10"}, 2, {"tp": 2, "dcp": 1, "pp": 1})
    assert found["cells"] == [{"draft_tokens": 7, "context_tokens": 512, "concurrency": 1}]


def live_spec(address: str, folder: Path, **live: Any) -> dict[str, Any]:
    red, blue = write_prompt(STORED, "red"), write_prompt(STORED, "blue", episode=1)
    for word, prompt in (("red", red), ("blue", blue), ("green", red.with_codeword("green"))):
        save(folder, word, stored_request(prompt))
    return {
        "endpoint": f"{address}/v1/completions",
        "model": MODEL,
        "prompts": [{"file": f"{word}.json", "required": word, "normalisation": ["none"]} for word in ("red", "blue")],
        "control": {"file": "green.json", "required": "green"},
        "metrics": {"url": f"{address}/metrics", "restored_tokens": RESTORED, "local_hit_tokens": LOCAL},
        "timeout_s": "5",
    } | live


def climb_live(stored: Stored, service: OracleService, monkeypatch: pytest.MonkeyPatch, **live: Any) -> Qualification:
    monkeypatch.setattr("countermark.cuda_restore.live.SETTLE_S", 0.0)
    prime(service, [write_prompt(STORED, "red"), write_prompt(STORED, "blue", episode=1)])
    with serving(service) as address:
        return stored.qualify(rungs=[1, 2, 3, 4, 5], faults=FEW, live=live_spec(address, stored.folder, **live))


def test_a_live_model_that_restores_passes_the_last_rung(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with CpuDevice() as device:
        found = climb_live(store(tmp_path), OracleService(device, tmp_path, STORED), monkeypatch)
    run = run_of(found)
    assert outcomes(found) == ["pass"] * 5
    assert {one["fault"]: one["outcome"] for one in run["rungs"]["5-live"]["controls"]} == dict.fromkeys(LIVE_CONTROLS, "pass")
    assert {str(control(PredicateName.RESTORE_RUN.uri, run, name)) for name in LIVE_CONTROLS} == {"pass"}
    assert list(receipts_of(found)) == ["restore.structural"]  # the ranks of the plan were placed by a CPU

    real = replace(found, devices=(DeviceInfo(DeviceKind.CUDA, "NVIDIA GB10", DriverState.PRESENT, 13000, 121, "11" * 32, "22" * 32),))
    correct = receipts_of(real, clean_source=Outcome.PASS, also=(ROOT,))["restore.correctness"]
    assert (correct["outcome"], correct["basis"], correct["rests_on"]) == ("pass", "measured", [str(RUN), str(ROOT)])
    assert set(correct["controls"].values()) == {"pass"}
    assert run_of(real)["device"] == {"kind": "cuda", "name": "NVIDIA GB10", "driver": "present", "sm": "sm_121", "driver_version": "13000"}
    unknown = receipts_of(real)["restore.correctness"]
    assert (unknown["controls"]["clean-source"], unknown["basis"]) == ("not-recorded", "reported")


def test_a_live_model_that_answers_wrong_fails_on_any_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with CpuDevice() as device:
        found = climb_live(store(tmp_path), Confused(device, tmp_path, STORED), monkeypatch)
    assert outcomes(found) == ["pass", "pass", "pass", "pass", "fail"]
    assert found.outcome is RestoreOutcome.RECOMPUTE
    derived = receipts_of(found)
    assert (derived["restore.structural"]["outcome"], derived["restore.correctness"]["outcome"]) == ("fail", "fail")


def test_a_live_model_that_is_not_there_leaves_the_run_inconclusive(stored: Stored) -> None:
    found = stored.qualify(rungs=[1, 2, 3, 4, 5], faults=FEW, live=live_spec("http://127.0.0.1:9", stored.folder))
    run = run_of(found)
    assert outcomes(found) == ["pass", "pass", "pass", "pass", "inconclusive"]
    assert "answer" not in run
    assert restore_outcome(run) is Outcome.INCONCLUSIVE


def test_the_gate_recomputes_what_a_receipt_calls_measured(climbed: Qualification) -> None:
    """One list of controls in two rooms that may not import each other: this test holds them together."""
    run, uri = run_of(climbed), PredicateName.RESTORE_RUN.uri
    structural = receipts_of(climbed)["restore.structural"]
    assert {name: str(control(uri, run, name)) for name in structural["controls"]} == structural["controls"]
    asked = [{"fault": name, "caught_by": "5-live", "outcome": "pass"} for name in LIVE_CONTROLS]
    run["rungs"]["5-live"] = {"outcome": "pass", "controls": asked}
    every = (*structural["controls"], "all-ranks-structural", "exact-answer", "recompute-control", "negative-control", "restore-happened")
    recomputed = {name for name in (*every, "one-image", "clean-source") if control(uri, run, name) is not None}
    assert recomputed == receipts.RECOMPUTED
