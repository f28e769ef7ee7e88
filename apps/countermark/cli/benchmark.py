"""`countermark record benchmark`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countermark.cli.evidence import BindOption
from countermark.cli.formats import FINDINGS
from countermark.cli.options import DEFAULT_LEDGER, FindingsOption, LedgerOption, SigningKeyOption, TrustOption
from countermark.cli.output import finish
from countermark.cli.report import Report

if TYPE_CHECKING:
    from countermark.actions.measurements import RunRecorded

IntervalOption = Annotated[
    str | None, typer.Option(metavar="METHOD", help="Compute an interval where there is none: order-statistic or bootstrap:SEED.")
]
LevelOption = Annotated[str, typer.Option(metavar="DECIMAL", help="The level of that interval.")]


def record(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="A benchmark-run document; or, with --frame, results.")],
    frame: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The FILEs are results of `vllm bench serve`, one each server start; FILE says what they do not."
        ),
    ] = None,
    bind: BindOption = [],
    interval: IntervalOption = None,
    level: LevelOption = "0.95",
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    key: SigningKeyOption = None,
    output: FindingsOption = [],
) -> None:
    """Record a benchmark run: its value is computed again, and a run that contradicts itself is refused."""

    def act() -> Report:
        from countermark.actions.measurements import record_benchmark
        from countermark.actions.workspace import Workspace
        from countermark.recorders.benchmark import WantedInterval

        wanted = WantedInterval.parse(interval, level) if interval else None
        return run_report(record_benchmark(Workspace.at(ledger, trust), files, bind, key, wanted, frame))

    finish("record benchmark", output, act, forms=FINDINGS)


def run_report(done: "RunRecorded") -> Report:
    """The value as it was computed, what the run is good for, and where it stands."""
    from countermark.attestations.codes import ExitCode
    from countermark.cli.render_recorded import recorded_report
    from countermark.contracts.measurements.run import decimal

    run = done.judged.run
    value = f"{run.definition}: {run.summary.statistic} {decimal(run.value)} {run.unit}, n = {run.n} by {run.sampling_unit}"
    if done.recorded is None:
        return Report(exit=ExitCode.NO, evaluated=1, of=1, findings=done.findings, text=f"{value}\nnot recorded: it contradicts itself")
    kept = recorded_report(done.recorded)
    can = done.judged.capability
    claim = f"  bears {can}: {done.judged.outcome}" if can else "  bears no capability of the catalogue"
    return Report(evaluated=1, of=1, findings=done.findings, ledger=kept.ledger, text=f"{value}\n{claim}\n{kept.text}", extra=kept.extra)
