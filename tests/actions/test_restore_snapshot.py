"""Snapshots from outside: written, inspected, restored, recorded as a signed root, and held against it."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from snapshots import Snapshot, small_layout, small_snapshot
from snapshots import identity_of as small_identity

from countermark.actions.appending import Recorded, record
from countermark.actions.init import initialise
from countermark.actions.restore.inspect import arithmetic_findings, inspect_manifest
from countermark.actions.restore.run import Asked, Ran, run_restore
from countermark.actions.restore.snapshot_root import read_snapshot, verify_snapshot
from countermark.actions.restore.write import ArraySource, Written, plan_text, write_arrays, write_oracle, write_plan
from countermark.actions.workspace import Workspace
from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.digests import Digest
from countermark.attestations.errors import CannotTellError, InputError, NothingError, RefusedError, UsageError
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.schema import problems
from countermark.attestations.statement import Subject
from countermark.cuda_restore.cuda_probe import probe_cuda
from countermark.cuda_restore.device import DriverState
from countermark.cuda_restore.events import Authenticated, Submitted
from countermark.cuda_restore.oracle_prompt import OracleShape
from countermark.cuda_restore.request import Authenticate
from countermark.cuda_restore.restore_plan import RestorePlan
from countermark.cuda_restore.result import RestoreOutcome
from countermark.cuda_restore.slabs import Bounds
from countermark.recorders.recording import Recording

SHAPE = OracleShape(ranks=2, tokens=512)


@dataclass(frozen=True)
class Stored:
    """A ledger, and a snapshot of two ranks beside it."""

    folder: Path
    workspace: Workspace
    written: Written

    @property
    def manifests(self) -> list[Path]:
        return [one.path for one in self.written.manifests]

    def object_path(self, rank: int, index: int) -> Path:
        return self.written.chunks / self.written.manifests[rank].manifest.objects[index].file_name

    def record(self, **options: Any) -> Recorded:
        return record(self.workspace, read_snapshot(self.manifests, **options), "builder", None)

    def restore(self, **options: Any) -> Ran:
        return run_restore(Asked(manifests=tuple(self.manifests), **options))


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stored:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    written = write_oracle(tmp_path / "store", SHAPE, "red", object_bytes=100_000)
    return Stored(tmp_path, initialise(tmp_path / "box").workspace, written)


def flip(path: Path, place: int = 77) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


class TestRecord:
    def test_the_root_lists_every_rank_and_is_about_its_manifest_files(self, stored: Stored) -> None:
        done = stored.record()
        predicate: Any = done.statement.predicate
        assert problems("snapshot", predicate) == []
        assert [subject.typed[0] for subject in done.statement.subjects] == [one.digest for one in stored.written.manifests]
        assert [rank["objects"] for rank in predicate["ranks"]] == [6, 6]
        assert len(predicate["layout_sha256"]) == 64
        assert done.notes == ()

    def test_the_same_snapshot_again_is_the_same_entry(self, stored: Stored) -> None:
        first, again = stored.record(), stored.record()
        assert (again.receipt.index, again.receipt.duplicate) == (first.receipt.index, True)

    def test_nobody_signs_for_an_object_that_is_not_the_promised_one(self, stored: Stored) -> None:
        flip(stored.object_path(1, 4))
        with pytest.raises(InputError) as caught:
            stored.record()
        assert caught.value.code is Code.BAD_DIGEST

    def test_objects_out_of_reach_are_said_to_be_unread(self, stored: Stored, tmp_path: Path) -> None:
        alone = tmp_path / "alone"
        alone.mkdir()
        for number, path in enumerate(stored.manifests):
            (alone / f"{number}.json").write_bytes(path.read_bytes())
        found = read_snapshot(sorted(alone.iterdir()))
        assert found.predicate["layout_sha256"] is None
        assert len(found.notes) == 2
        assert read_snapshot(sorted(alone.iterdir()), chunks=stored.written.chunks).notes == ()

    def test_a_rank_that_is_left_out_is_noted(self, stored: Stored) -> None:
        assert read_snapshot(stored.manifests[1:]).notes == ("ranks [0] of TP 2 are not listed; a qualification needs them all",)

    def test_ranks_of_two_contexts_are_no_snapshot(self, stored: Stored) -> None:
        other = write_oracle(stored.folder / "other", SHAPE, "blue", object_bytes=100_000)
        with pytest.raises(InputError, match="differs"):
            read_snapshot([stored.manifests[0], other.manifests[1].path])

    def test_models_are_held_against_the_identity(self, tmp_path: Path) -> None:
        path = small_snapshot(tmp_path / "small").loaded.path
        target, draft = f"org/target@{'a' * 40}", f"org/draft@{'b' * 40}"
        assert read_snapshot([path], model=target, draft=draft).predicate["model"] == {"repository": "org/target", "revision": "a" * 40}
        assert read_snapshot([path], draft=target).notes == (f"the manifest's draft checkpoint is not that of {target} alone",)
        with pytest.raises(InputError, match="the cache is not that of") as caught:
            read_snapshot([path], model=draft)
        assert caught.value.code is Code.SUBJECT_MISMATCH
        with pytest.raises(InputError, match="of a revision"):
            read_snapshot([path], model="org/target@main")


class TestVerify:
    def test_an_untouched_snapshot_holds(self, stored: Stored) -> None:
        stored.record()
        check = verify_snapshot(stored.workspace, stored.manifests, None)
        assert (check.exit, check.evaluated, check.of, check.not_evaluated) == (ExitCode.YES, 14, 14, [])

    def test_without_a_statement_nothing_is_evaluated(self, stored: Stored) -> None:
        with pytest.raises(NothingError):
            verify_snapshot(stored.workspace, stored.manifests, None)

    def test_a_changed_object_is_found(self, stored: Stored) -> None:
        stored.record()
        flip(stored.object_path(1, 4))
        check = verify_snapshot(stored.workspace, stored.manifests, None)
        assert (check.exit, [finding.code for finding in check.findings]) == (ExitCode.NO, [Code.BAD_DIGEST])
        assert check.evaluated < check.of

    def test_a_changed_manifest_is_found(self, stored: Stored) -> None:
        stored.record()
        flip(stored.manifests[0], -200)
        check = verify_snapshot(stored.workspace, stored.manifests, None)
        assert (check.exit, len(check.findings)) == (ExitCode.NO, 1)
        assert check.findings[0].location is not None
        assert check.findings[0].location.file == str(stored.manifests[0])

    def test_objects_that_are_not_here_are_not_evaluated(self, stored: Stored, tmp_path: Path) -> None:
        stored.record()
        (tmp_path / "alone").mkdir()
        alone = tmp_path / "alone" / "manifest.json"
        alone.write_bytes(stored.manifests[0].read_bytes())
        check = verify_snapshot(stored.workspace, [alone], None)
        assert (check.exit, check.evaluated, check.of, len(check.not_evaluated)) == (ExitCode.YES, 1, 7, 1)

    def test_a_root_that_was_taken_back_counts_no_more(self, stored: Stored) -> None:
        done = stored.record()
        predicate: dict[str, Any] = {"reason": "written by a bad build", "rests_on": [], "scope": "image-wide", "observed_time": None}
        about = (Subject.of(done.receipt.payload),)
        record(stored.workspace, Recording(PredicateName.REJECTION, about, predicate), "qualifier", None)
        with pytest.raises(RefusedError) as caught:
            verify_snapshot(stored.workspace, stored.manifests, None)
        assert caught.value.code is Code.RECORD_CONTRADICTED

    def test_a_root_by_somebody_who_may_not_make_it_counts_not(self, stored: Stored) -> None:
        stored.record()
        trust = stored.workspace.trust_file
        other = trust.with_name("other.yaml")
        other.write_text(trust.read_text().replace("      - snapshot\n", ""))
        with pytest.raises(RefusedError) as caught:
            verify_snapshot(Workspace(stored.workspace.ledger, other), stored.manifests, None)
        assert caught.value.code is Code.SIGNER_UNTRUSTED


class TestRun:
    def test_all_ranks_are_verified_with_their_limits(self, stored: Stored) -> None:
        ran = stored.restore()
        assert (ran.outcome, ran.missing, ran.findings) == (RestoreOutcome.VERIFIED, (), ())
        assert all(ran.limits[rank].microseconds(524_439) >= 1 for rank in (0, 1))
        timing = ran.runs[0].result.timing
        assert sum(timing.phases.values()) == timing.total

    def test_whoever_watches_is_told_the_bytes_behind_every_slab(self, stored: Stored) -> None:
        told: list[tuple[int, int]] = []
        ran = run_restore(Asked(manifests=tuple(stored.manifests)), lambda done, of: told.append((done, of)))
        whole = sum(run.result.counters.source_bytes for run in ran.runs)
        assert told[0] == (0, whole)
        assert told[-1] == (whole, whole)
        assert len(told) == 1 + sum(run.result.counters.slabs for run in ran.runs)

    def test_one_rank_alone_says_nothing_of_the_others(self, stored: Stored) -> None:
        ran = run_restore(Asked(manifests=(stored.manifests[1],)))
        assert (ran.outcome, ran.missing, [run.result.rank for run in ran.runs]) == (RestoreOutcome.VERIFIED, (0,), [1])

    @pytest.mark.parametrize("unit", list(Authenticate))
    @pytest.mark.parametrize("place", [0, 11, 77, -1])
    @pytest.mark.parametrize("index", [0, 3, 5])
    def test_any_changed_byte_of_an_object_is_recomputed(self, stored: Stored, index: int, place: int, unit: Authenticate) -> None:
        flip(stored.object_path(1, index), place)
        ran = stored.restore(authenticate=unit)
        assert ran.outcome is RestoreOutcome.RECOMPUTE
        failed = ran.runs[1].result
        assert failed.failure is not None
        assert (failed.failure.object, failed.failure.cause) == (index, str(Code.BAD_DIGEST))
        assert not any(isinstance(event, Authenticated) and event.object == index for event in failed.trace.events)
        assert not any(isinstance(event, Submitted) and event.slab == index for event in failed.trace.events)
        assert f"rank 1 object {index}" in {finding.subject for finding in ran.findings}
        assert 1 not in ran.limits

    @pytest.mark.parametrize("share", range(0, 100, 7))
    def test_any_changed_byte_of_a_manifest_is_recomputed(self, stored: Stored, share: int) -> None:
        size = stored.manifests[0].stat().st_size
        flip(stored.manifests[0], share * size // 100)
        ran = stored.restore()
        assert ran.outcome is RestoreOutcome.RECOMPUTE
        assert not any(isinstance(event, Submitted) for event in ran.runs[0].result.trace.events)

    def test_a_manifest_that_is_not_there_is_bad_input(self, stored: Stored) -> None:
        with pytest.raises(InputError):
            run_restore(Asked(manifests=(stored.folder / "none.json",)))

    def test_a_manifest_without_objects_beside_it_needs_to_be_told(self, stored: Stored, tmp_path: Path) -> None:
        (tmp_path / "alone").mkdir()
        alone = tmp_path / "alone" / "manifest.json"
        alone.write_bytes(stored.manifests[0].read_bytes())
        with pytest.raises(InputError, match="no folder of objects"):
            run_restore(Asked(manifests=(alone,)))
        assert run_restore(Asked(manifests=(alone,), chunks=stored.written.chunks)).outcome is RestoreOutcome.VERIFIED

    def test_without_its_device_nothing_runs(self, stored: Stored) -> None:
        if probe_cuda().driver is DriverState.PRESENT:
            pytest.skip("this machine has a CUDA driver")
        with pytest.raises(CannotTellError) as caught:
            stored.restore(devices=("cuda",))
        assert (caught.value.code, caught.value.exit) == (Code.DEVICE_ABSENT, ExitCode.CANNOT_TELL)

    @pytest.mark.parametrize("options", [{"devices": ("cpu",) * 3}, {"devices": ("gpu",)}, {"bounds": Bounds(4, 50_000)}])
    def test_a_call_without_meaning_is_usage(self, stored: Stored, options: dict[str, Any]) -> None:
        with pytest.raises(UsageError):
            stored.restore(**options)


class TestWrite:
    @pytest.fixture
    def files(self, tmp_path: Path) -> tuple[Snapshot, ArraySource]:
        """A snapshot, and the same cache as files of a user's own."""
        found = small_snapshot(tmp_path / "reference")
        arrays = {f"{group}/{name}": np.frombuffer(data, np.uint8) for (group, name), data in found.pages.items()}
        np.savez(tmp_path / "kv.npz", allow_pickle=False, **arrays)
        (tmp_path / "layout.json").write_bytes(small_layout().encode())
        (tmp_path / "identity.json").write_text(json.dumps(small_identity(small_layout()).wire()))
        context = found.loaded.manifest.context_digest
        return found, ArraySource(tmp_path / "kv.npz", tmp_path / "layout.json", tmp_path / "identity.json", 512, context)

    def test_arrays_give_the_manifest_that_the_engine_writes(self, files: tuple[Snapshot, ArraySource], tmp_path: Path) -> None:
        reference, source = files
        told: list[tuple[int, int]] = []
        written = write_arrays(tmp_path / "new" / "store", source, object_bytes=1024, progress=lambda done, of: told.append((done, of)))
        assert written.manifests[0].digest == reference.loaded.digest
        assert told[-1] == (6496, 6496)
        assert run_restore(Asked(manifests=(written.manifests[0].path,))).outcome is RestoreOutcome.VERIFIED

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda arrays: arrays.pop("0/0.v"), "differ in"),
            (lambda arrays: arrays.update({"0/0.v": arrays["0/0.v"][:-1]}), "bytes, its pages take"),
            (lambda arrays: arrays.update({"0/9.v": arrays["0/0.v"]}), "differ in"),
            (lambda arrays: arrays.update({"first": arrays.pop("0/0.v")}), "does not say which layer"),
        ],
    )
    def test_arrays_that_do_not_fit_are_refused(
        self, files: tuple[Snapshot, ArraySource], tmp_path: Path, change: Callable[[dict[str, Any]], None], message: str
    ) -> None:
        _, source = files
        with np.load(source.arrays) as opened:
            arrays = dict(opened)
        change(arrays)
        np.savez(source.arrays, allow_pickle=False, **arrays)
        with pytest.raises(InputError, match=message):
            write_arrays(tmp_path / "store", source, object_bytes=1024)
        assert not list((tmp_path / "store").rglob("*.json"))

    def test_what_is_no_archive_of_arrays_is_refused(self, files: tuple[Snapshot, ArraySource], tmp_path: Path) -> None:
        _, source = files
        source.arrays.write_bytes(b"PK\x03\x04 not really")
        with pytest.raises(InputError):
            write_arrays(tmp_path / "store", source, object_bytes=1024)
        np.save(tmp_path / "one.npy", np.zeros(3))
        source.arrays.write_bytes((tmp_path / "one.npy").read_bytes())
        with pytest.raises(InputError, match="this is one array"):
            write_arrays(tmp_path / "store", source, object_bytes=1024)

    def test_objects_are_never_unpickled(self, files: tuple[Snapshot, ArraySource], tmp_path: Path) -> None:
        _, source = files
        with np.load(source.arrays) as opened:
            arrays: dict[str, Any] = dict(opened) | {"0/0.v": np.array([{}], dtype=object)}
        np.savez(source.arrays, allow_pickle=True, **arrays)
        with pytest.raises(InputError, match="no array that can be read"):
            write_arrays(tmp_path / "store", source, object_bytes=1024)

    def test_the_plan_names_what_was_written(self, stored: Stored) -> None:
        image = Digest.parse(f"oci-config:sha256:{'ab' * 32}")
        write_plan(stored.folder / "plan.yaml", stored.written, device="cuda:1", image=image)
        plan = RestorePlan.load(stored.folder / "plan.yaml")
        assert (plan.image, plan.faults, {rank.device for rank in plan.ranks}) == (image, None, {"cuda:1"})
        assert [rank.manifest.resolve() for rank in plan.ranks] == [path.resolve() for path in stored.manifests]
        assert b"page-swap" in plan_text(stored.folder, stored.written.manifests, stored.written.chunks, faults=["page-swap"])
        with pytest.raises(InputError, match="not overwritten"):
            write_plan(stored.folder / "plan.yaml", stored.written, device="cpu", image=None)

    @pytest.mark.parametrize("change", [{"ranks": 10**10}, {"tokens": 256 * 10**9}, {"ranks": 600, "tokens": 2048}])
    def test_an_oracle_that_no_machine_holds_is_refused_before_anything_is_made(self, tmp_path: Path, change: dict[str, int]) -> None:
        with pytest.raises(InputError) as caught:
            write_oracle(tmp_path / "large", replace(SHAPE, **change), "red", object_bytes=100_000)
        assert caught.value.code is Code.TOO_LARGE
        assert not (tmp_path / "large").exists()

    def test_another_cache_under_the_same_context_is_refused(self, stored: Stored) -> None:
        with pytest.raises(RefusedError) as caught:
            write_oracle(stored.folder / "store", SHAPE, "red", object_bytes=50_000)
        assert caught.value.code is Code.DUPLICATE


class TestInspect:
    def test_the_layout_of_the_store_gives_the_geometry(self, stored: Stored) -> None:
        found = inspect_manifest(stored.manifests[0], None)
        assert found.geometry["groups"]
        assert [number.name for number in found.arithmetic] == ["chunks", "objects", "last object", "stream"]
        assert arithmetic_findings(found, stored.manifests[0]) == ()

    def test_without_a_layout_the_manifest_alone_is_shown(self, stored: Stored, tmp_path: Path) -> None:
        alone = tmp_path / "manifest.json"
        alone.write_bytes(stored.manifests[0].read_bytes())
        assert inspect_manifest(alone, None).geometry == {}

    def test_a_layout_of_another_cache_shows_in_the_arithmetic(self, stored: Stored, tmp_path: Path) -> None:
        other = tmp_path / "layout.json"
        other.write_bytes(small_layout().encode())
        found = inspect_manifest(stored.manifests[0], other)
        (finding,) = arithmetic_findings(found, stored.manifests[0])
        assert (finding.code, finding.subject) == (Code.CONTRACT_VIOLATED, "stream")
