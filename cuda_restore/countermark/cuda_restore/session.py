"""One rank on one device: a cache made to measure for a snapshot, slots to fill it through, and restores of it as often as wanted.

A server brings its own cache and block table and calls `engine.restore`. This is for those who have only a snapshot: the command line,
measurements, and a run over all ranks.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError
from countermark.cuda_restore.arena import POISON, Arena, BlockTable
from countermark.cuda_restore.device import Bytes, Device, DriverError, Stream
from countermark.cuda_restore.engine import restore
from countermark.cuda_restore.events import Requested
from countermark.cuda_restore.geometry import Geometry, Layout
from countermark.cuda_restore.page_digest import page_table
from countermark.cuda_restore.pool import open_ring
from countermark.cuda_restore.reader import LoadedManifest, find_layout, load_manifest, read_head
from countermark.cuda_restore.request import Advance, Authenticate, Interference, RestoreRequest, unwatched
from countermark.cuda_restore.result import RestoreResult, not_begun, requested
from countermark.cuda_restore.slabs import DEFAULT_BOUNDS, Bounds
from countermark.cuda_restore.staging import StagingRing
from countermark.cuda_restore.store import Folder
from countermark.cuda_restore.stream import StreamHeader, StreamLayout

BLOCK_SEED: Final = 20_261_202
"""Blocks are dealt in this shuffled order, the same every time, because a restore into consecutive blocks proves little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSource:
    """Where one rank's snapshot lies, and how it is to be restored. Without a layout, the store's own is taken."""

    rank: int
    manifest: Path
    chunks: Path
    layout: Layout | None = None
    bounds: Bounds = DEFAULT_BOUNDS
    authenticate: Authenticate = Authenticate.OBJECT


@dataclass(frozen=True, slots=True, eq=False)
class RankSession:
    """A cache with room for one context, on a device that stays open for as long as this. `stream` is its compute stream."""

    device: Device
    stream: Stream
    ring: StagingRing
    request: RestoreRequest

    def poison(self) -> None:
        """Queue the overwriting of the whole destination, so that nothing of an earlier restore is left in it."""
        self.device.fill(self.request.destination, POISON, self.stream)

    def restore(self, interference: Interference | None = None, advance: Advance = unwatched) -> RestoreResult:
        """Restore behind whatever is queued on the compute stream."""
        prerequisite = self.device.record(self.stream)
        try:
            return restore(self.request, self.ring, prerequisite=prerequisite, interference=interference, advance=advance)
        finally:
            self.device.release(prerequisite)

    def memory(self) -> Bytes:
        """A copy of the whole destination."""
        return self.device.read(self.request.destination, 0, self.request.destination.size, self.stream)


def snapshot_geometry(manifest_file: LoadedManifest, chunks: Path, layout: Layout | None = None) -> Geometry:
    """What the header of a snapshot says, after its first object was authenticated. `InputError` when anything is wrong with it."""
    manifest = manifest_file.manifest
    with Folder.at(chunks) as folder:
        head = read_head(folder, manifest)
    source = manifest.objects[0].file_name
    header, _ = StreamHeader.decode(head, source)
    return StreamLayout.read(head, manifest, layout or find_layout(chunks, header.layout_sha256), source).geometry


@contextmanager
def open_session(
    device: Device,
    loaded: LoadedManifest,
    chunks: Path,
    geometry: Geometry,
    *,
    bounds: Bounds = DEFAULT_BOUNDS,
    authenticate: Authenticate = Authenticate.OBJECT,
) -> Iterator[RankSession]:
    """Allocate a cache for one context and slots within `bounds`; all is released at the end, after submitted work was waited for."""
    arena = Arena.around(geometry.layout, geometry.block_counts)
    blocks = BlockTable.shuffled(geometry.block_counts, arena.capacities, BLOCK_SEED)
    with ExitStack() as owned:
        stream = device.new_stream()
        owned.callback(device.release, stream)
        destination = device.allocate(arena.size_bytes)
        owned.callback(device.release, destination)
        owned.callback(partial(device.synchronize, stream))
        ring = owned.enter_context(open_ring(device, loaded.manifest, arena, blocks, bounds))
        request = RestoreRequest(
            loaded=loaded,
            chunks=chunks,
            arena=arena,
            blocks=blocks,
            destination=destination,
            bounds=bounds,
            authenticate=authenticate,
            read_back=page_table(*arena.pages(blocks)),
        )
        yield RankSession(device, stream, ring, request)


@contextmanager
def rank_session(source: RankSource, device: Device) -> Iterator[RankSession | RestoreResult]:
    """Look a rank's snapshot up and open a session for it, or else give the result `recompute` that says why there is none.

    A missing manifest, a damaged one, a first object that does not authenticate and a failed allocation are all the same to a server:
    it recomputes. What goes wrong after the session was opened is the body's.
    """
    with ExitStack() as opened:
        yield _open(source, device, opened)


def _open(source: RankSource, device: Device, opened: ExitStack) -> RankSession | RestoreResult:
    try:
        loaded = load_manifest(source.manifest)
        _check_rank(source, loaded)
    except InputError as error:
        return not_begun(_unknown(source), error)
    first = requested(loaded, source.bounds, 1)
    try:
        geometry = snapshot_geometry(loaded, source.chunks, source.layout)
    except InputError as error:
        blamed = error.at is not None and Path(error.at.file).name == loaded.manifest.objects[0].file_name
        return not_begun(first, error, index=0 if blamed else None)
    try:
        return opened.enter_context(
            open_session(device, loaded, source.chunks, geometry, bounds=source.bounds, authenticate=source.authenticate)
        )
    except DriverError as error:
        return not_begun(first, error)


def _check_rank(source: RankSource, loaded: LoadedManifest) -> None:
    found = loaded.manifest.identity.rank
    if found != source.rank:
        message = f"this is the manifest of rank {found}, rank {source.rank} was to be restored"
        raise InputError(Code.SUBJECT_MISMATCH, message, fix="give each rank its own manifest")


def _unknown(source: RankSource) -> Requested:
    """A request of which nothing but the file's bytes is known; of no bytes when there are none."""
    try:
        data = source.manifest.read_bytes()
    except OSError:
        data = b""
    return Requested(source.rank, Digest.of(DigestKind.FILE, data), 0, 0, source.bounds.readers, source.bounds.retained_bytes, 1)
