"""The report of `verify source`, `verify image` and `verify model`."""

from countermark.actions.verify_recorded import Comparison
from countermark.attestations.codes import ExitCode
from countermark.cli.report import Report


def comparison_report(done: Comparison) -> Report:
    """Each recorded statement with the number of facts compared, and every fact that differs."""
    holds = [item.checked.holds for item in done.compared]
    lines = [str(done.subject)]
    for item in done.compared:
        mark = "✓" if item.checked.holds else "✗"
        signer = ", ".join(item.record.signers)
        lines.append(f"{mark} entry {item.record.index} by {signer}: {item.checked.evaluated} facts compared")
    return Report(
        exit=ExitCode.YES if holds and all(holds) else ExitCode.NO,
        evaluated=sum(1 for item in done.compared if item.checked.evaluated),
        of=len(done.compared),
        findings=tuple(finding for item in done.compared for finding in item.checked.findings),
        ledger=done.head.to_json(),
        text="\n".join(lines),
        extra={"subject": str(done.subject)},
    )
