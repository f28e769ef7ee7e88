"""All ranks or none: one session a rank, one verdict, and a failed prefix that is gone everywhere."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from snapshots import Snapshot, identity_of, small_layout, small_snapshot

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, NothingError
from countermark.cuda_restore.arena import POISON
from countermark.cuda_restore.cpu_device import CpuDevice
from countermark.cuda_restore.device import Buffer, Bytes, DriverError, Stream
from countermark.cuda_restore.multirank import AllRanks, RankRun, RankTarget, judge_ranks, open_ranks
from countermark.cuda_restore.result import RestoreOutcome, RestoreResult
from countermark.cuda_restore.session import RankSession, RankSource, open_session, rank_session, snapshot_geometry
from countermark.cuda_restore.spans import SpanTable
from countermark.cuda_restore.timing import Phase
from countermark.cuda_restore.trace import parse_traces
from countermark.cuda_restore.trace_rules import check_trace

IMAGE = Digest.of(DigestKind.OCI_CONFIG, b"image")
OTHER = Digest.of(DigestKind.OCI_CONFIG, b"another image")
RANKS = 2


@pytest.fixture
def snapshots(tmp_path: Path) -> list[Snapshot]:
    return [small_snapshot(tmp_path / f"rank{rank}", rank=rank, ranks=RANKS) for rank in range(RANKS)]


@pytest.fixture
def devices() -> Iterator[list[CpuDevice]]:
    with ExitStack() as opened:
        yield [opened.enter_context(CpuDevice()) for _ in range(RANKS)]


def targets(snapshots: list[Snapshot], devices: list[CpuDevice]) -> list[RankTarget]:
    return [
        RankTarget(RankSource(rank=rank, manifest=snapshot.loaded.path, chunks=snapshot.chunks), device, IMAGE)
        for rank, (snapshot, device) in enumerate(zip(snapshots, devices, strict=True))
    ]


def memories(sessions: tuple[RankSession | RestoreResult, ...]) -> list[Bytes]:
    return [session.memory() for session in sessions if isinstance(session, RankSession)]


def restore_all(wanted: list[RankTarget]) -> tuple[AllRanks, list[Bytes]]:
    with open_ranks(wanted) as ranks:
        for session in ranks.sessions:
            if isinstance(session, RankSession):
                session.poison()
        verdict = ranks.restore()
        return verdict, memories(ranks.sessions)


def damage(snapshot: Snapshot) -> None:
    path = snapshot.object_path(3)
    path.write_bytes(path.read_bytes()[::-1])


def test_all_ranks_restore_and_each_has_its_own_pages(snapshots: list[Snapshot], devices: list[CpuDevice]) -> None:
    with open_ranks(targets(snapshots, devices)) as ranks:
        sessions = [session for session in ranks.sessions if isinstance(session, RankSession)]
        for session in sessions:
            session.poison()
        verdict = ranks.restore()
        assert verdict.findings == ()
        assert verdict.outcome is RestoreOutcome.VERIFIED
        for snapshot, session in zip(snapshots, sessions, strict=True):
            assert np.array_equal(session.memory(), snapshot.expected(session.request.arena, session.request.blocks))
        assert not np.array_equal(sessions[0].memory(), sessions[1].memory())
    traces = parse_traces(verdict.trace, "trace")
    assert [check_trace(trace) for trace in traces] == [[], []]
    assert [run.result.rank for run in verdict.runs] == [0, 1]


def test_everything_is_released_behind_a_run(snapshots: list[Snapshot], devices: list[CpuDevice]) -> None:
    restore_all(targets(snapshots, devices))
    assert [len(device._releases) for device in devices] == [0, 0]


@pytest.mark.parametrize("rank", range(RANKS))
def test_a_failure_on_any_rank_discards_the_prefix_on_all(snapshots: list[Snapshot], devices: list[CpuDevice], rank: int) -> None:
    damage(snapshots[rank])
    verdict, memory = restore_all(targets(snapshots, devices))
    assert verdict.outcome is RestoreOutcome.RECOMPUTE
    assert [finding.subject for finding in verdict.findings] == [f"rank {rank} object 3"]
    assert verdict.runs[1 - rank].result.outcome is RestoreOutcome.VERIFIED
    assert all((bytes_ == POISON).all() for bytes_ in memory)


def remove_manifest(snapshot: Snapshot) -> None:
    snapshot.loaded.path.unlink()


def damage_manifest(snapshot: Snapshot) -> None:
    path = snapshot.loaded.path
    path.write_bytes(path.read_bytes().replace(b'"format_abi":1', b'"format_abi":2'))


def damage_first_object(snapshot: Snapshot) -> None:
    snapshot.object_path(0).write_bytes(b"\0" * 1024)


@pytest.mark.parametrize(
    ("fault", "code", "index"),
    [
        (remove_manifest, Code.UNREADABLE, None),
        (damage_manifest, Code.SCHEMA_INVALID, None),
        (damage_first_object, Code.BAD_DIGEST, 0),
    ],
)
def test_a_rank_that_cannot_even_begin_is_recompute_everywhere(
    snapshots: list[Snapshot], devices: list[CpuDevice], fault: Callable[[Snapshot], None], code: Code, index: int | None
) -> None:
    fault(snapshots[1])
    verdict, memory = restore_all(targets(snapshots, devices))
    assert verdict.outcome is RestoreOutcome.RECOMPUTE
    assert all((bytes_ == POISON).all() for bytes_ in memory)
    result = verdict.runs[1].result
    assert result.error is not None
    assert result.error.code is code
    assert result.failure is not None
    assert result.failure.object == index
    assert check_trace(result.trace) == []


def test_the_manifest_of_another_rank_is_refused(snapshots: list[Snapshot], devices: list[CpuDevice]) -> None:
    verdict, _ = restore_all(targets([snapshots[0], snapshots[0]], devices))
    result = verdict.runs[1].result
    assert result.error is not None
    assert result.error.code is Code.SUBJECT_MISMATCH


class FullDevice(CpuDevice):
    """A device with no memory left."""

    def allocate(self, size: int) -> Buffer:
        raise DriverError("cuMemAlloc", 2, "out of memory")


def test_a_failed_allocation_is_recompute_and_releases_everything(snapshots: list[Snapshot], devices: list[CpuDevice]) -> None:
    with FullDevice() as full:
        verdict, _ = restore_all(targets(snapshots, [devices[0], full]))
        assert isinstance(verdict.runs[1].result.error, DriverError)
        assert len(full._releases) == 0
    assert verdict.outcome is RestoreOutcome.RECOMPUTE


class StuckDevice(CpuDevice):
    """A device that can restore and not be overwritten."""

    def fill(self, buffer: Buffer, value: int, stream: Stream) -> None:
        if value == POISON and self.stuck:
            raise DriverError("cuMemsetD8Async", 719, "injected")
        super().fill(buffer, value, stream)

    stuck = False


def test_a_rank_that_cannot_be_discarded_is_said(snapshots: list[Snapshot], devices: list[CpuDevice]) -> None:
    damage(snapshots[1])
    with StuckDevice() as stuck, open_ranks(targets(snapshots, [stuck, devices[1]])) as ranks:
        stuck.stuck = True
        verdict = ranks.restore()
    assert [finding.checker for finding in verdict.findings] == ["restore.verified-or-recompute", "restore.discarded"]


class Flip:
    fault = "bit-flip-after-authentication"

    def disturb(self, index: int, payload: Bytes, spans: SpanTable) -> SpanTable:
        payload[-1] ^= 1
        return spans


def test_a_fault_on_one_rank_is_no_verdict_for_any(snapshots: list[Snapshot], devices: list[CpuDevice]) -> None:
    with open_ranks(targets(snapshots, devices)) as ranks:
        verdict = ranks.restore(Flip(), on_rank=1)
    assert [run.result.fault for run in verdict.runs] == [None, Flip.fault]
    assert verdict.outcome is RestoreOutcome.RECOMPUTE
    assert [finding.checker for finding in verdict.findings] == ["restore.undisturbed"]


def run_of(snapshot: Snapshot, image: Digest | None = IMAGE) -> RankRun:
    with CpuDevice() as device, open_session(device, snapshot.loaded, snapshot.chunks, snapshot.geometry) as session:
        return RankRun(session.restore(), snapshot.loaded, image)


def judged(runs: list[RankRun]) -> list[str | None]:
    return [finding.checker for finding in judge_ranks(runs).findings]


def test_the_verdict_needs_every_rank_one_context_and_one_image(snapshots: list[Snapshot], tmp_path: Path) -> None:
    first, second = (run_of(snapshot) for snapshot in snapshots)
    other = run_of(small_snapshot(tmp_path / "other", rank=1, ranks=3))
    assert judged([first, second]) == []
    assert judged([replace(first, image=None), replace(second, image=None)]) == []
    assert judged([first]) == ["restore.all-ranks"]
    assert judged([first, first]) == ["restore.one-snapshot"]
    assert judged([first, other]) == ["restore.one-snapshot"]
    assert judged([first, replace(second, image=OTHER)]) == ["restore.one-image"]
    assert judged([first, replace(second, image=None)]) == ["restore.one-image"]


def test_no_rank_at_all_is_no_verdict() -> None:
    with pytest.raises(NothingError):
        judge_ranks([])


def test_a_snapshot_is_measured_by_its_own_header_and_layout(snapshots: list[Snapshot]) -> None:
    found = snapshot_geometry(snapshots[1].loaded, snapshots[1].chunks)
    assert found == snapshots[1].geometry
    assert found.identity == identity_of(small_layout(), rank=1, ranks=RANKS)


def test_a_layout_document_that_is_missing_is_not_blamed_on_an_object(snapshots: list[Snapshot], devices: list[CpuDevice]) -> None:
    next((snapshots[0].root / "layouts").iterdir()).unlink()
    with pytest.raises(InputError):
        snapshot_geometry(snapshots[0].loaded, snapshots[0].chunks)
    with rank_session(targets(snapshots, devices)[0].source, devices[0]) as session:
        assert isinstance(session, RestoreResult)
        assert session.failure is not None
        assert session.failure.object is None


def test_a_session_reads_back_what_it_placed(snapshots: list[Snapshot], devices: list[CpuDevice]) -> None:
    with rank_session(targets(snapshots, devices)[0].source, devices[0]) as session:
        assert isinstance(session, RankSession)
        result = session.restore()
        assert result.read_back is not None
        assert result.read_back.digests.shape == (snapshots[0].geometry.pages, 2)
        assert result.timing.phases[Phase.READBACK] > 0
