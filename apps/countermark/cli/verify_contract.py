"""`countermark verify contract PATH…`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countermark.cli.formats import FINDINGS
from countermark.cli.options import DEFAULT_LEDGER, FindingsOption, LedgerOption, SigningKeyOption, TrustOption
from countermark.cli.output import finish
from countermark.cli.report import Report

if TYPE_CHECKING:
    from countermark.actions.verify_contract import Judged


def contract(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Contract files, or folders with contract.yaml or contracts/.")],
    root: Annotated[Path | None, typer.Option(metavar="DIR", help="The repository; default: the nearest folder with .git.")] = None,
    against: Annotated[str | None, typer.Option(metavar="REV", help="Also tell what changed since this revision.")] = None,
    record: Annotated[bool, typer.Option("--record", help="Judge the commit checked out and append the verdict.")] = False,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    key: SigningKeyOption = None,
    output: FindingsOption = [],
) -> None:
    """Hold contracts against a repository: the same pin everywhere. Needs no ledger, key, GPU or network."""

    def act() -> Report:
        from countermark.actions.verify_contract import contract_files, judge, judge_commit
        from countermark.attestations.codes import Code
        from countermark.attestations.errors import UsageError

        if against == "":
            raise UsageError(Code.UNKNOWN_NAME, "--against names no revision", fix="give a revision, or leave the option out")
        files = contract_files(paths)
        if not record:
            return contract_report([judge(path, root, against) for path in files], against)
        from countermark.actions.workspace import Workspace

        workspace = Workspace.at(ledger, trust)
        return contract_report([judge_commit(path, root, workspace, key, against) for path in files], against)

    finish("verify contract", output, act, forms=FINDINGS)


def contract_report(judged: "list[Judged]", against: str | None = None) -> Report:
    """Every finding of every contract, what was recorded, and what changed since a revision."""
    from countermark.attestations.codes import ExitCode
    from countermark.cli.formats.checks import contract_checks

    recorded = [item.recorded for item in judged if item.recorded]
    last = recorded[-1] if recorded else None
    receipts = [done.receipt.to_json() for done in recorded]
    return Report(
        exit=ExitCode.first_of(item.exit for item in judged),
        evaluated=sum(item.verdict.evaluated for item in judged),
        of=sum(item.verdict.of for item in judged),
        findings=tuple(finding for item in judged for finding in item.findings),
        not_evaluated=tuple(name for item in judged for name in item.verdict.not_evaluated),
        ledger=last.head.to_json() if last else None,
        text="\n".join(_line(item) for item in judged),
        checks=tuple(check for item in judged for check in contract_checks(item.verdict)),
        extra={
            "contracts": [item.verdict.predicate() for item in judged],
            **({"recorded": receipts} if receipts else {}),
            **({"against": {"revision": against, "contracts": [_comparison(item) for item in judged]}} if against else {}),
        },
    )


def _line(item: "Judged") -> str:
    contract, recorded = item.verdict.contract, item.recorded
    where = f"  entry {recorded.receipt.index}, about {recorded.statement.subjects[0].typed[0]}" if recorded else ""
    first = f"{contract.id}@{contract.version}  {contract.digest}  {item.verdict.outcome}{where}"
    first += "".join(f"\n  note: {note}" for note in recorded.notes) if recorded else ""
    if not item.compared:
        return first
    counts = ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in _comparison(item).items())
    return f"{first}\n  compared with the earlier revision: {counts}"


def _comparison(item: "Judged") -> dict[str, int]:
    compared = item.compared
    return (
        {"facts_changed": len(compared.changes), "findings_introduced": compared.introduced, "findings_fixed": compared.fixed}
        if compared
        else {}
    )
