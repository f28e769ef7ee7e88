"""`countermark quality run` and `countermark record quality`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countermark.cli.formats import FINDINGS
from countermark.cli.options import DEFAULT_LEDGER, FindingsOption, LedgerOption, OutputOption, SigningKeyOption, TrustOption
from countermark.cli.output import finish
from countermark.cli.report import Report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from countermark.attestations.located import JsonValue

app = typer.Typer(help="Ask a served model, and judge its raw answers.", no_args_is_help=True)


@app.command("run")
def run(
    probes: Annotated[Path, typer.Argument(metavar="PROBES", help="A ProbeSet.")],
    endpoint: Annotated[str, typer.Option(metavar="URL", help="The OpenAI-compatible server, with its path: …/v1/chat/completions.")],
    report: Annotated[Path, typer.Option(metavar="FILE", help="Where the quality report is written.")] = Path("quality-report.json"),
    responses: Annotated[Path, typer.Option(metavar="DIR", help="Where the raw responses are kept by digest.")] = Path("responses"),
    output: OutputOption = [],
) -> None:
    """Ask a server the questions of a ProbeSet and write a quality report. The only network it uses is that server."""

    def act() -> Report:
        from countermark.actions.quality_run import check_free, run_probes, write_run
        from countermark.cli.progress import count_progress

        check_free(report)
        with count_progress("asking") as told:
            done = run_probes(probes, endpoint, told)
        write_run(done, report, responses)
        lines = [*_lines(done.report), f"report {report}, raw responses in {responses}"]
        if done.unreachable:
            lines.append(done.unreachable)
        asked = sum(1 for check in done.report["checks"] if check["outcome"] in ("pass", "fail"))
        return Report(
            exit=done.exit, evaluated=asked, of=len(done.report["checks"]), text="\n".join(lines), extra={"report": dict(done.report)}
        )

    finish("quality run", output, act)


def record(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A quality report, as `quality run` writes it.")],
    responses: Annotated[Path | None, typer.Option(metavar="DIR", help="The raw responses by digest; they are kept too.")] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    key: SigningKeyOption = None,
    output: FindingsOption = [],
) -> None:
    """Record a quality report: each outcome is judged again from its raw response."""

    def act() -> Report:
        from countermark.actions.measurements import record_quality
        from countermark.actions.workspace import Workspace
        from countermark.attestations.codes import ExitCode
        from countermark.cli.render_recorded import recorded_report

        done = record_quality(Workspace.at(ledger, trust), file, responses, key)
        lines = [*_lines(done.report), f"all together: {done.outcome}"]
        if done.recorded is None:
            text = "\n".join([*lines, "not recorded: it contradicts itself"])
            return Report(exit=ExitCode.NO, evaluated=1, of=1, findings=done.findings, text=text)
        kept = recorded_report(done.recorded)
        return Report(evaluated=1, of=1, ledger=kept.ledger, text="\n".join([*lines, kept.text]), extra=kept.extra)

    finish("record quality", output, act, forms=FINDINGS)


def _lines(report: "Mapping[str, JsonValue]") -> list[str]:
    from countermark.attestations.located import as_list, as_object

    checks = [as_object(check) for check in as_list(report.get("checks"))]
    behind = [f", behind {check['cause']}" if check.get("cause") else "" for check in checks]
    return [f"  {it.get('outcome')!s:<13} {it.get('id')}  {it.get('rule')}{cause}" for it, cause in zip(checks, behind, strict=True)]
