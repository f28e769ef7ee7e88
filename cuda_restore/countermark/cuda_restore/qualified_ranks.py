"""Rungs 1 to 3 on the snapshot to be qualified, and the oracle's answer where the snapshot is the oracle's own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import CountermarkError, InputError, RefusedError
from countermark.attestations.located import JsonValue
from countermark.cuda_restore.device import Device
from countermark.cuda_restore.events import Authenticated, Planned, Requested
from countermark.cuda_restore.multirank import AllRanks, RankRun, RankTarget, judge_ranks, open_ranks
from countermark.cuda_restore.oracle import Answer, Oracle
from countermark.cuda_restore.oracle_snapshot import as_cache, known_prompt
from countermark.cuda_restore.readback import bad_pages, by_reference, page_name, pages_of
from countermark.cuda_restore.reader import load_manifest
from countermark.cuda_restore.request import Advance, unwatched
from countermark.cuda_restore.restore_plan import RankPlan, RestorePlan
from countermark.cuda_restore.result import RestoreOutcome, RestoreResult, not_begun, requested
from countermark.cuda_restore.root import SnapshotRoot
from countermark.cuda_restore.rungs import Rung, RungReport, not_run
from countermark.cuda_restore.session import RankSession


@dataclass(frozen=True, slots=True)
class SignedRoot:
    """What a verified statement says of the snapshot, and the digest of its payload."""

    root: SnapshotRoot
    payload: Digest


@dataclass(frozen=True, slots=True, eq=False)
class OracleAnswer:
    """What the oracle said about restored caches of its own, and the word that it should have said."""

    codeword: str
    answer: Answer

    def to_json(self) -> dict[str, JsonValue]:
        """The `answer` of a restore-run."""
        return {
            "required": self.codeword,
            "raw": str(Digest.of(DigestKind.RESPONSE_RAW, self.answer.word.encode())),
            "normalisation": ["none"],
            "outcome": str(Outcome.PASS if self.answer.word == self.codeword else Outcome.FAIL),
        }


@dataclass(frozen=True, slots=True, eq=False)
class QualifiedRanks:
    """What the plan's ranks came to. `bad_ranks` have a page that is not the stored one, or a stream that is not the promised one.

    `own_answer` is there when the snapshot is the oracle's own.
    """

    verdict: AllRanks
    reports: dict[Rung, RungReport]
    bad_ranks: frozenset[int] = frozenset()
    own_answer: OracleAnswer | None = None


def check_root(plan: RestorePlan, signed: SignedRoot | None) -> SnapshotRoot:
    """The root, after every manifest of the plan was found in it, and found to be of the plan's context.

    Raises `InputError` for a manifest that does not read or that the plan does not mean, `RefusedError` for one that is not signed for,
    or when the plan leaves a rank of the root out.
    """
    loaded = [load_manifest(rank.manifest) for rank in plan.ranks]
    plan.check(loaded)
    if signed is None:
        raise RefusedError(Code.SUBJECT_UNKNOWN, "no signed statement lists these manifests", fix="record the snapshot, then qualify it")
    for one in loaded:
        signed.root.check(one)
    left_out = {rank.rank for rank in signed.root.ranks} - {rank.rank for rank in plan.ranks}
    if left_out or signed.root.missing_ranks:
        missing = sorted(left_out | set(signed.root.missing_ranks))
        raise RefusedError(Code.INCOMPLETE, f"ranks {missing} of TP {signed.root.tp} are left out", fix="record and plan every rank")
    return signed.root


def qualify_ranks(plan: RestorePlan, signed: SignedRoot | None, devices: Sequence[Device], advance: Advance = unwatched) -> QualifiedRanks:
    """Hold every manifest against the signed root, restore all ranks into poison, and read back. `devices` are the ranks', in order.

    Nothing is restored that is not signed for. `advance` is told every byte twice: when it is restored, and when it was read back.
    """
    try:
        root = check_root(plan, signed)
    except (InputError, RefusedError) as error:
        return _not_signed(plan, error)
    targets = [RankTarget(source, device, plan.image) for source, device in zip(plan.sources(), devices, strict=True)]
    with open_ranks(targets) as opened:
        try:
            for session in opened.sessions:
                if isinstance(session, RankSession):
                    root.check_layout(session.request.arena.layout.sha256)
        except RefusedError as error:
            return _not_signed(plan, error)
        ranks = replace(opened, sessions=tuple(map(_poisoned, opened.sessions)))
        verdict = ranks.restore(advance=advance)
        sessions = [session for session in ranks.sessions if isinstance(session, RankSession)]
        return _reached(verdict, sessions, advance) if verdict.outcome is RestoreOutcome.VERIFIED else _recomputed(verdict)


def _not_signed(plan: RestorePlan, error: CountermarkError) -> QualifiedRanks:
    """No rank may be restored."""
    unreached = not_run("nothing is restored that is not signed for")
    return QualifiedRanks(
        judge_ranks([RankRun(not_begun(_first(plan, rank), error), None, plan.image) for rank in plan.ranks]),
        {Rung.SIGNED_ROOT: RungReport(Outcome.FAIL, str(error)), Rung.COVERAGE: unreached, Rung.READBACK: unreached},
    )


def _first(plan: RestorePlan, rank: RankPlan) -> Requested:
    """The request of a rank, of which nothing is known when its manifest does not read."""
    try:
        return requested(load_manifest(rank.manifest), plan.bounds, 1)
    except InputError:
        return Requested(rank.rank, Digest.of(DigestKind.FILE, b""), 0, 0, plan.bounds.readers, plan.bounds.retained_bytes, 1)


def _poisoned(session: RankSession | RestoreResult) -> RankSession | RestoreResult:
    if isinstance(session, RestoreResult):
        return session
    session.poison()
    return by_reference(session)


def _recomputed(verdict: AllRanks) -> QualifiedRanks:
    """The engine threw the prefix away; the lowest rung that it did not get over has failed."""
    finding = verdict.findings[0]
    why = f"{finding.subject or 'all ranks'}: {finding.observed}"
    whole = all(_authenticated(run) for run in verdict.runs)
    unplaced = not_run("an object was not authenticated, so the prefix is recomputed")
    return QualifiedRanks(
        verdict,
        {
            Rung.SIGNED_ROOT: RungReport(Outcome.PASS) if whole else RungReport(Outcome.FAIL, why),
            Rung.COVERAGE: RungReport(Outcome.FAIL, why) if whole else unplaced,
            Rung.READBACK: not_run("the prefix is recomputed, so there is nothing to read back"),
        },
    )


def _authenticated(run: RankRun) -> bool:
    """Whether every object of a rank has its SHA-256."""
    done = sum(isinstance(event, Authenticated) for event in run.result.trace.events)
    return run.result.objects > 0 and done == run.result.objects


def _reached(verdict: AllRanks, sessions: Sequence[RankSession], advance: Advance) -> QualifiedRanks:
    """Every rank is verified: count the proven bytes once more, and look at what lies in the caches."""
    coverage = RungReport(Outcome.PASS)
    bad: dict[int, str] = {}
    for run, session in zip(verdict.runs, sessions, strict=True):
        coverage = _coverage(run, session) or coverage
        why = _read_back(run, session)
        advance(session.request.loaded.manifest.encoded_bytes)
        if why:
            bad[run.result.rank] = why
    told = "; ".join(f"rank {rank}: {why}" for rank, why in bad.items())
    return QualifiedRanks(
        verdict,
        {
            Rung.SIGNED_ROOT: RungReport(Outcome.PASS),
            Rung.COVERAGE: coverage,
            Rung.READBACK: RungReport(Outcome.FAIL, told) if bad else RungReport(Outcome.PASS),
        },
        frozenset(bad),
        _ask_own(sessions),
    )


def _coverage(run: RankRun, session: RankSession) -> RungReport | None:
    """A failure unless the plan proved exactly the bytes that the reference says the pages have."""
    proven = sum(event.bytes for event in run.result.trace.events if isinstance(event, Planned))
    pages = session.request.read_back
    owed = int(pages["bytes"].sum()) if pages is not None else 0
    if proven == owed > 0:
        return None
    return RungReport(Outcome.FAIL, f"rank {run.result.rank}: {proven} bytes are proven, its pages have {owed}")


def _read_back(run: RankRun, session: RankSession) -> str | None:
    """Why what lies in a rank's cache is not what is stored; nothing when it is."""
    found = run.result.read_back
    if found is None:
        return "no page was read back"
    try:
        bad = bad_pages(session, found)
    except InputError as error:
        return error.message
    return f"{page_name(session, bad[0])}; {len(bad)} of {len(found.digests)} pages are not what is stored" if bad else None


def _ask_own(sessions: Sequence[RankSession]) -> OracleAnswer | None:
    """Ask the oracle about the restored caches, if they are its own."""
    known = known_prompt(sessions[0].request.loaded.manifest)
    if known is None or len(sessions) != known[0].ranks:
        return None
    shape, prompt = known
    by_rank = sorted(sessions, key=lambda session: session.request.loaded.manifest.identity.rank)
    return OracleAnswer(prompt.codeword, Oracle(shape).answer(prompt, [as_cache(shape, pages_of(session)) for session in by_rank]))
