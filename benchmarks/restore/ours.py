"""Our engine in the rounds: a full restore of the snapshot, authenticated and placed, within the default bounds."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from benchmarks.restore.contender import Detail, Run
from benchmarks.restore.dataset import DataSet
from countermark.attestations.codes import Code
from countermark.attestations.errors import CannotTellError
from countermark.cuda_restore.cpu_device import CpuDevice, Deferral
from countermark.cuda_restore.occupancy import high_water
from countermark.cuda_restore.readback import bad_pages, by_reference
from countermark.cuda_restore.result import RestoreResult
from countermark.cuda_restore.session import RankSession, RankSource, rank_session


@contextmanager
def open_ours(data: DataSet) -> Iterator[Run]:
    """The engine over the eager CPU device. One restore before the first round is read back and held against the stored pages."""
    source = RankSource(rank=0, manifest=data.loaded.path, chunks=data.chunks)
    with CpuDevice(Deferral.EAGER) as device, rank_session(source, device) as session:
        if not isinstance(session, RankSession):
            raise CannotTellError(Code.UNSUPPORTED, f"the data set cannot be restored: {session.error}", fix="generate it again")
        prove_placement(session)
        timed = replace(session, request=replace(session.request, read_back=None))
        yield lambda: partial(detail_of, timed.restore())


def prove_placement(session: RankSession) -> None:
    """Restore over poison and compare every page with what is stored; a measurement of wrong bytes would be worth nothing."""
    session.poison()
    result = by_reference(session).restore()
    result.demand_verified()
    if result.read_back is None or bad_pages(session, result.read_back):
        raise CannotTellError(Code.UNSUPPORTED, "the restored pages are not the stored ones", fix="report this as a defect of countermark")


def detail_of(result: RestoreResult) -> Detail:
    """What the engine counted and timed, in bytes and microseconds. Raises `RefusedError` for a restore that is not verified."""
    result.demand_verified()
    marks = high_water(result.trace)
    counted = {"bytes": result.counters.source_bytes, "readers_max": marks.readers, "retained_bytes_max": marks.retained_bytes}
    return {**counted, **result.timing.to_json()}
