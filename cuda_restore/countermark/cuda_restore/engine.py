"""One restore on one rank: authenticate, place, prove. It ends verified, or with the whole prefix to be recomputed.

    re-read the manifest -> readers authenticate slabs of objects in their slots -> parse the first object's header -> plan and prove
    -> open the placement behind the prerequisite -> submit in manifest order -> wait -> compare the counters -> read back

The coordinating thread does the right-hand side of that and submits; the readers read and hash. What must not be forgotten is not
checked here but cannot be written: a slot's bytes exist only after its ticket was waited for, a placement only behind an event.
"""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import CannotTellError, CountermarkError, InputError, Location, RefusedError
from countermark.cuda_restore.device import DriverError, Event, Violation
from countermark.cuda_restore.events import (
    Aborted,
    Completed,
    Discarded,
    Failed,
    FaultInjected,
    HeaderParsed,
    ManifestReread,
    Ordered,
    Planned,
    ReadBack,
    Recompute,
    Submitted,
    TraceEvent,
    Verified,
)
from countermark.cuda_restore.ownership import Ownership
from countermark.cuda_restore.page_digest import DigestKey
from countermark.cuda_restore.plan import PlacementPlan, plan_placement
from countermark.cuda_restore.pool import ReaderPool
from countermark.cuda_restore.reader import reload_manifest
from countermark.cuda_restore.request import Advance, Authenticate, Interference, RestoreRequest, unwatched
from countermark.cuda_restore.result import Counters, PageReadBack, RestoreOutcome, RestoreResult, requested
from countermark.cuda_restore.slabs import Slab, slab_bytes_max, slabs_of
from countermark.cuda_restore.spans import SpanTable
from countermark.cuda_restore.staging import Placement, PlacementStats, StagingRing, StateError, begin
from countermark.cuda_restore.store import Folder
from countermark.cuda_restore.stream import HEAD_BYTES_MAX, StreamLayout
from countermark.cuda_restore.timing import Phase, Stopwatch
from countermark.cuda_restore.trace import Recorder


def restore(
    request: RestoreRequest,
    ring: StagingRing,
    *,
    prerequisite: Event,
    interference: Interference | None = None,
    recorder: Recorder | None = None,
    advance: Advance = unwatched,
) -> RestoreResult:
    """Restore through the slots of `ring`, after `prerequisite`, the last work that touched the destination's pages.

    What the bytes, the document or the driver do wrong is a result `recompute` with that error. When the caller is interrupted, or the
    program is wrong, the exception goes on after the readers stopped and submitted work was waited for; `recorder` then has the trace.
    """
    return _Restore(request, ring, prerequisite, interference, recorder or Recorder(), advance).run()


class _Restore:
    """The state of one run; the phase of the stopwatch and the object at hand are also where a failure happened."""

    def __init__(
        self,
        request: RestoreRequest,
        ring: StagingRing,
        prerequisite: Event,
        interference: Interference | None,
        recorder: Recorder,
        advance: Advance,
    ) -> None:
        self._request, self._ring, self._prerequisite = request, ring, prerequisite
        self._interference, self._recorder, self._advance = interference, recorder, advance
        self._manifest = request.loaded.manifest
        self._slabs = slabs_of(self._manifest.objects, request.bounds)
        self._readers = _readers(request, ring, self._slabs)
        self._batch = self._readers if request.authenticate is Authenticate.BATCH else 1
        self._object: int | None = None
        self._source_bytes = self._planned = self._launches = self._placed_bytes = self._device_error = 0
        self._read_ns = self._hash_ns = 0
        self._watch = Stopwatch()

    def run(self) -> RestoreResult:
        self._record(requested(self._request.loaded, self._request.bounds, self._batch))
        if self._interference:
            self._record(FaultInjected(self._interference.fault))
        try:
            read_back = self._attempt()
            self._recorder.end(Verified())
            return self._result(RestoreOutcome.VERIFIED, read_back=read_back)
        except (InputError, RefusedError, CannotTellError) as error:
            self._fail(str(error.code))
            return self._result(RestoreOutcome.RECOMPUTE, error=error)
        except BaseException as error:
            self._fail(type(error).__name__)
            raise

    def _attempt(self) -> PageReadBack | None:
        self._reread()
        with Folder.at(self._request.chunks) as chunks:
            self._watch.switch(Phase.READER_WAIT)
            with ReaderPool(chunks, self._slabs, self._ring, self._readers, self._recorder) as pool:
                try:
                    plan = self._plan(pool)
                    with self._placement() as placement:
                        self._submit_all(pool, plan, placement)
                        stats = self._finish(pool, placement)
                finally:
                    self._read_ns, self._hash_ns = pool.read_ns, pool.hash_ns
        self._check(plan, stats)
        return self._read_back()

    def _reread(self) -> None:
        self._watch.switch(Phase.LOOKUP)
        again = reload_manifest(self._request.loaded)
        if again.manifest != self._manifest:
            message = "the manifest is not the one that was looked up, though the file is"
            raise InputError(Code.BAD_DIGEST, message, at=Location(str(again.path)), fix="look the context up again")
        self._record(ManifestReread(again.digest))

    def _plan(self, pool: ReaderPool) -> PlacementPlan:
        """Parse the header of the first object, which is authenticated by now, and prove the tables."""
        self._await(pool, self._slabs[0])
        self._object = 0
        self._watch.switch(Phase.PLAN)
        request, first = self._request, self._manifest.objects[0]
        head = bytes(pool.await_authenticated(0)[: min(first.size_bytes, HEAD_BYTES_MAX)])
        stream = StreamLayout.read(head, self._manifest, request.arena.layout, first.file_name)
        self._record(HeaderParsed(Digest(DigestKind.FILE, request.arena.layout.sha256), stream.header_bytes))
        plan = plan_placement(stream, self._slabs, request.arena, request.blocks)
        if request.arena.size_bytes > request.destination.size:
            message = f"the arena takes {request.arena.size_bytes} bytes, its buffer has {request.destination.size}"
            raise InputError(Code.TOO_LARGE, message, fix="allocate the whole arena")
        self._planned = plan.launches
        self._record(Planned(plan.launches, plan.spans, plan.proven_bytes))
        return plan

    @contextmanager
    def _placement(self) -> Iterator[Placement]:
        """A placement that is aborted when anything goes wrong in it: submitted work is waited for before anybody frees memory."""
        self._object = None
        self._watch.switch(Phase.PREREQUISITE_WAIT)
        with begin(self._ring, self._request.destination, prerequisite=self._prerequisite) as placement:
            self._record(Ordered())
            try:
                yield placement
            except BaseException as error:
                self._abort(placement, error)
                raise

    def _abort(self, placement: Placement, error: BaseException) -> None:
        try:
            placement.abort()
        except StateError:
            pass  # it had finished, so everything was waited for
        except CountermarkError as failure:
            error.add_note(f"while aborting: {failure}")
            return
        self._record(Aborted())

    def _submit_all(self, pool: ReaderPool, plan: PlacementPlan, placement: Placement) -> None:
        for first in range(0, len(self._slabs), self._batch):
            batch = self._slabs[first : first + self._batch]
            for slab in batch:
                self._await(pool, slab)
            self._watch.switch(Phase.COPY_SUBMIT)
            for slab in batch:
                self._object = slab.objects[0].index
                self._submit(pool, plan.slabs[slab.index], placement, slab)
                self._advance(slab.size_bytes)
        self._object = None

    def _await(self, pool: ReaderPool, slab: Slab) -> None:
        """Wait for a slab: for its slot first, then for its reader."""
        self._object = slab.objects[0].index
        self._watch.switch(Phase.SLOT_WAIT)
        pool.await_begun(slab.index)
        self._watch.switch(Phase.READER_WAIT)
        try:
            pool.await_authenticated(slab.index)
        finally:
            self._object = pool.reached(slab.index)

    def _submit(self, pool: ReaderPool, spans: SpanTable, placement: Placement, slab: Slab) -> None:
        if self._interference:
            spans = self._interference.disturb(slab.index, pool.await_authenticated(slab.index), spans)
        self._source_bytes += slab.size_bytes
        if not len(spans):  # nothing but header
            self._record(Discarded(slab.index))
            pool.hand_over(slab.index).discard()
            return
        self._record(Submitted(slab.index, len(spans), spans.total_bytes))
        placement.submit(pool.hand_over(slab.index), spans)
        self._launches += 1

    def _finish(self, pool: ReaderPool, placement: Placement) -> PlacementStats:
        self._watch.switch(Phase.DEVICE_WAIT)
        pool.settle()
        stats = placement.finish()
        self._placed_bytes, self._device_error = stats.status.placed_bytes, stats.status.error
        self._record(Completed(self._source_bytes, self._planned, self._launches, self._placed_bytes, self._device_error))
        return stats

    def _check(self, plan: PlacementPlan, stats: PlacementStats) -> None:
        """What the device did is what was planned; a rejected row or a byte too few is no restore."""
        if self._device_error:
            raise DriverError("kv_scatter", self._device_error, Violation.of_error(self._device_error))
        wanted = (self._manifest.encoded_bytes, plan.launches, plan.launches, plan.proven_bytes, 0)
        got = (self._source_bytes, self._launches, stats.slabs, stats.status.placed_bytes, stats.status.rejected_rows)
        if got != wanted:
            message = f"(source bytes, slabs, launches, placed bytes, rejected rows) are {got}, planned were {wanted}"
            raise RefusedError(Code.RECOMPUTE, message, fix="recompute the prefix")

    def _read_back(self) -> PageReadBack | None:
        device, pages = self._ring.device, self._request.read_back
        if pages is None:
            return None
        self._watch.switch(Phase.READBACK)
        key = DigestKey.of(secrets.token_bytes(16))
        with Ownership() as scratch:
            stream = device.new_stream()
            scratch.add(stream, partial(device.release, stream))
            digests = device.page_digests(self._request.destination, pages, key, stream)
        self._record(ReadBack(len(pages)))
        return PageReadBack(key, digests)

    def _fail(self, cause: str) -> None:
        self._record(Failed(self._watch.phase, self._object, cause))
        self._recorder.end(Recompute())

    def _result(
        self, outcome: RestoreOutcome, *, error: CountermarkError | None = None, read_back: PageReadBack | None = None
    ) -> RestoreResult:
        return RestoreResult(
            outcome=outcome,
            rank=self._manifest.identity.rank,
            manifest=self._request.loaded.digest,
            placed_bytes=self._placed_bytes if outcome is RestoreOutcome.VERIFIED else 0,
            objects=len(self._manifest.objects),
            counters=Counters(self._source_bytes, self._planned, self._launches, self._device_error),
            timing=self._watch.stop(readers_read_ns=self._read_ns, readers_hash_ns=self._hash_ns),
            trace=self._recorder.trace,
            error=error,
            read_back=read_back,
        )

    def _record(self, event: TraceEvent) -> None:
        self._recorder.record(event)


def _readers(request: RestoreRequest, ring: StagingRing, slabs: Sequence[Slab]) -> int:
    """How many slabs can be read at once through `ring`; a `StateError` when its slots do not fit the request."""
    if ring.capacity_bytes > request.bounds.retained_bytes or ring.capacity_bytes // len(ring.lanes) < slab_bytes_max(slabs):
        raise StateError("the slots of the ring do not fit the request; open the ring for this manifest and these bounds")
    return min(request.bounds.readers, len(ring.lanes), len(slabs))
