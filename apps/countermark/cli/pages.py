"""Pages: what `-o html=FILE` writes. What they need is read and rendered only when a page is asked for."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from countermark.cli.output import PAGE, wants_page

if TYPE_CHECKING:
    from countermark.actions.decisions import RecordedDecision
    from countermark.actions.gate import Decided
    from countermark.actions.ledger_report import Overview
    from countermark.actions.repeat import Repeated
    from countermark.actions.workspace import Workspace


def decisions_page(
    command: str, outputs: Sequence[str], workspace: "Workspace", decided: "Decided", recorded: "Sequence[RecordedDecision]" = ()
) -> Mapping[str, str]:
    """The page of what was decided, under its format; nothing where none is asked for."""
    if not wants_page(outputs):
        return {}
    from countermark.actions.clock import made_now
    from countermark.actions.dossier import dossiers
    from countermark.web import decisions

    entries = {item.decision.id: item.receipts[0].index for item in recorded}
    found = dossiers(workspace, decided.decisions, decided.documents)
    shown = [
        decisions.Shown(decision.id, decision.core(), dossier, entries.get(decision.id))
        for decision, dossier in zip(decided.decisions, found, strict=True)
    ]
    return {PAGE: decisions.decisions_page(command, shown, made_now())}


def repeated_page(outputs: Sequence[str], workspace: "Workspace", repeated: "Sequence[Repeated]") -> Mapping[str, str]:
    """The page of recorded decisions, each as it was recorded and where it differs when it is made again."""
    if not wants_page(outputs):
        return {}
    from countermark.actions.clock import made_now
    from countermark.actions.dossier import dossiers
    from countermark.web import decisions

    shown = [
        decisions.Shown(
            item.id, item.past.core, dossiers(workspace, [item.again], item.documents)[0], item.past.record.index, item.differences
        )
        for item in repeated
    ]
    return {PAGE: decisions.decisions_page("explain", shown, made_now())}


def overview_page(outputs: Sequence[str], overview: "Overview") -> Mapping[str, str]:
    """The page of a ledger, under its format; nothing where none is asked for."""
    if not wants_page(outputs):
        return {}
    from countermark.actions.clock import made_now
    from countermark.web import overview as web

    return {PAGE: web.overview_page(overview, made_now())}
