"""The study's detection matrix: each of its 21 rows passes every digest and every count, and is seen by the rungs that the row names."""

import ast
from collections import defaultdict, deque
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.errors import InputError
from countermark.cuda_restore import faults
from countermark.cuda_restore.cpu_device import CpuDevice, Deferral
from countermark.cuda_restore.device import Buffer, Bytes, DeviceInfo, DeviceKind, DriverState, StagingMemory, Stream
from countermark.cuda_restore.events import Authenticated, Completed, FaultInjected
from countermark.cuda_restore.faults import FAULTS, Fault, Way, faults_named
from countermark.cuda_restore.oracle_prompt import OracleShape
from countermark.cuda_restore.rungs import Control, Rung
from countermark.cuda_restore.spans import SpanTable
from countermark.cuda_restore.trials import Trial, Trials

SHAPE = OracleShape(tokens=512)
BOTH = {Rung.READBACK, Rung.ORACLE}

# The rows of the matrix in the study's order: what it calls them, our faults of that row, and the columns in which it counts failures.
MATRIX: list[tuple[str, tuple[str, ...], set[Rung]]] = [
    ("page swap K+V, one layer/rank", ("page-swap",), BOTH),
    ("block-table swap, all layers", ("block-table-swap",), BOTH),
    ("block-table swap of the needle's own page", ("block-table-swap-of-a-needle",), BOTH),
    ("page swap K only", ("page-swap-of-keys",), BOTH),
    ("off-by-one page, everywhere", ("off-by-one-page",), BOTH),
    ("off-by-one page, one layer/rank", ("off-by-one-page-in-one-layer",), BOTH),
    ("rank mix-up, all layers", ("rank-mix-up",), BOTH),
    ("rank mix-up, one layer", ("rank-mix-up-in-one-layer",), BOTH),
    ("wrong layer", ("wrong-layer",), BOTH),
    ("wrong layer, one rank", ("wrong-layer-on-one-rank",), BOTH),
    ("stale tail page, all / one", ("stale-tail", "stale-tail-in-one-layer"), BOTH),
    ("truncated tail (half page)", ("truncated-tail",), BOTH),
    ("K/V swapped, one layer/rank", ("keys-and-values-swapped",), BOTH),
    ("slab-reuse race", ("slab-reuse",), BOTH),
    ("zero page", ("zero-page",), BOTH),
    ("duplicate page", ("duplicate-page",), BOTH),
    ("16-byte shift in one K page", ("shift-of-16-bytes",), BOTH),
    ("1-bit flip after auth (exponent / lsb)", ("bit-flip-after-authentication", "mantissa-flip-after-authentication"), {Rung.READBACK}),
    ("authentic snapshot of a one-token-changed prompt", ("other-prompt",), {Rung.ORACLE}),
    ("seq_len - 1 (metadata)", ("one-token-short",), {Rung.ORACLE}),
    ("seq_len - one page", ("one-page-short",), {Rung.ORACLE}),
]
EXPECTED = {name: rungs for _, names, rungs in MATRIX for name in names}


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    with CpuDevice(Deferral.LAZY) as device:
        yield Trials(device, tmp_path_factory.mktemp("oracle"), SHAPE)


def race_on(device: CpuDevice, root: Path) -> Trial:
    with device:
        (fault,) = faults_named(("slab-reuse",))
        return Trials(device, root, SHAPE).run(fault)


def bad_pages(trial: Trial) -> int:
    return sum(len(rank.bad_pages) for rank in trial.ranks)


def test_every_row_has_its_faults() -> None:
    assert len(MATRIX) == 21
    assert list(EXPECTED) == [fault.name for fault in FAULTS]
    assert {fault.name: set(fault.rungs) for fault in FAULTS} == EXPECTED


def test_undisturbed_the_oracle_answers_its_codeword(trials: Trials) -> None:
    trial = trials.run()
    assert trial.answer is not None
    assert (trial.answer.word, trial.answer.misses, trial.seen_by, bad_pages(trial)) == ("red", (), set(), 0)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: str(fault.name))
def test_a_fault_passes_all_structure_and_is_seen_by_its_rungs(trials: Trials, fault: Fault) -> None:
    trial = trials.run(fault)
    for rank, manifest in zip(trial.ranks, trials.manifests, strict=True):
        events = rank.trace.events
        authenticated = [event.digest for event in events if isinstance(event, Authenticated)]
        (completed,) = [event for event in events if isinstance(event, Completed)]
        assert rank.error is None
        assert len(authenticated) == len(manifest.manifest.objects)
        if fault.way is not Way.EXCHANGED:
            assert sorted(authenticated) == sorted(one.digest for one in manifest.manifest.objects)
        assert completed.source_bytes == manifest.manifest.encoded_bytes
        assert completed.placed_bytes == SHAPE.layers * 2 * SHAPE.pages * SHAPE.page_bytes
        assert completed.device_error == 0
        assert [event.fault for event in events if isinstance(event, FaultInjected)] == [fault.name]
    assert trial.seen_by == EXPECTED[fault.name]
    assert trial.answer is not None
    assert trial.answer.word == ("spark" if Rung.ORACLE in EXPECTED[fault.name] else "red")


@pytest.mark.parametrize(
    ("fault", "pages", "misses"),
    [
        ("page-swap", 4, 4),
        ("page-swap-of-keys", 2, 4),
        ("block-table-swap", 64, 64),
        ("rank-mix-up-in-one-layer", 32, 64),
        ("stale-tail-in-one-layer", 2, 4),
        ("zero-page", 2, 4),
        ("duplicate-page", 2, 4),
        ("shift-of-16-bytes", 1, 2),
        ("bit-flip-after-authentication", 1, 0),
        ("one-token-short", 0, 32),
        ("one-page-short", 0, 64),
    ],
)
def test_a_fault_is_seen_where_it_is_and_nowhere_else(trials: Trials, fault: str, pages: int, misses: int) -> None:
    """As in the study, whose counts these are where they do not depend on the length of the context."""
    trial = trials.run(*faults_named((fault,)))
    assert trial.answer is not None
    assert (bad_pages(trial), len(trial.answer.misses)) == (pages, misses)


def test_a_missing_wait_is_invisible_on_an_eager_device(tmp_path: Path) -> None:
    trial = race_on(CpuDevice(Deferral.EAGER), tmp_path)
    assert trial.answer is not None
    assert (trial.answer.word, bad_pages(trial), trial.seen_by) == ("red", 0, set())


@pytest.mark.parametrize("device", [CpuDevice(Deferral.LAZY), *(CpuDevice(Deferral.RANDOM, seed=seed) for seed in range(3))])
def test_a_missing_wait_answers_spark_on_a_deferred_device(device: CpuDevice, tmp_path: Path) -> None:
    trial = race_on(device, tmp_path)
    assert trial.answer is not None
    assert trial.answer.word == "spark"
    assert trial.seen_by == BOTH


def test_a_lazy_device_keeps_two_objects_of_each_rank(tmp_path: Path) -> None:
    """Only the last object of either slot arrives; the study counts 768 bad pages of 1,024 with its eight."""
    trial = race_on(CpuDevice(Deferral.LAZY), tmp_path)
    assert bad_pages(trial) == 3 * SHAPE.ranks * SHAPE.layers * 2 * SHAPE.pages // 4


@pytest.mark.parametrize("deferral", [Deferral.LAZY, Deferral.EAGER])
def test_where_a_race_cannot_be_relied_on_the_stale_copy_is_made(tmp_path: Path, deferral: Deferral) -> None:
    """As on a GPU, also on a device that runs everything at once."""
    with CpuDevice(deferral) as device:
        device.info = DeviceInfo(DeviceKind.SIMULATED, "simulated", DriverState.PRESENT)
        (fault,) = faults_named(("slab-reuse",))
        trial = Trials(device, tmp_path, SHAPE).run(fault)
    assert trial.seen_by == BOTH


class _WarmDevice(CpuDevice):
    """Gives each rank the memory that it had before, as it left it; when told so, it forgets a span and counts it as placed."""

    def __init__(self) -> None:
        super().__init__()
        self.forgetful = False
        self._left: dict[int, deque[Bytes]] = defaultdict(deque)

    def allocate(self, size: int) -> Buffer:
        buffer = super().allocate(size)
        if len(self._left[size]) == SHAPE.ranks:
            self._memory[buffer.handle][:] = self._left[size].popleft()
        return buffer

    def release(self, key: object) -> None:
        if isinstance(key, Buffer):
            self._left[key.size].append(self._memory[key.handle].copy())
        super().release(key)

    def scatter(self, staging: StagingMemory, spans: SpanTable, destination: Buffer, status: Buffer, stream: Stream) -> None:
        self.synchronize(stream)
        start, size = int(spans.destination[0]), int(spans.sizes[0])
        forgotten = self._memory[destination.handle][start : start + size]
        before = forgotten.copy()
        super().scatter(staging, spans, destination, status, stream)
        if self.forgetful:
            self.synchronize(stream)
            forgotten[:] = before


def test_poison_shows_a_page_that_is_never_written(tmp_path: Path) -> None:
    """Without it the page would still hold its right bytes, from the restore before."""
    with _WarmDevice() as device:
        trials = Trials(device, tmp_path, SHAPE)
        assert trials.run().seen_by == set()
        device.forgetful = True
        assert trials.run().seen_by == BOTH


def test_nothing_but_a_qualification_makes_a_fault() -> None:
    """The modules that can disturb a restore are imported by the ladder's own alone."""
    makers = {"faults", "tampering", "slab_reuse", "trials", "controls"}
    importers = set()
    for module in Path(faults.__file__).parent.glob("*.py"):
        tree = ast.parse(module.read_text())
        named = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        if makers & {name.rpartition(".")[2] for name in named if name.startswith("countermark.cuda_restore.")}:
            importers.add(module.stem)
    assert importers == {*makers - {"faults", "slab_reuse"}, "ladder", "receipts"}


def test_faults_are_asked_for_by_name() -> None:
    assert faults_named(None) == FAULTS
    assert [fault.name for fault in faults_named(("zero-page", "page-swap"))] == ["page-swap", "zero-page"]
    assert faults_named(()) == ()
    with pytest.raises(InputError) as caught:
        faults_named(("zero-pages",))
    assert caught.value.code is Code.UNKNOWN_NAME


def test_no_fault_changes_the_stored_bytes() -> None:
    """A fault works on copies, or the next one would start from damage."""
    stored, foreign = np.zeros((4, 4, 2, 8, 64), np.uint8), np.ones((4, 4, 2, 8, 64), np.uint8)
    for fault in FAULTS:
        assert fault.contents(stored, foreign).shape == stored.shape
        assert not stored.any()


def test_a_control_that_only_another_rung_sees_is_not_caught() -> None:
    assert Control.must_be_caught("zero-page", Rung.ORACLE, {Rung.ORACLE, Rung.READBACK}).outcome is Outcome.PASS
    missed = Control.must_be_caught("zero-page", Rung.ORACLE, {Rung.READBACK})
    assert (missed.outcome, missed.caught_by) == (Outcome.INCONCLUSIVE, Rung.READBACK)
    assert Control.must_be_caught("zero-page", Rung.ORACLE, set()).caught_by is None
