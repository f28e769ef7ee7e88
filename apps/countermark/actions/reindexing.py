"""`ledger reindex`: the derived tables, built again."""

from typing import TYPE_CHECKING

from countermark.actions.workspace import Workspace

if TYPE_CHECKING:
    from countermark.ledger.reindex import Reindexed


def reindex_ledger(workspace: Workspace) -> "Reindexed":
    """Build the derived tables of a ledger again from what was signed."""
    from countermark.ledger.reindex import reindex

    workspace.check_ledger()
    return reindex(workspace.ledger)
