"""`search`: entries by a digest prefix."""

from dataclasses import asdict, dataclass
from typing import Any

from countermark.actions.workspace import Workspace, open_reader
from countermark.ledger.read import Head, LedgerReader


@dataclass(frozen=True, slots=True)
class Hit:
    """A digest that begins as asked, in a proven entry."""

    digest: str
    index: int
    role: str
    predicate_type: str
    payload: str

    def to_json(self) -> dict[str, Any]:
        """One row of the report."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Found:
    """All hits, and the head that they were found at."""

    head: Head
    hits: tuple[Hit, ...]


def search_ledger(workspace: Workspace, prefix: str) -> Found:
    """Every digest of the ledger that begins with `prefix`; its kind and algorithm, if given, must be those of the hit."""
    kind, _, hexed = prefix.rpartition(":")
    with open_reader(workspace) as reader:
        hits = (_hit(reader, hit.kind, hit.hex, hit.index, hit.role) for hit in reader.search_prefix(hexed))
        wanted = tuple(hit for hit in hits if not kind or hit.digest.rpartition(":")[0] in (kind, f"{kind}:sha256") or kind == "sha256")
        return Found(reader.head, wanted)


def _hit(reader: LedgerReader, kind: str, hexed: str, index: int, role: str) -> Hit:
    entry = reader.entry(index)
    what = entry.statement.predicate_type if entry.statement else entry.leaf.payload_type
    digest = f"{kind}:{hexed}" if kind.startswith("git-") else f"{kind}:sha256:{hexed}"
    return Hit(digest, index, role, what, str(entry.digest))
