"""`ledger stats`: what is in a ledger, counted."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from countermark.actions.workspace import Workspace, open_reader
from countermark.attestations.times import Instant


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of one ledger at its head. `types` counts statements by predicate type; `bytes` is the size of the file."""

    origin: str
    begun: str
    size: int
    root: str
    notices: int
    types: Mapping[str, int]
    quarantined: int
    bytes: int

    def to_json(self) -> dict[str, Any]:
        """The fields, for JSON."""
        return asdict(self)


def ledger_stats(workspace: Workspace) -> Stats:
    """Count; the head and the chain of notices are verified on the way."""
    with open_reader(workspace) as reader:
        return Stats(
            reader.head.origin,
            str(Instant.from_ms(reader.genesis.created_ms)),
            reader.head.size,
            reader.head.root.hex(),
            len(reader.notices()),
            dict(reader.counts()),
            len(reader.quarantined()),
            workspace.ledger.stat().st_size,
        )
