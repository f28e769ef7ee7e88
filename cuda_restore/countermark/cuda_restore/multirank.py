"""All ranks of one context: each has its own manifest, identity and device; the prefix is used on all of them or on none.

Any failure on any rank discards the whole prefix everywhere. Ranks that differ in context, in the cache they were written for, or in
the image that runs them are not one deployment, whatever their bytes say.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.digests import Digest
from countermark.attestations.errors import CountermarkError, InputError, NothingError
from countermark.attestations.findings import Finding
from countermark.cuda_restore.device import Device, DriverError
from countermark.cuda_restore.reader import LoadedManifest
from countermark.cuda_restore.request import Advance, Interference, unwatched
from countermark.cuda_restore.result import RestoreOutcome, RestoreResult
from countermark.cuda_restore.root import SnapshotRoot
from countermark.cuda_restore.session import RankSession, RankSource, rank_session
from countermark.cuda_restore.trace import encode_traces
from countermark.cuda_restore.trace_rules import check_trace


@dataclass(frozen=True, slots=True, eq=False)
class RankRun:
    """What one rank did: its result, its manifest unless that could not be read, and the image that ran there, if any."""

    result: RestoreResult
    loaded: LoadedManifest | None
    image: Digest | None = None


@dataclass(frozen=True, slots=True, eq=False)
class AllRanks:
    """The verdict over all ranks, and why it is not `verified`."""

    runs: tuple[RankRun, ...]
    findings: tuple[Finding, ...]

    @property
    def outcome(self) -> RestoreOutcome:
        """Verified when there is nothing to find; there is no partial success."""
        return RestoreOutcome.RECOMPUTE if self.findings else RestoreOutcome.VERIFIED

    @property
    def trace(self) -> bytes:
        """The traces of all ranks, as one file."""
        return encode_traces([run.result.trace for run in self.runs])


@dataclass(frozen=True, slots=True)
class RankTarget:
    """One rank's snapshot, the device it goes to, and the image that runs there, if any."""

    source: RankSource
    device: Device
    image: Digest | None = None


def judge_ranks(runs: Sequence[RankRun]) -> AllRanks:
    """The all-ranks verdict. `NothingError` when there is no rank to judge."""
    if not runs:
        raise NothingError(Code.NOTHING_EVALUATED, "no rank was restored", fix="list the ranks of the snapshot in the plan")
    return AllRanks(tuple(runs), (*_failures(runs), *_one_snapshot(runs), *_one_image(runs)))


def _failures(runs: Sequence[RankRun]) -> Iterator[Finding]:
    for run in runs:
        failed = run.result.finding()
        if failed:
            yield failed
        yield from check_trace(run.result.trace, f"rank {run.result.rank}")


def _one_snapshot(runs: Sequence[RankRun]) -> Iterator[Finding]:
    """Every rank of one topology, once, with one context; ranks without a manifest have failed already."""
    loaded = [run.loaded for run in runs if run.loaded]
    if len(loaded) < len(runs):
        return
    try:
        root = SnapshotRoot.of(loaded)
    except InputError as error:
        yield _finding("restore.one-snapshot", "manifests of one context in one cache, one a rank", error)
        return
    if root.missing_ranks:
        missing = InputError(Code.INCOMPLETE, f"ranks {list(root.missing_ranks)} of TP {root.tp} are missing", fix="restore every rank")
        yield _finding("restore.all-ranks", "every rank of the topology", missing)


def _one_image(runs: Sequence[RankRun]) -> Iterator[Finding]:
    images = {str(run.image) for run in runs}
    if len(images) > 1:
        mixed = InputError(Code.SUBJECT_MISMATCH, f"the ranks run {sorted(images)}", fix="run one image on all ranks")
        yield _finding("restore.one-image", "one image on all ranks", mixed)


def _finding(checker: str, required: str, error: CountermarkError) -> Finding:
    observed = error.message
    return Finding(error.code, Outcome.FAIL, error.fix, checker=checker, location=error.at, required=required, observed=observed)


@dataclass(frozen=True, slots=True)
class RankSet:
    """The targets of all ranks and their sessions; a result stands in place of a session that could not be opened."""

    targets: tuple[RankTarget, ...]
    sessions: tuple[RankSession | RestoreResult, ...]

    def restore(self, interference: Interference | None = None, *, on_rank: int | None = None, advance: Advance = unwatched) -> AllRanks:
        """Restore each rank in turn, every one of them for the record, then judge; unless all are verified, discard all.

        `interference` disturbs rank `on_rank`, or every rank.
        """
        runs = []
        for target, session in zip(self.targets, self.sessions, strict=True):
            disturbed = interference if on_rank in (None, target.source.rank) else None
            if isinstance(session, RestoreResult):
                runs.append(RankRun(session, None, target.image))
            else:
                runs.append(RankRun(session.restore(disturbed, advance), session.request.loaded, target.image))
        verdict = judge_ranks(runs)
        if verdict.outcome is RestoreOutcome.VERIFIED:
            return verdict
        return AllRanks(verdict.runs, (*verdict.findings, *self._discard()))

    def _discard(self) -> Iterator[Finding]:
        """Overwrite what was placed on every rank, so that nobody can take a part for the whole."""
        for session in self.sessions:
            if isinstance(session, RankSession):
                try:
                    session.poison()
                    session.device.synchronize(session.stream)
                except DriverError as error:
                    yield _finding("restore.discarded", "a failed prefix is overwritten on every rank", error)


@contextmanager
def open_ranks(targets: Sequence[RankTarget]) -> Iterator[RankSet]:
    """Open the sessions of all ranks at once; their memory is released at the end. The devices stay open."""
    with ExitStack() as opened:
        sessions = tuple(opened.enter_context(rank_session(target.source, target.device)) for target in targets)
        yield RankSet(tuple(targets), sessions)
