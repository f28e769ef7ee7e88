"""`import`: existing envelopes and bundles, verified one by one and appended in batches; what is refused goes to quarantine."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from countermark.actions.appending import append, submission
from countermark.actions.clock import now
from countermark.actions.envelopes import read_envelope, read_texts
from countermark.actions.verify_attestation import Checked, Expectation, check_one
from countermark.actions.workspace import Workspace, admitting_trust, open_reader, open_writer
from countermark.attestations.errors import InputError
from countermark.attestations.statement import Statement
from countermark.attestations.verifier import Verifier
from countermark.ledger.read import Head
from countermark.ledger.submission import Receipt, Refusal, Submission

if TYPE_CHECKING:
    from countermark.attestations.bundle_verifier import BundleVerifier

BATCH = 1000
Told = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What an import did: receipts in the order of the input, every text that was refused, and the head after it."""

    receipts: list[Receipt]
    refused: list[Checked]
    head: Head


def import_files(workspace: Workspace, paths: Sequence[str], told: Told) -> ImportResult:
    """Verify every attestation under the ledger's trust policy and append those that hold; `told` hears how many are done."""
    texts = _TextReader(workspace)
    receipts: list[Receipt] = []
    refused: list[Checked] = []
    with open_writer(workspace) as writer:
        for batch in _batches(item for path in paths for item in texts.read(path)):
            receipts += writer.append([item for item in batch if isinstance(item, Submission)])
            bad = [item for item in batch if isinstance(item, Checked)]
            writer.quarantine([_refusal(item) for item in bad])
            refused += bad
            told(len(receipts) + len(refused))
    with open_reader(workspace) as ledger:
        return ImportResult(receipts, refused, ledger.head)


def import_legacy(workspace: Workspace, paths: Sequence[str]) -> ImportResult:
    """Append in-toto links and layouts of before attestations, each a DSSE envelope; all of them, or none."""
    from countermark.actions.legacy import legacy_submissions
    from countermark.attestations.intoto_legacy import LegacyFile

    trust = admitting_trust(workspace, workspace.trust())
    files = [LegacyFile.parse(data, source) for path in paths for source, data in read_texts(path)]
    receipts, head = append(workspace, legacy_submissions(files, trust, now()))
    return ImportResult(receipts, [], head)


class _TextReader:
    """Turns texts into submissions, or into the result that says why not."""

    def __init__(self, workspace: Workspace) -> None:
        self._policy = workspace.trust()
        self._trust = admitting_trust(workspace, self._policy)
        self._verifier = Verifier(self._trust)
        self._now = now()

    def read(self, path: str) -> Iterator[Submission | Checked]:
        """Each text of a file; a file that cannot be read is one result."""
        try:
            for source, data in read_texts(path):
                yield self._bundle(data, source) if _is_certified(data) else self._envelope(data, source)
        except InputError as error:
            yield Checked(path, None, error)

    def _envelope(self, data: bytes, source: str) -> Submission | Checked:
        checked = check_one(read_envelope(data, source), source, self._verifier, self._now, Expectation())
        return submission(checked.verified) if checked.verified else checked

    def _bundle(self, data: bytes, source: str) -> Submission | Checked:
        from countermark.actions.verify_bundle import check_bundle

        checked = check_bundle(data, source, self._bundles, self._now, Expectation())
        return checked.submission() or checked.checked

    @cached_property
    def _bundles(self) -> "BundleVerifier":
        """Made for the first bundle only: it brings the sigstore package, which takes longer than the rest of an import."""
        from countermark.actions.verify_bundle import policy_verifier

        return policy_verifier(self._policy, keys=self._trust, joining=True)


def _is_certified(data: bytes) -> bool:
    """Whether a text is a bundle with its own verification material; it is parsed strictly by whoever verifies it."""
    return b'"verificationMaterial"' in data or b'"verification_material"' in data


def _batches(items: Iterator[Submission | Checked]) -> Iterator[list[Submission | Checked]]:
    while batch := list(islice(items, BATCH)):
        yield batch


def _refusal(item: Checked) -> Refusal:
    """What is kept of a refused text: the reason, what came by its digest, and what it claims as far as it can be read at all."""
    assert item.error is not None
    data = item.envelope.payload if item.envelope else item.source.encode()
    claim = _claim(item)
    subjects = tuple(str(digest) for subject in claim.subjects for digest in subject.typed) if claim else ()
    return Refusal(item.error.code, str(item.error), hashlib.sha256(data).digest(), subjects, claim.predicate_type if claim else None)


def _claim(item: Checked) -> Statement | None:
    if item.envelope is None:
        return None
    try:
        return Statement.parse(item.envelope.payload, item.source)
    except InputError:
        return None
