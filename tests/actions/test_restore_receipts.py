"""Receipts and runs checked again: what a forged number, a trace that is gone or a wrong basis looks like; and the gate's controls."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from countermark.actions.appending import record
from countermark.actions.init import initialise
from countermark.actions.restore.qualify import qualify
from countermark.actions.restore.receipt_check import verify_receipts
from countermark.actions.restore.run_check import check_run
from countermark.actions.restore.snapshot_root import read_snapshot
from countermark.actions.restore.write import plan_text, write_oracle
from countermark.actions.workspace import Workspace, open_reader
from countermark.attestations.codes import Code, ExitCode, Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import Subject
from countermark.contracts.controls import control
from countermark.cuda_restore.events import FaultInjected, Submitted
from countermark.cuda_restore.ladder import Qualification
from countermark.cuda_restore.oracle_prompt import OracleShape
from countermark.cuda_restore.trace import Trace
from countermark.recorders.recording import Recording

IMAGE = Digest(DigestKind.OCI_CONFIG, "ab" * 32)
RUN = PredicateName.RESTORE_RUN
PASS, FAIL, ERROR, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.ERROR, Outcome.INCONCLUSIVE


class Bench:
    """A ledger with one qualification, which no test changes but by appending."""

    def __init__(self, folder: Path) -> None:
        stored, bundled = OracleShape(ranks=2, tokens=512), OracleShape(layers=2, ranks=2, tokens=512)
        self.workspace: Workspace = initialise(folder / "box").workspace
        written = write_oracle(folder / "store", stored, "red", object_bytes=100_000)
        record(self.workspace, read_snapshot([one.path for one in written.manifests]), "builder", None)
        plan = folder / "plan.yaml"
        plan.write_bytes(plan_text(folder, written.manifests, written.chunks, image=IMAGE, faults=("page-swap", "slab-reuse")))
        done = qualify(self.workspace, plan, None, engine_commit="0a" * 20, shape=bundled)
        self.found: Qualification = done.found
        self.run: dict[str, Any] = done.run
        self.run_entry, self.receipt_entry = (str(item.receipt.index) for item in done.appended)
        self.receipt: Any = done.appended[1].statement.predicate

    def say(self, name: PredicateName, predicate: dict[str, Any]) -> str:
        """Append a statement of the qualifier's, whatever it says."""
        done = record(self.workspace, Recording(name, (Subject.of(IMAGE),), predicate), "qualifier", None)
        return str(done.receipt.index)

    def codes(self, *entries: str) -> set[Code]:
        return {finding.code for item in verify_receipts(self.workspace, entries).checked for finding in item.findings}


@pytest.fixture(scope="module", autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, state: None) -> Bench:
    return Bench(tmp_path_factory.mktemp("bench"))


def test_what_was_appended_holds(bench: Bench) -> None:
    done = verify_receipts(bench.workspace, [bench.run_entry, bench.receipt_entry])
    run, receipt = done.checked
    assert (done.exit, run.basis, receipt.basis) == (ExitCode.YES, None, "measured")
    assert run.traces == receipt.traces == len(bench.found.traces)
    assert verify_receipts(bench.workspace, [bench.receipt["rests_on"][0]]).checked[0].index == run.index


def test_other_statements_are_no_receipts(bench: Bench) -> None:
    with pytest.raises(InputError, match="is a snapshot"):
        verify_receipts(bench.workspace, ["1"])
    with pytest.raises(InputError) as caught:
        verify_receipts(bench.workspace, [f"payload:sha256:{'00' * 32}"])
    assert caught.value.code is Code.REF_NOT_HERE


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "/trace/events": lambda run: run["trace"].update(events=run["trace"]["events"] + 1),
    "/ranks/0/objects": lambda run: run["ranks"][0].update(objects=7),
    "/ranks/0/bytes": lambda run: run["ranks"][0].update(bytes=1),
    "/ranks/1/readers_max": lambda run: run["ranks"][1].update(readers_max=5),
    "/ranks/1/retained_bytes_max": lambda run: run["ranks"][1].update(retained_bytes_max=1),
    "/ranks/0/manifest": lambda run: run["ranks"][0].update(manifest=f"file:sha256:{'00' * 32}"),
    "/ranks/0/counters/launches": lambda run: run["ranks"][0]["counters"].update(launches=5),
    "/ranks/0/counters/source_bytes": lambda run: run["ranks"][0]["counters"].update(source_bytes=5),
    "/ranks/2": lambda run: run["ranks"].append(deepcopy(run["ranks"][1]) | {"rank": 2}),
}


@pytest.mark.parametrize("pointer", CHANGES)
def test_a_number_that_the_trace_does_not_show_is_found(bench: Bench, pointer: str) -> None:
    forged = deepcopy(bench.run)
    CHANGES[pointer](forged)
    found = list(check_run(forged, bench.found.traces, 4))
    pointers = [finding.location.pointer for finding in found if finding.location and finding.code is Code.RECORD_CONTRADICTED]
    assert f"/predicate{pointer}" in {p.removesuffix("/rank") if p else p for p in pointers}
    assert list(check_run(bench.run, bench.found.traces, 4)) == []


def test_a_forged_run_is_found_in_the_ledger(bench: Bench) -> None:
    forged = deepcopy(bench.run)
    forged["ranks"][0]["bytes"] = 1
    assert bench.codes(bench.say(RUN, forged)) == {Code.RECORD_CONTRADICTED}


def test_a_time_that_does_not_add_up_is_found(bench: Bench) -> None:
    forged = deepcopy(bench.run)
    forged["ranks"][0]["timing"]["lookup"] += 1_000_000
    assert {finding.checker for finding in check_run(forged, bench.found.traces, 4)} >= {"timing.arithmetic"}


def test_a_trace_that_is_not_kept_is_found(bench: Bench) -> None:
    forged = deepcopy(bench.run)
    forged["trace"]["digest"] = f"file:sha256:{'00' * 32}"
    assert bench.codes(bench.say(RUN, forged)) == {Code.REF_NOT_HERE}


def test_a_trace_that_breaks_a_rule_is_found(bench: Bench) -> None:
    """An object submitted before it authenticated: swap the two events of an otherwise sound trace."""
    first, *others = bench.found.traces
    events = list(first.events)
    place = next(place for place, event in enumerate(events) if isinstance(event, Submitted))
    events.insert(1, events.pop(place))
    broken = list(check_run(bench.run, [Trace(tuple(events)), *others], 4))
    assert "restore.batch-authenticated" in {finding.checker for finding in broken}


def test_only_disturbed_traces_behind_the_ranks_may_break_rules(bench: Bench) -> None:
    traces = list(bench.found.traces)
    disturbed = next(trace for trace in traces if isinstance(trace.events[1], FaultInjected))
    found = list(check_run(bench.run, [disturbed, *traces[1:]], 4))
    assert "restore.undisturbed" in {finding.checker for finding in found}


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        ({"basis": "reported"}, {Code.RECEIPT_CONTRADICTED}),
        ({"rests_on": [f"payload:sha256:{'00' * 32}"]}, {Code.CONTROLS_INCOMPLETE}),
        ({"capability": "restore.performance"}, {Code.RECEIPT_CONTRADICTED}),
    ],
)
def test_a_receipt_that_says_more_than_it_rests_on_is_found(bench: Bench, change: dict[str, Any], codes: set[Code]) -> None:
    changed = deepcopy(bench.receipt) | change
    assert bench.codes(bench.say(PredicateName.QUALIFICATION_RECEIPT, changed)) == codes


def test_a_receipt_that_was_taken_back_is_found(bench: Bench) -> None:
    entry = bench.say(PredicateName.QUALIFICATION_RECEIPT, bench.receipt | {"limitations": ["to be taken back"]})
    assert bench.codes(entry) == set()
    with open_reader(bench.workspace) as reader:
        about = Subject.of(reader.entry(int(entry)).digest)
    rejection: dict[str, Any] = {"reason": "the rig was wrong", "rests_on": [], "scope": "image-wide", "observed_time": None}
    record(bench.workspace, Recording(PredicateName.REJECTION, (about,), rejection), "qualifier", None)
    assert bench.codes(entry) == {Code.RECORD_CONTRADICTED}


def rung(*controls: tuple[str, str], outcome: str = "pass") -> dict[str, Any]:
    return {"outcome": outcome, "controls": [{"fault": name, "caught_by": "5-live", "outcome": word} for name, word in controls]}


@pytest.mark.parametrize("name", ["recompute-control", "negative-control", "restore-happened"])
@pytest.mark.parametrize(
    ("live", "shown"),
    [
        (lambda name: rung((name, "pass")), PASS),
        (lambda name: rung((name, "fail"), outcome="fail"), FAIL),
        (lambda name: rung((name, "inconclusive"), outcome="inconclusive"), INCONCLUSIVE),
        (lambda name: rung((name, "pass"), (name, "fail")), FAIL),
        (lambda name: rung(("exact-answer", "pass")), None),
        (lambda name: rung((name, "pass"), outcome="not-run"), None),
        (lambda name: {}, None),
    ],
)
def test_the_gate_reads_the_controls_of_a_served_model(live: Callable[[str], dict[str, Any]], shown: Outcome | None, name: str) -> None:
    assert control(RUN.uri, {"rungs": {"5-live": live(name)}}, name) is shown


@pytest.mark.parametrize(
    ("numbers", "topology_ranks", "shown"),
    [
        ([0, 1], None, PASS),
        ([1, 0], 2, PASS),
        ([0, 1], 4, FAIL),
        ([0, 0], None, FAIL),
        ([1, 2], None, FAIL),
        ([0, True], None, INCONCLUSIVE),
        ([], 2, ERROR),
    ],
)
def test_the_gate_counts_the_ranks(numbers: list[Any], topology_ranks: int | None, shown: Outcome) -> None:
    ranks: list[Any] = [{"rank": number, "structural": "pass"} for number in numbers]
    assert control(RUN.uri, {"ranks": ranks}, "all-ranks-structural", ranks=topology_ranks) is shown


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ({"dirty": False, "dirty_paths": 0}, PASS),
        ({"dirty": True, "dirty_paths": 1}, FAIL),
        ({"dirty": False, "dirty_paths": 1}, FAIL),
        ({}, FAIL),
    ],
)
def test_the_gate_reads_a_clean_source(source: dict[str, Any], shown: Outcome) -> None:
    assert control(PredicateName.SOURCE.uri, source, "clean-source") is shown
    assert control(PredicateName.SOURCE.uri, source, "exact-answer") is None
