"""`countermark import FILE…`."""

from typing import TYPE_CHECKING, Annotated

import typer

from countermark.cli.options import DEFAULT_LEDGER, LedgerOption, OutputOption, TrustOption
from countermark.cli.output import finish
from countermark.cli.report import Report

if TYPE_CHECKING:
    from countermark.actions.importing import ImportResult


def import_files(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Envelopes, bundles or .jsonl files; - for standard input.")],
    legacy: Annotated[bool, typer.Option("--legacy", help="The files are in-toto links and layouts of before attestations.")] = False,
    workers: Annotated[
        int | None, typer.Option("--workers", metavar="N", min=1, help="Processes that verify when there are many; default: one a core.")
    ] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: OutputOption = [],
) -> None:
    """Verify existing envelopes and append them to the ledger; what is refused goes to quarantine."""

    def act() -> Report:
        from countermark.actions.importing import import_files as take
        from countermark.actions.importing import import_legacy
        from countermark.actions.workspace import Workspace
        from countermark.cli.progress import count_progress

        if legacy:
            return import_report(import_legacy(Workspace.at(ledger, trust), files))
        with count_progress("importing") as told:
            return import_report(take(Workspace.at(ledger, trust), files, lambda done: told(done, 0), workers))

    finish("import", output, act)


def import_report(result: "ImportResult") -> Report:
    """How many came in, how many stood there before, and each that was refused."""
    from countermark.attestations.codes import ExitCode

    new = sum(1 for receipt in result.receipts if not receipt.duplicate)
    findings = tuple(item.finding for item in result.refused)
    codes = [item.exit for item in result.refused] + [ExitCode.YES] * bool(result.receipts)
    return Report(
        exit=ExitCode.first_of(codes),
        evaluated=len(result.receipts) + sum(1 for item in result.refused if item.exit is ExitCode.NO),
        of=len(result.receipts) + len(result.refused),
        findings=findings,
        ledger=result.head.to_json(),
        text=f"{new} appended, {len(result.receipts) - new} stood there before, {len(result.refused)} refused and in quarantine",
        extra={"recorded": [receipt.to_json() for receipt in result.receipts]},
    )
