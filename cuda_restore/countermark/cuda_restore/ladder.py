"""The qualification ladder: from a signed root, over coverage, read-back and the oracle, up to a served model; all in one run.

A rung says what it saw itself, and beside it whether it noticed the faults that it must notice. One that did not is `inconclusive`,
whatever it said. What cannot be reached because a lower rung failed is `not-run`, with the reason.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final, Self

from countermark.attestations.codes import Outcome
from countermark.attestations.located import JsonValue
from countermark.cuda_restore.controls import run_controls
from countermark.cuda_restore.device import Device, DeviceInfo, DriverError
from countermark.cuda_restore.faults import Fault, faults_named
from countermark.cuda_restore.live import LiveReport, LiveTest, ask_live
from countermark.cuda_restore.oracle_prompt import OracleShape
from countermark.cuda_restore.qualified_ranks import OracleAnswer, QualifiedRanks, SignedRoot, qualify_ranks
from countermark.cuda_restore.reader import LoadedManifest
from countermark.cuda_restore.request import Advance, unwatched
from countermark.cuda_restore.restore_plan import RestorePlan
from countermark.cuda_restore.result import RestoreOutcome
from countermark.cuda_restore.rungs import Control, Rung, RungReport, not_run
from countermark.cuda_restore.selection import open_device
from countermark.cuda_restore.trace import Trace, encode_traces
from countermark.cuda_restore.trials import trial_bytes

DEFAULT_SHAPE: Final = OracleShape()


@dataclass(frozen=True, slots=True, eq=False)
class Qualification:
    """One climb: every rung's report, what the plan's ranks came to, who answered what, and all traces, those of the controls too."""

    plan: RestorePlan
    signed: SignedRoot | None
    devices: tuple[DeviceInfo, ...]
    ranks: QualifiedRanks
    rungs: dict[Rung, RungReport]
    answer: dict[str, JsonValue] | None
    live: LiveReport | None
    traces: tuple[Trace, ...]

    @property
    def outcome(self) -> RestoreOutcome:
        """Verified when every rank is and no rung failed; anything else is recomputed."""
        failed = any(report.outcome is Outcome.FAIL for report in self.rungs.values())
        return RestoreOutcome.RECOMPUTE if failed else self.ranks.verdict.outcome

    @property
    def trace(self) -> bytes:
        """All traces, as one file."""
        return encode_traces(self.traces)


def work_bytes(plan: RestorePlan, loaded: Sequence[LoadedManifest], shape: OracleShape = DEFAULT_SHAPE) -> int:
    """How many bytes a climb restores and reads back: every rank's twice, and the bundled oracle's once for each device and fault."""
    trials = len({rank.device for rank in plan.ranks}) + len(faults_named(plan.faults))
    return 2 * sum(one.manifest.encoded_bytes for one in loaded) + trials * trial_bytes(shape)


def qualify(
    plan: RestorePlan, signed: SignedRoot | None, *, shape: OracleShape = DEFAULT_SHAPE, advance: Advance = unwatched
) -> Qualification:
    """Climb the rungs of the plan. `shape` is the size of the bundled oracle; `advance` is told of the `work_bytes` as they are done.

    What the snapshot, a device's work or a server does wrong is in the reports. Raises `CannotTellError` when a device of the plan is not
    there, `InputError` for faults, questions or addresses in the plan that have no meaning.
    """
    faults = faults_named(plan.faults)
    test = LiveTest.of(plan) if plan.live and Rung.LIVE.number in plan.rungs else None
    with ExitStack() as opened:
        devices = {name: opened.enter_context(open_device(name)) for name in dict.fromkeys(rank.device for rank in plan.ranks)}
        ranks = qualify_ranks(plan, signed, [devices[rank.device] for rank in plan.ranks], advance)
        bundled = _Bundled.run(list(devices.values()), faults, shape, advance)
        live = ask_live(test) if test else None
        infos = tuple(device.info for device in devices.values())
    oracle = ranks.own_answer or bundled.answer
    traces = (*(run.result.trace for run in ranks.verdict.runs), *bundled.traces)
    answer = live.answer if live else (oracle.to_json() if oracle else None)
    return Qualification(plan, signed, infos, ranks, _reports(plan, ranks, bundled, live), answer, live, traces)


@dataclass(frozen=True, slots=True, eq=False)
class _Bundled:
    """The bundled oracle on every device of the plan, and the controls on the first; or the device error that ended them."""

    report: RungReport
    controls: dict[Rung, tuple[Control, ...]]
    answer: OracleAnswer | None
    traces: tuple[Trace, ...]

    @classmethod
    def run(cls, devices: Sequence[Device], faults: Sequence[Fault], shape: OracleShape, advance: Advance) -> Self:
        first, *others = devices
        try:
            runs = [
                run_controls(first, faults, shape, advance),
                *(run_controls(device, (), shape, advance) for device in others),
            ]
        except DriverError as error:
            return cls(RungReport(Outcome.ERROR, str(error)), {}, None, ())
        undisturbed = [run.undisturbed for run in runs]
        worst = next((trial for trial in undisturbed if trial.why), undisturbed[0])
        report = RungReport(Outcome.FAIL, f"the bundled oracle: {worst.why}") if worst.why else RungReport(Outcome.PASS)
        answer = OracleAnswer(worst.codeword, worst.answer) if worst.answer else None
        return cls(report, runs[0].controls, answer, tuple(trace for run in runs for trace in run.traces))


def _reports(plan: RestorePlan, ranks: QualifiedRanks, bundled: _Bundled, live: LiveReport | None) -> dict[Rung, RungReport]:
    own = {**ranks.reports, Rung.ORACLE: _oracle(ranks, bundled)}
    reports = {rung: _proven(plan, rung, report, bundled.controls.get(rung, ())) for rung, report in own.items()}
    return {**reports, Rung.LIVE: _live(plan, live)}


def _oracle(ranks: QualifiedRanks, bundled: _Bundled) -> RungReport:
    own = ranks.own_answer
    if own and own.answer.why and bundled.report.own is Outcome.PASS:
        return RungReport(Outcome.FAIL, f"the oracle's own snapshot: {own.answer.why}")
    return bundled.report


def _proven(plan: RestorePlan, rung: Rung, report: RungReport, controls: tuple[Control, ...]) -> RungReport:
    """The report with its controls. A rung that nothing proves able to fail has not passed; a failure counts even when not asked for."""
    if report.own is Outcome.NOT_RUN or (rung.number not in plan.rungs and report.own is not Outcome.FAIL):
        return report if report.own is Outcome.NOT_RUN else not_run("not in the plan")
    if report.own is Outcome.PASS and not controls:
        return RungReport(Outcome.INCONCLUSIVE, "no control was run, so nothing shows that this rung can fail")
    return replace(report, controls=controls)


def _live(plan: RestorePlan, live: LiveReport | None) -> RungReport:
    if live is None:
        return not_run("no endpoint in the plan" if plan.live is None else "not in the plan")
    controls = (Control(check.name, Rung.LIVE if check.outcome is Outcome.PASS else None, check.outcome) for check in live.checks)
    return RungReport(live.outcome, live.reason, tuple(controls))
