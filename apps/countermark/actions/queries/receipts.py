"""`query receipts`: what qualifies an image and what rejects it, each computed anew from what it rests on."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from countermark.actions.catalogue import load_catalogue
from countermark.actions.queries.listing import Bearing, Listing, joined
from countermark.actions.queries.view import TODAY, View, When, open_view
from countermark.actions.subjects import resolve_subject
from countermark.actions.workspace import Workspace
from countermark.attestations.codes import Code, Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.located import JsonValue
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.times import Instant
from countermark.contracts.aliases import Names
from countermark.contracts.basis import Basis
from countermark.contracts.catalogue import Catalogue
from countermark.contracts.evidence import Entry, Evidence
from countermark.contracts.receipt import Receipt
from countermark.contracts.rejection import Rejection
from countermark.contracts.scope import CELL_LEAVES, Scope, describe

_KINDS = (DigestKind.OCI_CONFIG, DigestKind.OCI_MANIFEST, DigestKind.OCI_INDEX)


@dataclass(frozen=True, slots=True)
class ReceiptRow:
    """A receipt. `outcome` and `basis` are computed, `stated` is what it says; `problems` is what keeps it from counting."""

    index: int
    payload: Digest
    image: str
    capability: str
    outcome: Outcome
    stated: str
    basis: str
    claim: str | None
    scope: JsonValue
    tested: str
    observed_to: Instant | None
    signer: str
    code: Code
    problems: tuple[str, ...]
    bearing: Bearing

    def cells(self) -> dict[str, str]:
        """The columns for people."""
        return {
            "entry": str(self.index),
            "capability": self.capability or "(none)",
            "outcome": joined([self.outcome, self.claim], ", "),
            "basis": self.basis,
            "tested": self.tested,
            "observed until": str(self.observed_to or "not recorded"),
            "signer": f"{self.signer} [{self.code}]",
            "problems": joined(self.problems),
        }


@dataclass(frozen=True, slots=True)
class RejectionRow:
    """A rejection. `lifted_by` is the entry that lifts it; one that nobody with a role signed does not count either."""

    index: int
    payload: Digest
    image: str
    capability: str | None
    scope: JsonValue
    reason: str
    signer: str
    code: Code
    counts: bool
    lifted_by: int | None
    bearing: Bearing

    def cells(self) -> dict[str, str]:
        """The columns for people."""
        lifted = "does not count: nobody with a role signed it" if self.lifted_by is None else f"lifted by entry {self.lifted_by}"
        return {
            "entry": str(self.index),
            "rejection of": self.capability or ("every capability" if isinstance(self.scope, dict) else "the whole image"),
            "tested": _tested(Scope.of(self.scope)) if isinstance(self.scope, dict) else "everywhere",
            "reason": self.reason,
            "signer": f"{self.signer} [{self.code}]",
            "standing": "stands" if self.counts else lifted,
        }


def receipts_listing(workspace: Workspace, text: str, when: When = TODAY) -> Listing:
    """Every receipt and rejection of an image, by any of its names, and the capabilities of the catalogue without either."""
    catalogue = load_catalogue()
    with open_view(workspace, when) as view:
        subject = resolve_subject(view.reader, text, _KINDS)
        evidence = view.evidence(subject)
        names = Names.of(subject, evidence)
        rows = receipt_rows(names, evidence, catalogue)
        others = sorted(map(str, (names.passes | names.rejections) - {subject}))
        notes = (*(f"also known as {name}" for name in others),)
        question = f"what qualifies or rejects {subject}"
        return Listing(question, view.head, view.effective_time, rows, tuple(_missing(view, subject, rows, catalogue)), notes)


def receipt_rows(names: Names, evidence: Evidence, catalogue: Catalogue) -> list[ReceiptRow | RejectionRow]:
    """The receipts and rejections of an image, under any of its names, in the order of the ledger."""
    receipts = [_receipt(receipt, names, evidence, catalogue) for receipt in _receipts(names, evidence)]
    rejections = [_rejection(entry, names, evidence) for entry in _rejections(names, evidence)]
    return sorted([*receipts, *rejections], key=lambda row: row.index)


def silent(rows: Iterable[ReceiptRow | RejectionRow], catalogue: Catalogue) -> tuple[str, ...]:
    """The capabilities of the catalogue that no receipt is about."""
    told = {row.capability for row in rows if isinstance(row, ReceiptRow)}
    return tuple(name for name in catalogue.capabilities if name not in told)


def _receipts(names: Names, evidence: Evidence) -> Iterator[Receipt]:
    for entry in evidence.of_type(PredicateName.QUALIFICATION_RECEIPT):
        receipt = Receipt.of(entry)
        if any(receipt.names(digest) for digest in names.passes | names.rejections):
            yield receipt


def _receipt(receipt: Receipt, names: Names, evidence: Evidence, catalogue: Catalogue) -> ReceiptRow:
    entry, fields = receipt.entry, receipt.entry.predicate
    capability = catalogue.capabilities.get(receipt.capability)
    basis = Basis(receipt, capability, evidence) if capability else None
    problems = tuple(_problems(receipt, names, evidence, basis))
    good = receipt.outcome is Outcome.PASS and not problems
    return ReceiptRow(
        entry.index,
        entry.payload,
        _about(entry),
        receipt.capability,
        receipt.outcome,
        str(fields.get("outcome")),
        basis.kind if basis else "unknown",
        str(fields["claim"]) if fields.get("claim") is not None else None,
        fields.get("scope"),
        _tested(receipt.scope),
        receipt.observed_to,
        entry.signer,
        entry.code,
        problems,
        Bearing.FOUND if good else Bearing.NEGATIVE,
    )


def _problems(receipt: Receipt, names: Names, evidence: Evidence, basis: Basis | None) -> Iterator[str]:
    entry = receipt.entry
    if not entry.counts_as():
        yield f"{entry.signer} may not make it [{entry.code}]"
    back = evidence.taken_back(entry) if receipt.outcome is not Outcome.FAIL else evidence.lifted(entry)
    if back:
        yield f"taken back by entry {back.index}"
    if not any(receipt.is_about(digest) for digest in names.passes):
        yield "it is about another digest, which is not proven to be this image, so that only a failure counts"
    if basis is None:
        yield f"the catalogue has no capability {receipt.capability!r}"
    else:
        yield from basis.unusable()
        yield from basis.contradictions()


def _rejections(names: Names, evidence: Evidence) -> list[Entry]:
    found = evidence.of_type(PredicateName.REJECTION)
    return [entry for entry in found if any(entry.may_be_about(digest) for digest in names.rejections)]


def _rejection(entry: Entry, names: Names, evidence: Evidence) -> RejectionRow:
    standing = entry in {rejection.entry.payload: rejection.entry for rejection in Rejection.standing(names, evidence)}.values()
    lifted = evidence.lifted(entry)
    read = Rejection.of(entry)
    return RejectionRow(
        entry.index,
        entry.payload,
        _about(entry),
        read.capability or None,
        entry.predicate.get("scope"),
        str(read),
        entry.signer,
        entry.code,
        standing,
        lifted.index if lifted else None,
        Bearing.NEGATIVE if standing else Bearing.FOUND,
    )


def _missing(view: View, subject: Digest, rows: list[ReceiptRow | RejectionRow], catalogue: Catalogue) -> Iterator[str]:
    known = view.reader.find_subject(subject.kind, subject.hex, ("subject", "alias", "tuple"))
    if not any(isinstance(row, ReceiptRow) for row in rows) and all(index >= view.reader.head.size for index in known):
        yield f"{subject}: no record names it [{Code.SUBJECT_UNKNOWN}]"
    if names := silent(rows, catalogue):
        yield f"a receipt of {', '.join(names)}"


def _about(entry: Entry) -> str:
    return joined((digest for subject in entry.statement.subjects for digest in subject.typed), ", ") or "a digest of no kind"


def _tested(scope: Scope) -> str:
    """The cells and all else that was recorded, in words."""
    cells = joined((describe({leaf: cell[leaf] for leaf in CELL_LEAVES if leaf in cell}) for cell in scope.cells), " and ")
    return joined([cells, describe(scope.exact)], ", ") or "no scope recorded"
