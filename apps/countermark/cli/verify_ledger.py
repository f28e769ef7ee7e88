"""`countermark verify ledger`."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from countermark.cli.options import (
    DEFAULT_LEDGER,
    HeldOption,
    LedgerOption,
    MaxAgeOption,
    OutputOption,
    StrictOption,
    TrustOption,
    WitnessPolicyOption,
)
from countermark.cli.output import finish
from countermark.cli.report import Report

if TYPE_CHECKING:
    from countermark.ledger.audit_report import AuditReport


def ledger_file(
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    checkpoint: HeldOption = [],
    policy: WitnessPolicyOption = None,
    since: Annotated[
        int, typer.Option(metavar="N", min=0, help="Read the content of entries from N on alone; the tree is that of all of them.")
    ] = 0,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=64, help="Processes for a long ledger; default: one a core.", show_default=False),
    ] = None,
    hash_only: Annotated[bool, typer.Option("--hash-only", help="Check hashes and proofs alone; nothing that a payload says.")] = False,
    max_age: MaxAgeOption = None,
    strict: StrictOption = False,
    output: OutputOption = [],
) -> None:
    """Check everything that is stored against everything that was signed.

    Nobody can tell what was rewritten with the log's own key after the newest checkpoint that somebody else holds: the answer says up to
    which entry the ledger is protected, and by whose checkpoint.
    """

    def act() -> Report:
        from countermark.actions.audit import Extent, audit_ledger, put_on_record
        from countermark.actions.believed_logs import no_older_than
        from countermark.actions.workspace import Workspace
        from countermark.cli.progress import count_progress

        workspace = Workspace.at(ledger, trust)
        extent = Extent(not hash_only, since, workers, no_older_than(max_age), strict)
        with count_progress("auditing") as told:
            audited = audit_ledger(workspace, checkpoint, extent, told, policy)
        unwritten = put_on_record(workspace, audited)
        report = audit_report(audited)
        return replace(report, text=f"{report.text}\n{unwritten}") if unwritten else report

    finish("verify ledger", output, act)


def audit_report(report: "AuditReport") -> Report:
    """All findings, and up to where somebody outside could notice a removal."""
    return Report(
        exit=report.exit,
        evaluated=report.evaluated,
        of=report.of,
        findings=report.findings,
        not_evaluated=(*report.left_out, *([f"payloads of {report.withheld} entries, which were withheld"] if report.withheld else [])),
        ledger={
            "origin": report.origin,
            "size": report.size,
            "root": report.root.hex(),
            "notices": report.notices,
            "protected_to": report.protected_to,
        },
        extra={"held_by": list(report.held_by)},
        text=f"{report.size} entries, {report.notices} of them notices, root {report.root.hex()}\n{_horizon(report)}",
    )


def _horizon(report: "AuditReport") -> str:
    if report.protected_to:
        beyond = report.size - report.protected_to
        after = f"; {beyond} entries after it are not yet" if beyond > 1 else "; the entry after it is not yet" if beyond else ""
        return f"protected up to entry {report.protected_to - 1}, held by {', '.join(report.held_by)}{after}"
    if report.anchored:
        return f"the anchor on this machine remembers {report.anchored} entries; nobody outside holds a checkpoint (--checkpoint NOTE)"
    return "nobody outside holds a checkpoint: what was rewritten with the log's own key would not show"
