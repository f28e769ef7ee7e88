"""The report of `ledger report` as text and JSON."""

from collections.abc import Mapping

from countermark.actions.ledger_report import Overview, about, reason
from countermark.actions.queries.view import short_type
from countermark.attestations.codes import Status
from countermark.cli.report import Report
from countermark.contracts.explain_text import plain


def overview_report(overview: Overview, pages: Mapping[str, str]) -> Report:
    """Images with the status of their tested scopes, what speaks against them, and what the audit found."""
    untested = [str(image.dossier.subject) for image in overview.images if not image.statuses]
    lines = [f"{overview.head.origin}: {overview.head.size} entries, {overview.head.notices} notices, begun {overview.begun}"]
    lines += [f"  {count:>8}  {name}" for name, count in overview.kinds.items()]
    for image in overview.images:
        if image.statuses:
            counted = ", ".join(f"{image.statuses[status]} {status}" for status in Status if image.statuses.get(status))
            lines.append(f"{image.dossier.subject}  {'rejected, the whole image' if image.rejected else counted}")
    for entry in overview.negative:
        kind = short_type(entry.statement.predicate_type)
        lines.append(f"negative: entry {entry.index}, {kind} of {about(entry)} by {entry.signer}: {reason(entry)}")
    lines += [f"not found: any receipt or rejection of {subject}" for subject in untested]
    return Report(
        exit=overview.exit,
        evaluated=overview.audit.evaluated,
        of=overview.audit.of,
        findings=overview.audit.findings,
        not_evaluated=(*overview.audit.left_out, *overview.unreadable),
        ledger=overview.head.to_json(),
        effective_time=str(overview.effective_time),
        text="\n".join(map(plain, lines)),
        forms=pages,
        extra={
            "kinds": dict(overview.kinds),
            "days": dict(overview.days),
            "images": [
                {
                    "image": str(image.dossier.subject),
                    "also": list(map(str, image.dossier.names)),
                    "statuses": {str(status): count for status, count in image.statuses.items()},
                    "decision": image.decision.id if image.decision else None,
                }
                for image in overview.images
            ],
            "negative": [entry.index for entry in overview.negative],
            "not_found": untested,
        },
    )
