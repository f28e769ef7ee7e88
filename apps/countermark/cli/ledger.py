"""`countermark ledger …`: for operators."""

from typing import TYPE_CHECKING

import typer

from countermark.cli.asking import PolicyOption, ProfileOption, TimeOption, asked
from countermark.cli.options import DEFAULT_LEDGER, LedgerOption, OutputOption, PageOption, TrustOption
from countermark.cli.output import PAGE, finish
from countermark.cli.report import Report

if TYPE_CHECKING:
    from countermark.actions.stats import Stats

app = typer.Typer(help="Look after a ledger.", no_args_is_help=True)


@app.command("stats")
def stats(ledger: LedgerOption = DEFAULT_LEDGER, output: OutputOption = []) -> None:
    """Count what is in a ledger."""

    def act() -> Report:
        from countermark.actions.stats import ledger_stats
        from countermark.actions.workspace import Workspace

        return stats_report(ledger_stats(Workspace.at(ledger)))

    finish("ledger stats", output, act)


@app.command("checkpoint")
def checkpoint(ledger: LedgerOption = DEFAULT_LEDGER, output: OutputOption = []) -> None:
    """Print the newest checkpoint, for somebody else to keep; `verify ledger --checkpoint` holds the ledger to it."""

    def act() -> Report:
        from countermark.actions.workspace import Workspace, open_reader

        with open_reader(Workspace.at(ledger)) as reader:
            head = reader.head
        return Report(evaluated=1, of=1, ledger=head.to_json(), text=head.note.rstrip("\n"), bare=True, extra={"checkpoint": head.note})

    finish("ledger checkpoint", output, act)


@app.command("report")
def report(
    policy: PolicyOption = None,
    profile: ProfileOption = None,
    effective_time: TimeOption = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: PageOption = [],
) -> None:
    """Audit a ledger and tell what is in it: images and their status, what speaks against them, signers, decisions, runs.

    `-o html=FILE` writes it as a page. Images are judged by the rules of evidence of `--policy`, or by those that hold without one.
    """

    def act() -> Report:
        from countermark.actions.ledger_report import ledger_overview
        from countermark.actions.workspace import Workspace
        from countermark.cli.pages import overview_page
        from countermark.cli.progress import count_progress
        from countermark.cli.render_overview import overview_report

        question = asked((), policy, profile=profile, effective_time=effective_time)
        with count_progress("auditing") as told:
            overview = ledger_overview(Workspace.at(ledger, trust), question, told)
        return overview_report(overview, overview_page(output, overview))

    finish("ledger report", output, act, forms=(PAGE,))


def stats_report(stats: "Stats") -> Report:
    """Entries by type, what was refused, and the size on disk."""
    lines = [f"{stats.origin}: {stats.size} entries, {stats.notices} notices, {stats.bytes:,} bytes, begun {stats.begun}"]
    lines.extend(f"  {count:>8}  {name}" for name, count in stats.types.items())
    lines.append(f"  {stats.quarantined:>8}  refused, in quarantine")
    return Report(
        evaluated=stats.size,
        of=stats.size,
        ledger={"origin": stats.origin, "size": stats.size, "root": stats.root},
        text="\n".join(lines),
        extra={"stats": stats.to_json()},
    )
