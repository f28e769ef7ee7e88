"""`restore qualify`: what is signed and appended, what is derived from it, and what the gate makes of that."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_toto.models.layout import Layout, Step
from in_toto.models.metadata import Envelope as LegacyEnvelope
from local_layout import OWNER, described, signer
from program import Program
from signing import pem
from worlds import World

from countermark.actions.appending import record
from countermark.actions.audit import audit_ledger
from countermark.actions.clock import now
from countermark.actions.gate import Asked, gate
from countermark.actions.init import initialise
from countermark.actions.restore import qualify as qualifying
from countermark.actions.restore.engine_source import CleanSource, EngineSource, clean_source, engine_source, own_checkout
from countermark.actions.restore.link import layout_keyid
from countermark.actions.restore.qualify import Qualified, qualify
from countermark.actions.restore.receipt_check import verify_receipts
from countermark.actions.restore.snapshot_root import read_snapshot
from countermark.actions.restore.write import plan_text, write_oracle
from countermark.actions.workspace import Workspace, open_reader, public_key
from countermark.attestations.codes import Code, ExitCode, Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import CannotTellError, InputError, RefusedError
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.schema import problems
from countermark.attestations.statement import Subject
from countermark.attestations.times import Instant
from countermark.cuda_restore.cuda_probe import probe_cuda
from countermark.cuda_restore.device import DeviceInfo, DeviceKind, DriverState
from countermark.cuda_restore.events import Failed
from countermark.cuda_restore.ladder import Qualification
from countermark.cuda_restore.ladder import qualify as climb
from countermark.cuda_restore.oracle import Oracle
from countermark.cuda_restore.oracle_prompt import OracleShape, write_prompt
from countermark.cuda_restore.oracle_snapshot import publish_caches
from countermark.cuda_restore.reader import LoadedManifest
from countermark.cuda_restore.restore_run import Engine
from countermark.cuda_restore.store import CHUNKS
from countermark.cuda_restore.trace import parse_traces
from countermark.recorders.recording import Recording

STORED = OracleShape(ranks=2, tokens=512)
BUNDLED = OracleShape(layers=2, ranks=2, tokens=512)
IMAGE = Digest(DigestKind.OCI_CONFIG, "ab" * 32)
COMMIT = f"git-commit:{'0a' * 20}"
FEW = ("page-swap", "other-prompt")
STRUCTURAL = "restore.structural@tp=2,dcp=1,context_tokens=512"
DAY_NS = 24 * 60 * 60 * 1_000_000_000


@dataclass(frozen=True)
class Bench:
    """A ledger, and beside it a snapshot and a plan for it."""

    folder: Path
    workspace: Workspace
    manifests: tuple[LoadedManifest, ...]

    @property
    def plan(self) -> Path:
        return self.folder / "plan.yaml"

    def record(self) -> None:
        record(self.workspace, read_snapshot([one.path for one in self.manifests]), "builder", None)

    def write_plan(self, *, image: Digest | None = IMAGE, faults: tuple[str, ...] | None = FEW, change: str = "", to: str = "") -> None:
        chunks = self.manifests[0].path.parents[2] / CHUNKS
        text = plan_text(self.folder, self.manifests, chunks, image=image, faults=faults).decode()
        assert change in text
        self.plan.write_text(text.replace(change, to) if change else text)

    def qualify(self, **options: Any) -> Qualified:
        given: dict[str, Any] = {"engine_commit": COMMIT, "shape": BUNDLED} | options
        return qualify(self.workspace, self.plan, None, **given)

    def object_path(self, rank: int, index: int) -> Path:
        one = self.manifests[rank]
        return one.path.parents[2] / CHUNKS / one.manifest.objects[index].file_name

    @property
    def size(self) -> int:
        with open_reader(self.workspace) as reader:
            return reader.head.size


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A recorded snapshot and its plan."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    written = write_oracle(tmp_path / "store", STORED, "red", object_bytes=100_000)
    made = Bench(tmp_path, initialise(tmp_path / "box").workspace, written.manifests)
    made.record()
    made.write_plan()
    return made


def flip(path: Path, place: int = 77) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def code_of(bench: Bench, require: str = STRUCTURAL) -> tuple[str, Code, str]:
    (decision,) = gate(bench.workspace, Asked((str(IMAGE),), requires=(require,))).decisions
    return decision.verdict, decision.requirements[0].code, decision.requirements[0].observed


class TestARunThatHolds:
    def test_run_and_receipt_are_appended_with_plan_and_trace(self, bench: Bench) -> None:
        done = bench.qualify()
        run, receipt = done.appended
        assert done.exit is ExitCode.YES
        assert [item.statement.predicate_type for item in done.appended] == [
            PredicateName.RESTORE_RUN.uri,
            PredicateName.QUALIFICATION_RECEIPT.uri,
        ]
        assert problems("restore-run", run.statement.predicate) == []
        assert problems("qualification-receipt", receipt.statement.predicate) == []
        assert {item.statement.subjects[0].typed for item in done.appended} == {(IMAGE,)}
        assert done.run["tuple"]["source"] == COMMIT
        with open_reader(bench.workspace) as reader:
            assert reader.payload(Digest.parse(done.run["plan"]).raw) == bench.plan.read_bytes()
            assert reader.payload(Digest.parse(done.run["trace"]["digest"]).raw) == done.found.trace
            assert reader.entry(run.receipt.index).digest == Digest.parse(str(receipt.statement.predicate["rests_on"][0]))  # type: ignore[call-overload,index]  # a list of texts
        assert audit_ledger(bench.workspace, []).exit is ExitCode.YES

    def test_the_run_names_the_signed_root(self, bench: Bench) -> None:
        done = bench.qualify()
        with open_reader(bench.workspace) as reader:
            (index,) = reader.find_payload(Digest.parse(done.run["tuple"]["snapshot"]).raw)
        assert index == 1

    def test_without_an_image_the_subject_is_the_engine_and_nothing_is_derived(self, bench: Bench) -> None:
        bench.write_plan(image=None)
        (run,) = bench.qualify().appended
        assert run.statement.subjects[0].typed == (Digest.parse(COMMIT),)
        assert code_of(bench)[1] is Code.SUBJECT_UNKNOWN

    def test_a_cpu_receipt_satisfies_no_serving_policy_and_the_gate_says_why(self, bench: Bench) -> None:
        bench.qualify()
        assert code_of(bench) == ("DENY", Code.CAP_UNQUALIFIED, "it ran on no GPU, by a receipt of operator")
        correct = code_of(bench, "restore.correctness@tp=2,dcp=1,context_tokens=512,concurrency=1")
        assert correct[:2] == ("DENY", Code.CAP_NO_EVIDENCE)

    def test_only_the_device_keeps_it_from_being_allowed(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        """The same run, had it been on a GPU; a topology or length that was not tested is still denied."""
        gpu = DeviceInfo(DeviceKind.CUDA, "NVIDIA H200", DriverState.PRESENT, 13000, 90, "11" * 32, "22" * 32)

        def on_a_gpu(*plan: Any, **options: Any) -> Qualification:
            return replace(climb(*plan, **options), devices=(gpu,))

        monkeypatch.setattr(qualifying, "climb", on_a_gpu)
        assert bench.qualify().exit is ExitCode.YES
        assert code_of(bench)[:2] == ("ALLOW", Code.OK)
        assert code_of(bench, STRUCTURAL.replace("512", "1024"))[:2] == ("DENY", Code.CAP_SCOPE)
        assert code_of(bench, STRUCTURAL.replace("tp=2", "tp=4"))[:2] == ("DENY", Code.CAP_SCOPE)

    def test_the_builder_signs_the_root_and_another_principal_the_run(self, world: World, tmp_path: Path) -> None:
        written = write_oracle(tmp_path / "store", STORED, "red", object_bytes=100_000)
        record(world.workspace, read_snapshot([one.path for one in written.manifests]), "builder", str(world.key("ci")))
        found = Bench(tmp_path, world.workspace, written.manifests)
        found.write_plan()
        done = qualify(world.workspace, found.plan, str(world.key("lab")), engine_commit=COMMIT, shape=BUNDLED)
        assert done.exit is ExitCode.YES

    def test_who_may_make_no_run_learns_it_before_the_climb(self, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        written = write_oracle(tmp_path / "store", STORED, "red", object_bytes=100_000)
        record(world.workspace, read_snapshot([one.path for one in written.manifests]), "builder", str(world.key("ci")))
        found = Bench(tmp_path, world.workspace, written.manifests)
        found.write_plan()
        before = found.size
        monkeypatch.setattr(qualifying, "climb", lambda *_plan, **_options: pytest.fail("the ladder was climbed"))
        with pytest.raises(RefusedError) as caught:
            qualify(world.workspace, found.plan, str(world.key("ci")), engine_commit=COMMIT, shape=BUNDLED)
        assert (caught.value.code, found.size) == (Code.SIGNER_UNTRUSTED, before)

    def test_whoever_watches_is_told_how_much_of_the_work_is_done(self, bench: Bench) -> None:
        told: list[tuple[int, int]] = []
        bench.qualify(progress=lambda done, of: told.append((done, of)))
        assert told[0][0] == 0
        assert told[-1][0] == told[-1][1]
        assert told == sorted(told)
        assert len({of for _, of in told}) == 1
        assert len(told) > len(FEW) + len(bench.manifests)


class TestARunThatDoesNotHold:
    @pytest.mark.parametrize(("index", "place"), [(0, 0), (0, 20), (3, 77), (5, -1)])
    def test_a_changed_byte_is_recomputed_and_the_stored_trace_shows_where(self, bench: Bench, index: int, place: int) -> None:
        flip(bench.object_path(1, index), place)
        done = bench.qualify()
        assert (done.exit, done.run["outcome"], len(done.appended)) == (ExitCode.NO, "recompute", 1)
        with open_reader(bench.workspace) as reader:
            traces = parse_traces(reader.payload(Digest.parse(done.run["trace"]["digest"]).raw), "trace")
        (failed,) = [event for event in traces[1].events if isinstance(event, Failed)]
        assert (failed.object, failed.cause) == (index, "BAD_DIGEST")
        assert verify_receipts(bench.workspace, [str(done.appended[0].receipt.index)]).exit is ExitCode.YES

    def test_a_changed_manifest_is_recomputed(self, bench: Bench) -> None:
        flip(bench.manifests[0].path, -200)
        done = bench.qualify()
        assert (done.exit, done.run["outcome"], len(done.appended)) == (ExitCode.NO, "recompute", 1)
        assert done.run["rungs"]["1-signed-root"]["outcome"] == "fail"
        assert [rank["counters"]["launches"] for rank in done.run["ranks"]] == [0, 0]

    def test_a_corrupt_snapshot_says_nothing_about_the_image(self, bench: Bench) -> None:
        path = bench.object_path(1, 3)
        flip(path)
        bench.qualify()
        flip(path)
        assert bench.qualify().exit is ExitCode.YES
        assert code_of(bench)[1] is Code.CAP_UNQUALIFIED

    def test_swapped_pages_under_a_root_signed_anew_pass_structure_and_fail_meaning(self, bench: Bench) -> None:
        prompt = write_prompt(STORED)
        caches = [np.ascontiguousarray(cache) for cache in Oracle(STORED).prefill(prompt)]
        for cache in caches:
            cache[:, :, [2, 5]] = cache[:, :, [5, 2]].copy()
        (bench.folder / "swapped").mkdir()
        manifests = publish_caches(bench.folder / "swapped", STORED, prompt, caches, object_bytes=100_000)
        swapped = Bench(bench.folder, bench.workspace, manifests)
        swapped.record()
        swapped.write_plan()
        done = swapped.qualify()
        assert [rung["outcome"] for rung in done.run["rungs"].values()] == ["pass", "pass", "pass", "fail", "not-run"]
        assert [rank["structural"] for rank in done.run["ranks"]] == ["pass", "pass"]
        assert done.run["answer"]["raw"] == str(Digest.of(DigestKind.RESPONSE_RAW, b"spark"))
        assert done.exit is ExitCode.NO
        assert code_of(bench)[1] is Code.CAP_FAILED

    def test_a_fault_that_no_control_shows_cannot_be_told(self, bench: Bench) -> None:
        bench.write_plan(faults=("one-token-short",))
        done = bench.qualify()
        assert (done.run["rungs"]["3-readback"]["outcome"], done.exit) == ("inconclusive", ExitCode.CANNOT_TELL)


class TestNothingIsRun:
    @pytest.fixture(autouse=True)
    def unclimbed(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        def unwanted(*_plan: Any, **_options: Any) -> Qualification:
            raise AssertionError("the ladder was climbed")

        monkeypatch.setattr(qualifying, "climb", unwanted)
        assert bench.size == 2

    def refused(self, bench: Bench, **options: Any) -> Code:
        with pytest.raises((RefusedError, InputError, CannotTellError)) as caught:
            bench.qualify(**options)
        assert bench.size == 2
        return caught.value.code

    def test_without_a_signed_root(self, bench: Bench) -> None:
        other = write_oracle(bench.folder / "other", STORED, "blue", object_bytes=100_000)
        unsigned = Bench(bench.folder, bench.workspace, other.manifests)
        unsigned.write_plan()
        assert self.refused(unsigned) is Code.SUBJECT_UNKNOWN

    def test_for_a_plan_of_another_context(self, bench: Bench) -> None:
        bench.write_plan(change=bench.manifests[0].manifest.context_digest + "\n", to="00" * 32 + "\n")
        assert self.refused(bench) is Code.SUBJECT_MISMATCH

    def test_for_a_manifest_that_is_not_there(self, bench: Bench) -> None:
        bench.write_plan(change="store/manifests", to="store/elsewhere")
        assert self.refused(bench) is Code.UNREADABLE

    def test_for_a_scope_that_claims_more_than_is_tested(self, bench: Bench) -> None:
        bench.write_plan(change="  faults:", to="  scope: {topology: TP4/DCP1}\n  faults:")
        assert self.refused(bench) is Code.CLAIM_EXCEEDS

    def test_into_a_link_folder_that_is_not_empty(self, bench: Bench) -> None:
        assert self.refused(bench, link=bench.folder) is Code.UNREADABLE

    def test_by_an_engine_of_no_commit(self, bench: Bench) -> None:
        assert self.refused(bench, engine_commit="git-tree:" + "0a" * 20) is Code.BAD_DIGEST
        assert self.refused(bench, engine_commit="main") is Code.BAD_DIGEST


def test_without_its_device_nothing_is_appended(bench: Bench) -> None:
    if probe_cuda().driver is DriverState.PRESENT:
        pytest.skip("this machine has a CUDA driver")
    bench.write_plan(change="device: cpu", to="device: cuda:0")
    with pytest.raises(CannotTellError) as caught:
        bench.qualify()
    assert (caught.value.code, bench.size) == (Code.DEVICE_ABSENT, 2)


class TestEngineSource:
    def test_the_checkout_says_its_commit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        if own_checkout() is None:
            pytest.skip("the tests do not run from a git checkout")
        found = engine_source(None)
        assert (found.engine.source.kind, found.dirty in (True, False)) == (DigestKind.GIT_COMMIT, True)
        monkeypatch.setattr("countermark.actions.restore.engine_source.own_checkout", lambda: None)
        with pytest.raises(CannotTellError, match="neither runs from a checkout nor was built in one"):
            engine_source(None)
        assert engine_source("0a" * 20).engine.source == Digest.parse(COMMIT)

    @pytest.mark.parametrize(
        ("dirty", "recorded", "outcome"),
        [
            (False, {"dirty": False, "dirty_paths": 0}, Outcome.PASS),
            (None, {"dirty": False, "dirty_paths": 0}, Outcome.PASS),
            (True, {"dirty": False, "dirty_paths": 0}, Outcome.INCONCLUSIVE),
            (False, {"dirty": True, "dirty_paths": 3}, None),
            (False, None, None),
        ],
    )
    def test_a_clean_source_is_shown_by_a_statement(
        self, bench: Bench, dirty: bool | None, recorded: dict[str, Any] | None, outcome: Outcome | None
    ) -> None:
        commit = Digest.parse(COMMIT)
        if recorded:
            predicate = {"commit": COMMIT, "tree": f"git-tree:{'0b' * 20}", "parents": [], "object": "dHJlZQ==", "source_trees": []}
            record(bench.workspace, Recording(PredicateName.SOURCE, (Subject.of(commit),), predicate | recorded), "builder", None)
        trust = bench.workspace.trust()
        with open_reader(bench.workspace, trust) as reader:
            found = clean_source(reader, trust, EngineSource(Engine(commit, "0.1.0"), dirty))
        assert (found.outcome, len(found.shown_by)) == (outcome, 1 if outcome is Outcome.PASS else 0)
        assert found == CleanSource() or outcome


def write_layout(folder: Path, key: Any, change: Callable[[Layout], None] = lambda layout: None) -> None:
    """A layout with one step, `restore-qualify`, that only the qualifier's key may do."""
    from cryptography.hazmat.primitives.serialization import load_der_public_key
    from securesystemslib.signer import SSlibKey

    known = SSlibKey.from_crypto(load_der_public_key(key.spki))
    layout = Layout()
    layout.expires = str(Instant(now().ns + DAY_NS).whole_seconds())  # in-toto itself asks the machine's clock
    layout.keys = {known.keyid: {**known.to_dict(), "keyid": known.keyid}}
    step = Step(name="restore-qualify", threshold=1, pubkeys=[known.keyid])
    step.expected_materials = [["ALLOW", "plan.yaml"], ["ALLOW", "store/manifests/*"], ["DISALLOW", "*"]]
    step.expected_products = [["CREATE", "restore-run.json"], ["CREATE", "trace.jsonl"], ["CREATE", "restore.*.json"], ["DISALLOW", "*"]]
    layout.steps = [step]
    change(layout)
    metadata = LegacyEnvelope.from_signable(layout)
    metadata.create_signature(signer(OWNER))
    (folder / "root.layout").write_text(json.dumps(metadata.to_dict()))
    (folder / "owner.pub").write_bytes(pem(OWNER))
    assert described(OWNER)["keyid"]


class TestLink:
    def test_a_layout_with_that_step_verifies(self, bench: Bench, tmp_path: Path) -> None:
        done = bench.qualify(link=bench.folder / "link")
        key = public_key(str(bench.workspace.key_file("qualifier")))
        assert done.link[0] == bench.folder / "link" / f"restore-qualify.{layout_keyid(key)[:8]}.link"
        write_layout(bench.folder, key)
        program = Program(bench.folder, tmp_path / "state")
        arguments = ("verify", "layout", "root.layout", "--links", "link", "--layout-key", "owner.pub", "--artifacts", "link/products")
        assert program(*arguments).code == 0
        flip(bench.folder / "link" / "products" / "trace.jsonl")
        assert program(*arguments).code == 1

    def test_a_layout_for_another_key_does_not(self, bench: Bench, tmp_path: Path) -> None:
        bench.qualify(link=bench.folder / "link")
        write_layout(bench.folder, public_key(str(bench.workspace.key_file("builder"))))
        arguments = ("verify", "layout", "root.layout", "--links", "link", "--layout-key", "owner.pub")
        assert Program(bench.folder, tmp_path / "state")(*arguments).code == 1

    def test_products_are_what_was_signed(self, bench: Bench, tmp_path: Path) -> None:
        done = bench.qualify(link=bench.folder / "link")
        assert {path.name for path in done.link[1:]} == {"restore-run.json", "restore.structural.json", "trace.jsonl"}
        program = Program(bench.folder, tmp_path / "state")
        trust = bench.workspace.trust_file
        assert program("verify", "attestation", "link/products/restore-run.json", "--trust", trust, "--subject", str(IMAGE)).code == 0
        assert (bench.folder / "link" / "products" / "trace.jsonl").read_bytes() == done.found.trace

    def test_a_run_that_did_not_pass_leaves_no_link(self, bench: Bench) -> None:
        flip(bench.object_path(1, 3))
        assert bench.qualify(link=bench.folder / "link").link == ()
        assert not (bench.folder / "link").exists()
