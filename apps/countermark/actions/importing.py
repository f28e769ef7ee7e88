"""`import`: existing envelopes and bundles, verified one by one and appended in batches; what is refused goes to quarantine.

Every portion is one transaction, so an import that was interrupted is taken up by importing again: what is in the ledger gets the
receipt of the first time.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from countermark.actions.admission import Admission, Refused, Text, take_all
from countermark.actions.appending import append
from countermark.actions.clock import now
from countermark.actions.cores import cores
from countermark.actions.envelopes import read_texts
from countermark.actions.verify_attestation import Checked
from countermark.actions.workspace import Workspace, admitting_trust, open_reader, open_writer
from countermark.attestations.errors import InputError
from countermark.ledger.prepare import Prepared
from countermark.ledger.read import Head
from countermark.ledger.submission import Receipt

Told = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What an import did: receipts in the order of the input, every text that was refused, and the head after it."""

    receipts: list[Receipt]
    refused: list[Refused]
    head: Head


def import_files(workspace: Workspace, paths: Sequence[str], told: Told, workers: int | None = None) -> ImportResult:
    """Verify every attestation under the ledger's trust policy and append those that hold; `told` hears how many are done.

    `workers` processes verify, by default one a core. Raises what reading the trust policy and appending raise.
    """
    unreadable: list[Refused] = []
    receipts: list[Receipt] = []
    refused: list[Refused] = []
    admission = Admission.under(workspace, now())
    taken = take_all(_texts(paths, unreadable), admission, workers or cores())
    with open_writer(workspace) as writer:
        for portion in taken:
            receipts += writer.admit([item for item in portion if isinstance(item, Prepared)])
            bad = [item for item in portion if isinstance(item, Refused)]
            writer.quarantine([item.refusal for item in bad])
            refused += bad
            told(len(receipts) + len(refused))
        writer.quarantine([item.refusal for item in unreadable])
    with open_reader(workspace) as ledger:
        return ImportResult(receipts, refused + unreadable, ledger.head)


def import_legacy(workspace: Workspace, paths: Sequence[str]) -> ImportResult:
    """Append in-toto links and layouts of before attestations, each a DSSE envelope; all of them, or none."""
    from countermark.actions.legacy import legacy_submissions
    from countermark.attestations.intoto_legacy import LegacyFile

    trust = admitting_trust(workspace, workspace.trust())
    files = [LegacyFile.parse(data, source) for path in paths for source, data in read_texts(path)]
    receipts, head = append(workspace, legacy_submissions(files, trust, now()))
    return ImportResult(receipts, [], head)


def _texts(paths: Sequence[str], unreadable: list[Refused]) -> Iterator[Text]:
    """Every text of the files; a file that cannot be read, or not to its end, is noted."""
    for path in paths:
        try:
            yield from read_texts(path)
        except InputError as error:
            unreadable.append(Refused.of(Checked(path, None, error)))
