"""`countermark verify ledger`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countermark.cli.options import DEFAULT_LEDGER, LedgerOption, OutputOption, TrustOption
from countermark.cli.output import finish
from countermark.cli.report import Report

if TYPE_CHECKING:
    from countermark.ledger.audit_report import AuditReport


def ledger_file(
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    checkpoint: Annotated[
        list[Path], typer.Option(metavar="NOTE", help="A checkpoint that you hold; repeatable.", show_default=False)
    ] = [],
    hash_only: Annotated[bool, typer.Option("--hash-only", help="Check hashes and proofs, and no signatures of entries.")] = False,
    output: OutputOption = [],
) -> None:
    """Check everything that is stored against everything that was signed."""

    def act() -> Report:
        from countermark.actions.audit import audit_ledger
        from countermark.actions.workspace import Workspace
        from countermark.cli.progress import count_progress

        workspace = Workspace.at(ledger, trust)
        with count_progress("auditing") as told:
            return audit_report(audit_ledger(workspace, checkpoint, signatures=not hash_only, progress=told))

    finish("verify ledger", output, act)


def audit_report(report: "AuditReport") -> Report:
    """All findings, and up to where somebody outside could notice a removal."""
    return Report(
        exit=report.exit,
        evaluated=report.evaluated,
        of=report.of,
        findings=report.findings,
        ledger={
            "origin": report.origin,
            "size": report.size,
            "root": report.root.hex(),
            "notices": report.notices,
            "protected_to": report.protected_to,
        },
        text=f"{report.size} entries, {report.notices} of them notices, root {report.root.hex()}\n{_horizon(report)}",
    )


def _horizon(report: "AuditReport") -> str:
    if report.protected_to:
        return f"protected up to entry {report.protected_to - 1}, by the checkpoints given"
    if report.anchored:
        return f"the anchor on this machine remembers {report.anchored} entries; nobody outside holds a checkpoint (--checkpoint NOTE)"
    return "nobody outside holds a checkpoint: what was rewritten with the log's own key would not show"
