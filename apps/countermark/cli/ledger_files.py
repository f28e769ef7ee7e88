"""`countermark ledger prove|export|backup|restore|reindex`: what leaves a ledger as files, comes back, and is built again."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countermark.cli.options import DEFAULT_LEDGER, HeldOption, LedgerOption, OutputOption, SigningKeyOption, WitnessPolicyOption
from countermark.cli.output import finish
from countermark.cli.report import Report

if TYPE_CHECKING:
    from countermark.actions.backups import Restored
    from countermark.ledger.backup import Manifest
    from countermark.ledger.export import Exported
    from countermark.ledger.reindex import Reindexed


def prove(
    entry: Annotated[str | None, typer.Argument(metavar="[ENTRY]", help="An entry number or payload digest.")] = None,
    old: Annotated[
        int | None, typer.Option("--from", metavar="N", min=0, help="Prove instead that the log only grew since N entries.")
    ] = None,
    new: Annotated[
        int | None, typer.Option("--to", metavar="M", min=0, help="Up to the checkpoint of M entries; default: the newest.")
    ] = None,
    policy: WitnessPolicyOption = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    output: OutputOption = [],
) -> None:
    """Print a proof for somebody who has no ledger: a C2SP .tlog-proof of an entry, or a witness's request that shows growth."""

    def act() -> Report:
        from countermark.actions.proofs import prove_entry, prove_growth
        from countermark.actions.workspace import Workspace
        from countermark.attestations.codes import Code
        from countermark.attestations.errors import UsageError

        if (entry is None) == (old is None):
            raise UsageError(Code.UNKNOWN_NAME, "prove one thing", fix="give an ENTRY, or --from N")
        workspace = Workspace.at(ledger)
        data = prove_entry(workspace, entry, new, policy) if entry is not None else prove_growth(workspace, old or 0, new)
        return Report(evaluated=1, of=1, text=data.decode().rstrip("\n"), bare=True, extra={"proof": data.decode()})

    finish("ledger prove", output, act)


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder, or one of an earlier export, which is brought up to date.")],
    without_payloads: Annotated[bool, typer.Option("--without-payloads", help="Leaves and hashes alone.")] = False,
    ledger: LedgerOption = DEFAULT_LEDGER,
    output: OutputOption = [],
) -> None:
    """Write the log as static files (C2SP tlog-tiles, and payloads) that any web server can serve and anybody can verify."""

    def act() -> Report:
        from countermark.actions.exporting import export_ledger
        from countermark.actions.workspace import Workspace
        from countermark.cli.progress import count_progress

        with count_progress("exporting") as told:
            return export_report(folder, export_ledger(Workspace.at(ledger), folder, told, payloads=not without_payloads))

    finish("ledger export", output, act)


def export_report(folder: Path, done: "Exported") -> Report:
    """What is published now, and what was before."""
    head = done.checkpoint
    gone = f", {done.withheld} payloads withheld" if done.withheld else ""
    return Report(
        evaluated=head.size,
        of=head.size,
        ledger={"origin": head.origin, "size": head.size, "root": head.root.hex()},
        text=f"{folder} holds {head.size} entries, {head.size - done.before} of them new; {done.written} files written{gone}",
        extra={"export": {"folder": str(folder), "before": done.before, "written": done.written, "withheld": done.withheld}},
    )


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file; its manifest is written beside it.")],
    ledger: LedgerOption = DEFAULT_LEDGER,
    output: OutputOption = [],
) -> None:
    """Write the ledger into one file while others go on writing, with a manifest that holds the newest checkpoint."""

    def act() -> Report:
        from countermark.actions.backups import back_up_ledger
        from countermark.actions.workspace import Workspace

        return backup_report(file, back_up_ledger(Workspace.at(ledger), file))

    finish("ledger backup", output, act)


def backup_report(file: Path, manifest: "Manifest") -> Report:
    """What the backup holds."""
    size = f"{manifest.size} entries, {manifest.length:,} bytes"
    return Report(
        evaluated=1,
        of=1,
        ledger={"origin": manifest.origin, "size": manifest.size, "root": manifest.root.hex()},
        text=f"{file} holds {size}, sha256:{manifest.sha256}\nkeys/ and trust.yaml are not in it",
        extra={"backup": {"file": str(file), "sha256": manifest.sha256, "bytes": manifest.length, "checkpoint": manifest.note}},
    )


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A backup, with its manifest beside it.")],
    checkpoint: HeldOption = [],
    new_incarnation: Annotated[
        bool, typer.Option("--new-incarnation", help="Go on although newer entries are lost; every audit will show it.")
    ] = False,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why entries are lost; with --new-incarnation.")] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    key: SigningKeyOption = None,
    output: OutputOption = [],
) -> None:
    """Put a backup in the place of a ledger that is not there any more. One below the anchor or a checkpoint held is a ROLLBACK."""

    def act() -> Report:
        from countermark.actions.backups import Loss, restore_ledger
        from countermark.actions.workspace import Workspace
        from countermark.attestations.codes import Code
        from countermark.attestations.errors import UsageError

        if new_incarnation != (reason is not None):
            raise UsageError(Code.UNKNOWN_NAME, "--new-incarnation and --reason belong together", fix="give both or neither")
        loss = Loss(reason, key) if reason is not None else None
        return restore_report(restore_ledger(Workspace.at(ledger), file, checkpoint, loss))

    finish("ledger restore", output, act)


def restore_report(done: "Restored") -> Report:
    """What stands in the ledger's place now, and what was found on the way."""
    text = f"{done.ledger} holds {done.head.size} entries"
    if done.incarnation:
        text += f"\n{done.incarnation.told()}"
    return Report(evaluated=1, of=1, findings=done.findings, ledger=done.head.to_json(), text=text, extra={"entry": done.entry})


def reindex(ledger: LedgerOption = DEFAULT_LEDGER, output: OutputOption = []) -> None:
    """Build the tables that look-ups use again, from the payloads that were signed. What was altered beyond that stays visible."""

    def act() -> Report:
        from countermark.actions.reindexing import reindex_ledger
        from countermark.actions.workspace import Workspace

        return reindex_report(reindex_ledger(Workspace.at(ledger)))

    finish("ledger reindex", output, act)


def reindex_report(done: "Reindexed") -> Report:
    """How many entries had other rows, and what nothing vouches for."""
    from countermark.attestations.codes import ExitCode

    size = done.head.size
    return Report(
        exit=ExitCode.TAMPERED if done.findings else ExitCode.YES,
        evaluated=size,
        of=size,
        findings=done.findings,
        ledger=done.head.to_json(),
        text=f"{done.changed} of {size} entries had other rows; they are as their payloads call for now",
        extra={"changed": done.changed},
    )
