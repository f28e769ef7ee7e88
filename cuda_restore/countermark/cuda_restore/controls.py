"""The controls that must fail: the bundled oracle restored under every fault, and which rung noticed.

They run on the oracle's own small snapshot, through the same engine, device and kernel as the snapshot to be qualified. What they prove
is not that snapshot but the ladder: a rung that cannot see a fault has nothing to say.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
from numpy.typing import NDArray

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.errors import InputError, RefusedError
from countermark.cuda_restore.device import Device
from countermark.cuda_restore.faults import Fault
from countermark.cuda_restore.oracle_prompt import OracleShape
from countermark.cuda_restore.plan import plan_placement
from countermark.cuda_restore.reader import read_head
from countermark.cuda_restore.reference import page_homes
from countermark.cuda_restore.request import Advance, unwatched
from countermark.cuda_restore.root import SnapshotRoot
from countermark.cuda_restore.rungs import Control, Rung
from countermark.cuda_restore.session import RankSession
from countermark.cuda_restore.slabs import slabs_of
from countermark.cuda_restore.spans import SpanTable, prove_coverage
from countermark.cuda_restore.store import Folder
from countermark.cuda_restore.stream import StreamLayout
from countermark.cuda_restore.tampering import Tampering
from countermark.cuda_restore.trace import Trace
from countermark.cuda_restore.trials import Trial, Trials

OBJECT_CHANGED: Final = "object-changed-on-disk"
NOT_IN_ROOT: Final = "manifest-not-in-root"
SPAN_LEFT_OUT: Final = "span-left-out"
SPAN_TWICE: Final = "span-twice"


@dataclass(frozen=True, slots=True, eq=False)
class ControlRun:
    """The oracle undisturbed, every rung's controls, and the traces of all restores, which name the faults."""

    undisturbed: Trial
    controls: dict[Rung, tuple[Control, ...]]
    traces: tuple[Trace, ...]


def run_controls(device: Device, faults: Sequence[Fault], shape: OracleShape, advance: Advance = unwatched) -> ControlRun:
    """Publish the oracle in a folder of its own, restore it undisturbed and under each fault, and try the rungs below as well.

    Raises `DriverError` when the device fails.
    """
    with TemporaryDirectory(prefix="countermark-oracle-") as folder:
        trials = Trials(device, Path(folder), shape, advance=advance)
        undisturbed = trials.run()
        found: dict[Rung, list[Control]] = defaultdict(list)
        traces = [rank.trace for rank in undisturbed.ranks]
        for fault in faults:
            trial = trials.run(fault)
            traces += [rank.trace for rank in trial.ranks]
            for rung in fault.rungs:
                found[rung].append(Control.must_be_caught(fault.name, rung, trial.seen_by))
        found[Rung.COVERAGE] += _coverage_controls(trials)
        found[Rung.SIGNED_ROOT].append(_control(NOT_IN_ROOT, Rung.SIGNED_ROOT, _root_refuses(trials)))
        damaged, trace = _damaged_object(trials)
        found[Rung.SIGNED_ROOT].append(damaged)
        return ControlRun(undisturbed, {rung: tuple(controls) for rung, controls in found.items()}, (*traces, trace))


def _control(fault: str, rung: Rung, caught: bool) -> Control:
    return Control.must_be_caught(fault, rung, {rung} if caught else set())


def _root_refuses(trials: Trials) -> bool:
    """Whether a manifest of another prompt is told from those that a root lists."""
    try:
        SnapshotRoot.of(trials.manifests).check(trials.foreign_manifests[0])
    except RefusedError:
        return True
    return False


def _damaged_object(trials: Trials) -> tuple[Control, Trace]:
    """Restore with one stored byte changed: it must end before that object is placed, by its SHA-256."""
    trials.damage_an_object(0)
    with trials.poisoned(0) as session:
        homes = page_homes(session.request.arena, session.request.blocks)
        result = session.restore(Tampering.none(OBJECT_CHANGED, homes))
    refused = result.structural is not Outcome.PASS and result.error is not None and result.error.code is Code.BAD_DIGEST
    return _control(OBJECT_CHANGED, Rung.SIGNED_ROOT, refused), result.trace


def _coverage_controls(trials: Trials) -> Iterator[Control]:
    """Take a span out of a good plan, and put one in twice: the proof must refuse both."""
    with trials.poisoned(0) as session:
        tables, owed = _plan(session)
        for name, change in ((SPAN_LEFT_OUT, _without_last), (SPAN_TWICE, _with_first_again)):
            yield _control(name, Rung.COVERAGE, _refuses(tables, owed, change))


def _plan(session: RankSession) -> tuple[tuple[SpanTable, ...], NDArray[np.void]]:
    request = session.request
    manifest = request.loaded.manifest
    with Folder.at(request.chunks) as chunks:
        stream = StreamLayout.read(read_head(chunks, manifest), manifest, request.arena.layout, manifest.objects[0].file_name)
    slabs = slabs_of(manifest.objects, request.bounds)
    return plan_placement(stream, slabs, request.arena, request.blocks).slabs, page_homes(request.arena, request.blocks)


def _refuses(tables: tuple[SpanTable, ...], owed: NDArray[np.void], change: Callable[[SpanTable], SpanTable]) -> bool:
    try:
        prove_coverage((change(tables[0]), *tables[1:]), owed["start"], owed["bytes"])
    except InputError:
        return True
    return False


def _without_last(table: SpanTable) -> SpanTable:
    return SpanTable.of(table.source[:-1], table.destination[:-1], table.sizes[:-1], alignment=table.alignment)


def _with_first_again(table: SpanTable) -> SpanTable:
    rows = np.append(np.arange(len(table)), 0)
    return SpanTable.of(table.source[rows], table.destination[rows], table.sizes[rows], alignment=table.alignment)
