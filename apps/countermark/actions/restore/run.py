"""`restore run`: authenticate and place a snapshot, say where the time went, write nothing to a ledger."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from countermark.actions.cores import cores
from countermark.actions.restore.beside import chunks_of, read_layout
from countermark.actions.restore.tally import Tally
from countermark.attestations.codes import Code
from countermark.attestations.documents import read_file
from countermark.attestations.errors import InputError, UsageError
from countermark.attestations.findings import Finding
from countermark.cuda_restore.device import DeviceInfo, DeviceKind
from countermark.cuda_restore.manifest import MANIFEST_BYTES_MAX
from countermark.cuda_restore.multirank import AllRanks, RankRun, RankTarget, open_ranks
from countermark.cuda_restore.reader import LoadedManifest, load_manifest, read_object
from countermark.cuda_restore.request import Advance, Authenticate
from countermark.cuda_restore.result import RestoreOutcome
from countermark.cuda_restore.selection import open_device
from countermark.cuda_restore.session import RankSession, RankSource
from countermark.cuda_restore.slabs import DEFAULT_BOUNDS, Bounds
from countermark.cuda_restore.store import Folder
from countermark.cuda_restore.trace import encode_traces
from countermark.cuda_restore.trace_rules import check_trace
from countermark.recorders.recording import Progress, silent

SAMPLE_BYTES: Final = 64 * 1024 * 1024
"""How much of a snapshot is read once more to measure the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What to restore where: one manifest a rank, and one device for all ranks or one each, in their order."""

    manifests: tuple[Path, ...]
    devices: tuple[str, ...] = ("cpu",)
    chunks: Path | None = None
    layout: Path | None = None
    bounds: Bounds = DEFAULT_BOUNDS
    authenticate: Authenticate = Authenticate.OBJECT


@dataclass(frozen=True, slots=True)
class Limit:
    """The work that no restore on this machine gets around: reading, hashing and, without a copy engine, placing every byte.

    Nanoseconds of one thread for `sample_bytes`, spread over as many `workers` as there are readers and cores.
    """

    sample_bytes: int
    read_and_hash_ns: int
    place_ns: int
    workers: int

    def microseconds(self, size_bytes: int) -> int:
        """The shortest time in which that many bytes can be restored here; at least 1."""
        return max((self.read_and_hash_ns + self.place_ns) * size_bytes // (self.sample_bytes * self.workers * 1000), 1)


@dataclass(frozen=True, slots=True, eq=False)
class Ran:
    """What every rank came to. `missing` are ranks of the topology that were not given, so that nothing is said of all of them.

    `limits` has the limit of each rank that was verified, measured behind its restore.
    """

    runs: tuple[RankRun, ...]
    findings: tuple[Finding, ...]
    missing: tuple[int, ...]
    devices: tuple[DeviceInfo, ...]
    limits: dict[int, Limit]

    @property
    def outcome(self) -> RestoreOutcome:
        """Verified when there is nothing to find."""
        return RestoreOutcome.RECOMPUTE if self.findings else RestoreOutcome.VERIFIED

    @property
    def trace(self) -> bytes:
        """The traces of all ranks, as one file."""
        return encode_traces([run.result.trace for run in self.runs])


def run_restore(asked: Asked, progress: Progress = silent) -> Ran:
    """Restore all ranks that were given.

    What the snapshot or a driver does wrong is a finding. Raises `InputError` for files that are not there, `CannotTellError` for a
    device that is not.
    """
    names = _device_names(asked)
    sources = [_source(asked, path, place) for place, path in enumerate(asked.manifests)]
    with ExitStack() as opened:
        devices = {name: opened.enter_context(open_device(name)) for name in dict.fromkeys(names)}
        targets = [RankTarget(source, devices[name]) for source, name in zip(sources, names, strict=True)]
        verdict = _restore(targets, Tally(progress, sum(map(_encoded_bytes, asked.manifests))).advance)
        infos = tuple(devices[name].info for name in names)
    limits = {
        run.result.rank: measure_limit(run.loaded, source.chunks, asked.bounds.readers, info.kind)
        for run, source, info in zip(verdict.runs, sources, infos, strict=True)
        if run.loaded and run.result.verified
    }
    return Ran(verdict.runs, verdict.findings, _missing(verdict.runs), infos, limits)


def _device_names(asked: Asked) -> tuple[str, ...]:
    ranks = len(asked.manifests)
    if len(asked.devices) not in (1, ranks):
        message = f"{len(asked.devices)} devices for {ranks} ranks"
        raise UsageError(Code.UNKNOWN_NAME, message, fix="give one device for all ranks, or one for each in the order of the manifests")
    return asked.devices if len(asked.devices) == ranks else asked.devices * ranks


def _source(asked: Asked, path: Path, place: int) -> RankSource:
    read_file(path, limit=MANIFEST_BYTES_MAX)
    return RankSource(
        rank=_rank_of(path, place),
        manifest=path,
        chunks=chunks_of(path, asked.chunks),
        layout=read_layout(asked.layout) if asked.layout else None,
        bounds=asked.bounds,
        authenticate=asked.authenticate,
    )


def _rank_of(path: Path, place: int) -> int:
    """The rank that a manifest says; its place among the manifests where it is too damaged to say."""
    try:
        return load_manifest(path).manifest.identity.rank
    except InputError:
        return place


def _encoded_bytes(path: Path) -> int:
    """The bytes of one rank's stream; none where the manifest is too damaged to say."""
    try:
        return load_manifest(path).manifest.encoded_bytes
    except InputError:
        return 0


def _restore(targets: Sequence[RankTarget], advance: Advance) -> AllRanks:
    """All ranks with the verdict over all. One rank alone, as on one machine of several, is judged by itself."""
    with open_ranks(targets) as ranks:
        if len(targets) > 1:
            return ranks.restore(advance=advance)
        (session,) = ranks.sessions
        if isinstance(session, RankSession):
            run = RankRun(session.restore(advance=advance), session.request.loaded)
        else:
            run = RankRun(session, None)
    failed = run.result.finding()
    return AllRanks((run,), (*([failed] if failed else []), *check_trace(run.result.trace, f"rank {run.result.rank}")))


def _missing(runs: Sequence[RankRun]) -> tuple[int, ...]:
    degrees = [run.loaded.manifest.identity.tp_degree for run in runs if run.loaded]
    return tuple(sorted(set(range(max(degrees, default=0))) - {run.result.rank for run in runs}))


def measure_limit(loaded: LoadedManifest, chunks: Path, readers: int, kind: DeviceKind) -> Limit:
    """Read and authenticate a sample of the objects once more, on one thread, and copy it once for a device that is the CPU itself.

    The objects were read a moment ago, so this is the limit of a warm page cache.
    """
    sample = np.empty(max(min(SAMPLE_BYTES, loaded.manifest.encoded_bytes), loaded.manifest.objects[0].size_bytes), np.uint8)
    sample.fill(0)
    done = 0
    with Folder.at(chunks) as folder:
        begun = time.perf_counter_ns()
        for descriptor in loaded.manifest.objects:
            if done + descriptor.size_bytes > sample.size:
                break
            read_object(folder, descriptor, sample[done : done + descriptor.size_bytes].data)
            done += descriptor.size_bytes
        read_and_hash_ns = time.perf_counter_ns() - begun
    return Limit(done, read_and_hash_ns, _copy_ns(sample[:done]) if kind is DeviceKind.CPU else 0, min(readers, cores()))


def _copy_ns(sample: "np.typing.NDArray[np.uint8]") -> int:
    place = np.empty_like(sample)
    place.fill(0)
    begun = time.perf_counter_ns()
    np.copyto(place, sample)
    return time.perf_counter_ns() - begun
