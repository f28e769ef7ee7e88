"""`countermark record snapshot`, `verify snapshot`, `verify receipt`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countermark.cli.formats import FINDINGS
from countermark.cli.options import DEFAULT_LEDGER, FindingsOption, LedgerOption, OutputOption, SigningKeyOption, TrustOption
from countermark.cli.output import finish
from countermark.cli.report import Report

if TYPE_CHECKING:
    from countermark.actions.restore.receipt_check import CheckedReceipt, CheckedReceipts
    from countermark.actions.restore.snapshot_root import SnapshotCheck

ManifestsArgument = Annotated[list[Path], typer.Argument(metavar="MANIFEST...", help="The manifest of each rank.")]
ChunksOption = Annotated[Path | None, typer.Option("--chunks", metavar="DIR", help="The folder of the objects; default: beside.")]


def record(
    manifests: ManifestsArgument,
    chunks: ChunksOption = None,
    model: Annotated[str | None, typer.Option(metavar="ORG/NAME@HEX", help="The model whose cache it is.")] = None,
    draft: Annotated[str | None, typer.Option(metavar="ORG/NAME@HEX", help="Its draft; none@none says that there was none.")] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    key: SigningKeyOption = None,
    output: OutputOption = [],
) -> None:
    """Record the signed root of a snapshot: every rank's manifest, after its objects were read and have their digests."""

    def act() -> Report:
        from countermark.actions.appending import record as append
        from countermark.actions.restore.snapshot_root import read_snapshot
        from countermark.actions.workspace import Workspace
        from countermark.cli.progress import byte_progress
        from countermark.cli.render_recorded import recorded_report

        workspace = Workspace.at(ledger, trust)
        workspace.check_ledger()
        workspace.trust()  # nothing is read for a ledger that is not there
        with byte_progress("reading") as told:
            recording = read_snapshot(manifests, chunks=chunks, model=model, draft=draft, progress=told)
        return recorded_report(append(workspace, recording, "builder", key))

    finish("record snapshot", output, act)


def verify(
    manifests: ManifestsArgument,
    chunks: ChunksOption = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: FindingsOption = [],
) -> None:
    """Compare what is signed of a snapshot with its manifests and objects."""

    def act() -> Report:
        from countermark.actions.restore.snapshot_root import verify_snapshot
        from countermark.actions.workspace import Workspace
        from countermark.cli.progress import count_progress

        with count_progress("reading") as told:
            told(0, 0)
            return _snapshot_report(verify_snapshot(Workspace.at(ledger, trust), manifests, chunks, told))

    finish("verify snapshot", output, act, forms=FINDINGS)


def verify_receipt(
    entries: Annotated[list[str], typer.Argument(metavar="ENTRY...", help="Receipts or restore-runs: entry numbers or payload digests.")],
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: FindingsOption = [],
) -> None:
    """Recompute receipts from what they rest on, and restore-runs from their traces."""

    def act() -> Report:
        from countermark.actions.restore.receipt_check import verify_receipts
        from countermark.actions.workspace import Workspace

        return _receipts_report(verify_receipts(Workspace.at(ledger, trust), entries))

    finish("verify receipt", output, act, forms=FINDINGS)


def _snapshot_report(check: "SnapshotCheck") -> Report:
    root = check.root
    lines = []
    if root:
        told = root.root
        lines = [
            f"signed root {root.payload}",
            f"  context {told.context_digest}, {told.committed_tokens} tokens, TP{told.tp}/DCP{told.dcp}, {told.publication_mode}",
        ]
    return Report(
        exit=check.exit,
        evaluated=check.evaluated,
        of=check.of,
        findings=tuple(check.findings),
        not_evaluated=tuple(check.not_evaluated),
        ledger=check.head.to_json(),
        text="\n".join(lines),
        extra={"statement": root.root.to_json() if root else None, "root": str(root.payload) if root else None},
    )


def _receipts_report(done: "CheckedReceipts") -> Report:
    return Report(
        exit=done.exit,
        evaluated=len(done.checked),
        of=len(done.checked),
        findings=tuple(finding for item in done.checked for finding in item.findings),
        ledger=done.head.to_json(),
        text="\n".join(_receipt_line(item) for item in done.checked),
        extra={
            "statements": [dict(item.predicate) for item in done.checked],
            "checked": [{"entry": item.index, "basis": item.basis, "traces": item.traces} for item in done.checked],
        },
    )


def _receipt_line(item: "CheckedReceipt") -> str:
    told = item.predicate
    if item.basis is None:
        return f"entry {item.index}  {item.name}: {told.get('outcome')}, {item.traces} traces"
    return f"entry {item.index}  {told.get('capability')}: {told.get('outcome')}, {item.basis} by the gate's rules, {item.traces} traces"
