"""The ladder: what each rung says, that a blind rung has nothing to say, and what may be derived from a climb."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from qualifying import BUNDLED, ENGINE, IMAGE, ROOT, STORED, Stored, outcomes, receipts_of, run_of, signed_by_another, store

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import CannotTellError, InputError
from countermark.attestations.outcomes import restore_outcome
from countermark.cuda_restore import ladder
from countermark.cuda_restore.controls import NOT_IN_ROOT, OBJECT_CHANGED, SPAN_LEFT_OUT, SPAN_TWICE
from countermark.cuda_restore.cpu_device import CpuDevice, Deferral
from countermark.cuda_restore.device import Device, DriverError
from countermark.cuda_restore.events import FaultInjected
from countermark.cuda_restore.faults import FAULTS
from countermark.cuda_restore.ladder import Qualification, qualify
from countermark.cuda_restore.oracle import Cache
from countermark.cuda_restore.oracle_prompt import write_prompt
from countermark.cuda_restore.rungs import Control, Rung, RungReport
from countermark.cuda_restore.trace import parse_traces

FEW = ["page-swap", "other-prompt"]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    return store(tmp_path_factory.mktemp("stored"))


@pytest.fixture(scope="module")
def climbed(stored: Stored) -> Qualification:
    return stored.qualify()


def test_an_untouched_snapshot_answers_red(climbed: Qualification) -> None:
    run = run_of(climbed)
    assert outcomes(climbed) == ["pass", "pass", "pass", "pass", "not-run"]
    assert run["rungs"]["5-live"] == {"outcome": "not-run", "reason": "no endpoint in the plan", "controls": []}
    assert run["answer"]["raw"] == "response-raw:sha256:b1f51a511f1da0cd348b8f8598db32e61cb963e5fc69e2b41485bf99590ed75a"
    assert (run["answer"]["required"], run["answer"]["outcome"], run["outcome"]) == ("red", "pass", "verified")
    assert restore_outcome(run) is Outcome.PASS
    assert run["device"] == {"kind": "cpu", "name": "deferred-lazy", "driver": run["device"]["driver"]}
    assert run["tuple"] == {"image": IMAGE, "source": str(ENGINE.source), "snapshot": str(ROOT)}
    assert [rank["stream_digest"] for rank in run["ranks"]] == ["verified", "verified"]
    assert [rank["structural"] for rank in run["ranks"]] == ["pass", "pass"]


def test_every_control_is_caught_by_its_rung(climbed: Qualification) -> None:
    controls = {rung: [one["fault"] for one in climbed.rungs[rung].to_json()["controls"]] for rung in Rung}  # type: ignore[union-attr,index,call-overload]  # a list of objects
    assert controls[Rung.SIGNED_ROOT] == [NOT_IN_ROOT, OBJECT_CHANGED]
    assert controls[Rung.COVERAGE] == [SPAN_LEFT_OUT, SPAN_TWICE]
    for rung in (Rung.READBACK, Rung.ORACLE):
        assert controls[rung] == [fault.name for fault in FAULTS if rung in fault.rungs]
    for rung, report in climbed.rungs.items():
        assert all(one.caught_by is rung and one.outcome is Outcome.PASS for one in report.controls)


def test_every_fault_names_itself_in_the_signed_trace(climbed: Qualification) -> None:
    run = run_of(climbed)
    traces = parse_traces(climbed.trace, "trace")
    assert run["trace"] == {
        "events": len(climbed.trace.splitlines()),
        "digest": str(Digest.of(DigestKind.FILE, climbed.trace)),
    }
    named = [event.fault for trace in traces for event in trace.events if isinstance(event, FaultInjected)]
    assert named == [fault.name for fault in FAULTS for _ in range(BUNDLED.ranks)] + [OBJECT_CHANGED]
    assert not any(isinstance(event, FaultInjected) for trace in traces[:2] for event in trace.events)


def _swap_two_pages(caches: Sequence[Cache]) -> None:
    for cache in caches:
        cache[:, :, [2, 5]] = cache[:, :, [5, 2]].copy()


def test_swapped_pages_under_a_root_signed_anew_do_not_answer_red(tmp_path: Path) -> None:
    """Every hash is right, the root lists these very manifests, and every page lies where the stream says. The meaning is gone."""
    found = store(tmp_path, _swap_two_pages).qualify(faults=FEW)
    run = run_of(found)
    assert outcomes(found) == ["pass", "pass", "pass", "fail", "not-run"]
    assert run["answer"]["outcome"] == "fail"
    assert run["answer"]["raw"] == str(Digest.of(DigestKind.RESPONSE_RAW, b"spark"))
    assert "the oracle's own snapshot: slot head, layer 0, rank 0, needle 4" in run["rungs"]["4-oracle"]["reason"]
    assert (run["outcome"], restore_outcome(run)) == ("recompute", Outcome.FAIL)
    assert [rank["structural"] for rank in run["ranks"]] == ["pass", "pass"]
    assert receipts_of(found)["restore.structural"]["outcome"] == "fail"


def test_a_snapshot_that_is_not_the_oracles_is_judged_by_the_bundled_one(tmp_path: Path) -> None:
    prompt = write_prompt(STORED, "teal", episode=5)
    found = store(tmp_path, prompt=prompt).qualify(faults=FEW)
    assert outcomes(found)[:4] == ["pass"] * 4
    assert found.answer is not None
    assert found.answer["required"] == "red"


def test_without_a_signed_root_nothing_is_restored(stored: Stored) -> None:
    for signed, reason in ((None, "no signed statement"), (signed_by_another(stored), "is not listed in the signed root")):
        found = qualify(stored.plan(faults=FEW), signed, shape=BUNDLED)
        run = run_of(found)
        assert outcomes(found) == ["fail", "not-run", "not-run", "pass", "not-run"]
        assert reason in run["rungs"]["1-signed-root"]["reason"]
        assert [rank["counters"]["launches"] for rank in run["ranks"]] == [0, 0]
        assert (run["outcome"], restore_outcome(run)) == ("recompute", Outcome.FAIL)


def test_a_layout_that_is_not_signed_for_is_a_failed_root(stored: Stored) -> None:
    other = replace(stored.signed, root=replace(stored.signed.root, layout_sha256="00" * 32))
    found = qualify(stored.plan(faults=FEW), other, shape=BUNDLED)
    assert "the signed root 0000" in str(found.rungs[Rung.SIGNED_ROOT].why)
    assert [run.result.counters.launches for run in found.ranks.verdict.runs] == [0, 0]


def test_a_rank_left_out_of_the_plan_is_no_qualification(stored: Stored) -> None:
    only = stored.plan().ranks[:1]
    found = qualify(replace(stored.plan(faults=FEW), ranks=only), stored.signed, shape=BUNDLED)
    assert "ranks [1] of TP 2 are left out" in str(found.rungs[Rung.SIGNED_ROOT].why)


def test_a_manifest_that_is_not_there_is_a_failed_root(tmp_path: Path) -> None:
    stored = store(tmp_path)
    plan, signed = stored.plan(faults=FEW), stored.signed
    stored.loaded[1].path.unlink()
    found = qualify(plan, signed, shape=BUNDLED)
    run = run_of(found)
    assert outcomes(found)[:3] == ["fail", "not-run", "not-run"]
    assert (run["ranks"][1]["objects"], run["outcome"]) == (0, "recompute")


def test_a_changed_object_is_a_failed_root(tmp_path: Path) -> None:
    stored = store(tmp_path)
    path = tmp_path / "chunks" / stored.loaded[1].manifest.objects[3].file_name
    data = bytearray(path.read_bytes())
    data[77] ^= 1
    path.write_bytes(data)
    found = stored.qualify(faults=FEW)
    run = run_of(found)
    assert outcomes(found) == ["fail", "not-run", "not-run", "pass", "not-run"]
    assert "rank 1 object 3" in run["rungs"]["1-signed-root"]["reason"]
    assert [rank["structural"] for rank in run["ranks"]] == ["pass", "fail"]


def test_a_plan_of_another_context_is_a_failed_root(stored: Stored) -> None:
    found = stored.qualify(context_digest="00" * 32, faults=FEW)
    assert "the plan 0000" in str(found.rungs[Rung.SIGNED_ROOT].why)


def test_rungs_that_are_not_in_the_plan_are_not_run(stored: Stored) -> None:
    found = stored.qualify(rungs=[1, 2], faults=[])
    assert outcomes(found) == ["pass", "pass", "not-run", "not-run", "not-run"]
    assert found.rungs[Rung.READBACK].why == "not in the plan"
    assert receipts_of(found) == {}


def test_a_rung_without_a_control_is_inconclusive(stored: Stored) -> None:
    found = stored.qualify(faults=["one-token-short"])
    assert outcomes(found)[2:4] == ["inconclusive", "pass"]
    receipt = receipts_of(found)["restore.structural"]
    assert receipt["outcome"] == "inconclusive"
    assert any("page-swap" in limit for limit in receipt["limitations"])


def test_a_blind_rung_is_inconclusive_whatever_it_says() -> None:
    missed = Control.must_be_caught("zero-page", Rung.READBACK, {Rung.ORACLE})
    report = RungReport(Outcome.PASS, controls=(missed,))
    assert (report.outcome, report.why) == (Outcome.INCONCLUSIVE, "not caught: zero-page")
    assert RungReport(Outcome.FAIL, "it broke", (missed,)).outcome is Outcome.FAIL


def open_eager(name: str) -> Device:
    assert name == "cpu"
    return CpuDevice(Deferral.EAGER)


def test_an_eager_device_does_not_see_the_race_so_its_rungs_say_nothing(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder, "open_device", open_eager)
    found = stored.qualify(faults=["page-swap", "slab-reuse"])
    run = run_of(found)
    assert outcomes(found)[2:4] == ["inconclusive", "inconclusive"]
    assert run["rungs"]["3-readback"]["reason"] == "not caught: slab-reuse"
    assert run["rungs"]["4-oracle"]["controls"][1] == {"fault": "slab-reuse", "caught_by": None, "outcome": "inconclusive"}
    assert restore_outcome(run) is Outcome.INCONCLUSIVE
    assert receipts_of(found)["restore.structural"]["outcome"] == "inconclusive"


def test_a_device_that_fails_is_an_error_of_the_rung(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise DriverError("cuLaunchKernel", 700, "illegal address")

    monkeypatch.setattr(ladder, "run_controls", fail)
    found = stored.qualify()
    run = run_of(found)
    assert outcomes(found) == ["inconclusive", "inconclusive", "inconclusive", "error", "not-run"]
    assert "cuLaunchKernel failed" in run["rungs"]["4-oracle"]["reason"]
    assert "answer" not in run or run["answer"]["outcome"] == "pass"
    assert restore_outcome(run) is Outcome.INCONCLUSIVE


def test_without_its_device_there_is_no_run(stored: Stored) -> None:
    ranks = [{"rank": rank, "manifest": str(one.path), "chunks": "chunks", "device": "cuda:63"} for rank, one in enumerate(stored.loaded)]
    with pytest.raises(CannotTellError):
        stored.qualify(ranks=ranks)


@pytest.mark.parametrize("spec", [{"faults": ["zero-pages"]}, {"faults": ["live-prompt"]}])
def test_an_unknown_fault_is_refused_before_any_work(stored: Stored, spec: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        stored.qualify(**spec)
    assert caught.value.code is Code.UNKNOWN_NAME


def test_wrong_pages_under_right_hashes_fail_the_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that puts bytes elsewhere than it was told: all counts are right, and the read-back names the page."""
    stored = store(tmp_path)
    scatter = CpuDevice.scatter

    def astray(self: CpuDevice, staging: Any, spans: Any, destination: Any, status: Any, stream: Any) -> None:
        scatter(self, staging, spans, destination, status, stream)
        self.synchronize(stream)
        memory = self._bytes(destination)
        memory[:] = memory[::-1].copy()

    monkeypatch.setattr(CpuDevice, "scatter", astray)
    found = stored.qualify(rungs=[1, 2, 3], faults=FEW)
    run = run_of(found)
    assert outcomes(found)[:3] == ["pass", "pass", "fail"]
    assert re.match(
        r"rank 0: group 0, layer 00\.k, page \d+; \d+ of 64 pages are not what is stored; ", run["rungs"]["3-readback"]["reason"]
    )
    assert [rank["structural"] for rank in run["ranks"]] == ["fail", "fail"]
    assert [rank["stream_digest"] for rank in run["ranks"]] == ["waived", "waived"]
    assert outcomes(found)[3] == "fail"
    assert run["outcome"] == "recompute"
