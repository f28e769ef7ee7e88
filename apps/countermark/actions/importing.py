"""`import`: existing envelopes, verified one by one and appended in batches; what is refused goes to quarantine with its reason."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from countermark.actions.appending import submission
from countermark.actions.clock import now
from countermark.actions.verify_attestation import Checked, Expectation, check_one, read_all
from countermark.actions.workspace import Workspace, open_reader, open_writer
from countermark.attestations.errors import InputError
from countermark.attestations.statement import Statement
from countermark.attestations.verifier import PolicyTrust, Verifier
from countermark.ledger.submission import Receipt

if TYPE_CHECKING:
    from countermark.ledger.write import LedgerWriter

BATCH = 1000
Told = Callable[[int], None]


@dataclass(slots=True)
class ImportResult:
    """What an import did: receipts in the order of the input, and every envelope that was refused."""

    origin: str = ""
    size: int = 0
    receipts: list[Receipt] = field(default_factory=list)
    refused: list[Checked] = field(default_factory=list)


def import_files(workspace: Workspace, paths: Sequence[str], told: Told) -> ImportResult:
    """Verify every envelope under the ledger's trust policy and append those that hold; `told` hears how many are done."""
    verifier, instant, result = Verifier(PolicyTrust(workspace.trust())), now(), ImportResult()
    with open_writer(workspace) as writer:
        checked = (check_one(item, path, verifier, instant, Expectation()) for path, item in read_all(paths))
        for batch in _batches(checked):
            good = [item.verified for item in batch if item.verified]
            result.receipts.extend(writer.append([submission(verified) for verified in good]) if good else [])
            _quarantine(writer, [item for item in batch if not item.verified], result)
            told(len(result.receipts) + len(result.refused))
    with open_reader(workspace) as reader:
        result.origin, result.size = reader.head.origin, reader.head.size
    return result


def _batches(items: Iterator[Checked]) -> Iterator[list[Checked]]:
    while batch := list(islice(items, BATCH)):
        yield batch


def _quarantine(writer: "LedgerWriter", refused: Sequence[Checked], result: ImportResult) -> None:
    """Keep what was refused outside the tree: the reason, what came by its digest, and what it claimed to be about."""
    for item in refused:
        assert item.error is not None
        data = item.envelope.payload if item.envelope else item.source.encode()
        writer.quarantine(item.error.code, str(item.error), hashlib.sha256(data).digest(), _claimed(item))
        result.refused.append(item)


def _claimed(item: Checked) -> list[str]:
    """The digests that a refused statement names, as far as it can be read at all; nobody vouches for them."""
    if item.envelope is None:
        return []
    try:
        statement = Statement.parse(item.envelope.payload, item.source)
    except InputError:
        return []
    return [str(digest) for subject in statement.subjects for digest in subject.typed]
