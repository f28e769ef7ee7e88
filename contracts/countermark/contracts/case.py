"""The evidence about one capability of one image, sorted out once, before any point of a requirement is judged by it."""

from dataclasses import dataclass
from typing import Self

from countermark.attestations.codes import Outcome
from countermark.attestations.predicate_types import TEST_RESULT, PredicateName
from countermark.attestations.times import Instant
from countermark.contracts.aliases import Names
from countermark.contracts.basis import Basis
from countermark.contracts.deficits import Deficit, deficits
from countermark.contracts.evidence import Entry, Evidence
from countermark.contracts.receipt import Receipt
from countermark.contracts.rejection import Rejection
from countermark.contracts.requirement import CapabilityRequirement


@dataclass(frozen=True, slots=True)
class WeighedReceipt:
    """A receipt that speaks for the image, what it lacks, and the kind of its basis.

    `bench` says that no accelerator took part where one must.
    """

    receipt: Receipt
    lacks: tuple[Deficit, ...]
    bench: bool
    basis: str


@dataclass(frozen=True, slots=True)
class Case:
    """What speaks against the image (`rejections`, `failures`), what speaks for it, and what was taken back.

    `built` are the image statement and the test-result that show it was built and tested; `any_receipt` says that a receipt of
    some capability names the image; `elsewhere` are passing receipts of this capability for other images.
    """

    requirement: CapabilityRequirement
    rejections: tuple[Rejection, ...]
    failures: tuple[Receipt, ...]
    receipts: tuple[WeighedReceipt, ...]
    taken_back: tuple[Receipt, ...]
    elsewhere: tuple[Receipt, ...]
    built: tuple[Entry, ...]
    any_receipt: bool

    @classmethod
    def collect(cls, requirement: CapabilityRequirement, names: Names, evidence: Evidence, now: Instant) -> Self:
        """Sort out the evidence for a requirement; `now` is the time that ages count to."""
        every = [Receipt.of(entry) for entry in evidence.of_type(PredicateName.QUALIFICATION_RECEIPT)]
        about = [receipt for receipt in every if receipt.capability in (requirement.capability.id, "")]
        mine = [receipt for receipt in about if any(receipt.is_about(digest) for digest in names.passes)]
        positive = [receipt for receipt in mine if receipt.outcome is not Outcome.FAIL and receipt.capability]
        taken_back = [receipt for receipt in positive if evidence.taken_back(receipt.entry)]
        return cls(
            requirement,
            tuple(rejection for rejection in Rejection.standing(names, evidence) if not rejection.image_wide),
            tuple(receipt for receipt in about if _fails(receipt, names, evidence)),
            tuple(_weigh(receipt, requirement, evidence, now) for receipt in positive if receipt not in taken_back),
            tuple(taken_back),
            tuple(receipt for receipt in about if receipt.outcome is Outcome.PASS and receipt not in mine),
            _built(names, evidence),
            any(receipt.names(digest) for receipt in every for digest in names.passes),
        )


def _fails(receipt: Receipt, names: Names, evidence: Evidence) -> bool:
    about = any(receipt.names(digest) for digest in names.rejections)
    return receipt.outcome is Outcome.FAIL and about and receipt.entry.heard and not evidence.lifted(receipt.entry)


def _weigh(receipt: Receipt, requirement: CapabilityRequirement, evidence: Evidence, now: Instant) -> WeighedReceipt:
    basis = Basis(receipt, requirement.capability, evidence)
    bench = requirement.capability.gpu and not basis.devices <= {"cuda"}
    return WeighedReceipt(receipt, deficits(receipt, basis, requirement.evidence, evidence.trust, now), bench, basis.kind)


def _built(names: Names, evidence: Evidence) -> tuple[Entry, ...]:
    """The first trusted image statement with a passing test-result, which it lists or which is about the same image."""
    results = [entry for entry in evidence.of_uri(TEST_RESULT) if entry.outcome is Outcome.PASS and _stands(entry, evidence)]
    for image in evidence.of_type(PredicateName.IMAGE):
        if not _stands(image, evidence) or not any(image.is_about(digest) for digest in names.passes):
            continue
        listed = image.predicate.get("test_results")
        for result in results:
            named = isinstance(listed, list) and str(result.payload) in listed
            if named or any(result.is_about(digest) for digest in names.passes):
                return image, result
    return ()


def _stands(entry: Entry, evidence: Evidence) -> bool:
    return entry.counts_as() and not evidence.taken_back(entry)
