"""A receipt of a served model on a GPU, and what the gate recomputes of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from countermark.actions.appending import record
from countermark.actions.gate import Asked, gate
from countermark.actions.init import initialise
from countermark.actions.restore import qualify as qualifying
from countermark.actions.restore.qualify import Qualified, qualify
from countermark.actions.restore.receipt_check import verify_receipts
from countermark.actions.restore.snapshot_root import read_snapshot
from countermark.actions.restore.write import plan_text, write_oracle
from countermark.actions.workspace import Workspace
from countermark.attestations.codes import Code, ExitCode, Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import Subject
from countermark.cuda_restore.device import DeviceInfo, DeviceKind, DriverState
from countermark.cuda_restore.ladder import Qualification
from countermark.cuda_restore.ladder import qualify as climb
from countermark.cuda_restore.live import Check, LiveReport
from countermark.cuda_restore.oracle_prompt import OracleShape
from countermark.cuda_restore.rungs import Control, Rung, RungReport
from countermark.recorders.recording import Recording

IMAGE = Digest(DigestKind.OCI_CONFIG, "ab" * 32)
COMMIT, OTHER = (Digest(DigestKind.GIT_COMMIT, byte * 20) for byte in ("0a", "0b"))
REQUIRE = "restore.correctness@tp=2,dcp=1,context_tokens=512,concurrency=1"
CONTROLS = ("exact-answer", "restore-happened", "negative-control", "recompute-control")


class Bench:
    """A ledger with a recorded snapshot, and a ladder that finds a GPU and a served model that restores."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.workspace: Workspace = initialise(folder / "box").workspace
        self.plan = folder / "plan.yaml"
        written = write_oracle(folder / "store", OracleShape(ranks=2, tokens=512), "red", object_bytes=100_000)
        record(self.workspace, read_snapshot([one.path for one in written.manifests]), "builder", None)
        self.plan.write_bytes(plan_text(folder, written.manifests, written.chunks, image=IMAGE, faults=("page-swap", "other-prompt")))
        monkeypatch.setattr(qualifying, "climb", self.climb)

    @staticmethod
    def climb(*plan: Any, **options: Any) -> Qualification:
        found = climb(*plan, **options)
        live = LiveReport(tuple(Check(name, Outcome.PASS) for name in CONTROLS), found.answer)
        rung = RungReport(Outcome.PASS, controls=tuple(Control(name, Rung.LIVE, Outcome.PASS) for name in CONTROLS))
        gpu = DeviceInfo(DeviceKind.CUDA, "NVIDIA H200", DriverState.PRESENT, 13000, 90, "11" * 32, "22" * 32)
        return replace(found, devices=(gpu,), live=live, rungs={**found.rungs, Rung.LIVE: rung})

    def record_source(self, commit: Digest) -> Digest:
        predicate: dict[str, Any] = {"commit": str(commit), "tree": f"git-tree:{'0c' * 20}", "parents": [], "object": "dHJlZQ=="}
        predicate |= {"dirty": False, "dirty_paths": 0, "source_trees": []}
        return record(self.workspace, Recording(PredicateName.SOURCE, (Subject.of(commit),), predicate), "builder", None).receipt.payload

    def qualify(self) -> Qualified:
        shape = OracleShape(layers=2, ranks=2, tokens=512)
        return qualify(self.workspace, self.plan, None, engine_commit=str(COMMIT), shape=shape)

    def say(self, receipt: dict[str, Any]) -> str:
        done = record(self.workspace, Recording(PredicateName.QUALIFICATION_RECEIPT, (Subject.of(IMAGE),), receipt), "qualifier", None)
        return str(done.receipt.index)

    def code(self, require: str = REQUIRE) -> Code:
        (decision,) = gate(self.workspace, Asked((str(IMAGE),), requires=(require,))).decisions
        return decision.requirements[0].code


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Bench(tmp_path, monkeypatch)


def test_every_control_is_measured_when_the_source_is_recorded(bench: Bench) -> None:
    bench.record_source(COMMIT)
    done = bench.qualify()
    receipt: Any = done.appended[2].statement.predicate
    assert (receipt["capability"], receipt["outcome"], receipt["basis"]) == ("restore.correctness", "pass", "measured")
    assert bench.code() is Code.OK
    assert verify_receipts(bench.workspace, [str(done.appended[2].receipt.index)]).exit is ExitCode.YES


def test_without_the_source_it_is_reported_alone(bench: Bench) -> None:
    bench.qualify()
    assert bench.code() is Code.EVIDENCE_BASIS


def test_the_source_of_another_engine_shows_nothing(bench: Bench) -> None:
    bench.record_source(COMMIT)
    other = bench.record_source(OTHER)
    receipt: Any = bench.qualify().appended[2].statement.predicate
    entry = bench.say(receipt | {"rests_on": [receipt["rests_on"][0], str(other)]})
    assert {finding.code for finding in verify_receipts(bench.workspace, [entry]).checked[0].findings} == {Code.RECEIPT_CONTRADICTED}


def test_a_run_of_two_ranks_shows_nothing_of_four(bench: Bench) -> None:
    bench.record_source(COMMIT)
    receipt: Any = bench.qualify().appended[2].statement.predicate
    entry = bench.say(receipt | {"scope": receipt["scope"] | {"topology": {"tp": 4, "dcp": 1, "pp": 1}, "ranks": 4}})
    findings = verify_receipts(bench.workspace, [entry]).checked[0].findings
    assert "its control all-ranks-structural fails" in {finding.observed for finding in findings}
    assert bench.code(REQUIRE.replace("tp=2", "tp=4")) is Code.RECEIPT_CONTRADICTED
