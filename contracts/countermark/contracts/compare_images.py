"""What differs between two images, by what is recorded and counts: components, layers, tests, and the gate's answers about either.

Two images are never told apart by what one of them merely lacks a record of: what is not recorded is none here, which is another thing
than a layer that is recorded to be absent or a test that failed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.errors import Location
from countermark.attestations.located import as_list, as_object
from countermark.attestations.predicate_types import TEST_RESULT, PredicateName
from countermark.contracts.aliases import Names
from countermark.contracts.catalogue import Catalogue
from countermark.contracts.contract_status import verdict_identity
from countermark.contracts.decision import Decision, Result
from countermark.contracts.evidence import Entry, Evidence
from countermark.contracts.receipt import Receipt
from countermark.contracts.requirement import CapabilityRequirement, ContractRequirement, EvidenceRules, Requirement
from countermark.contracts.scope import Leaves, describe

_AT: Final = Location("diff")
_TEST_LISTS: Final = {"passedTests": "pass", "warnedTests": "warned", "failedTests": "fail"}
"""The lists of a test-result, the worst last."""
NO_LAYER: Final = "absent"


class Section(StrEnum):
    """What a change is about."""

    COMPONENT = "component"
    CONTRACT = "contract"
    SCOPE = "scope"
    LAYER = "layer"
    TEST = "test"


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that differs. A side is none where nothing is recorded; the codes are those of a contract's or scope's answers."""

    section: Section
    item: str
    a: str | None
    b: str | None
    code_a: Code | None = None
    code_b: Code | None = None


@dataclass(frozen=True, slots=True)
class ImageComparison:
    """All changes in the order of the sections, and how many things of each section are the same."""

    changes: tuple[Change, ...]
    same: Mapping[Section, int]


@dataclass(frozen=True, slots=True)
class Side:
    """One of two images: its names, and the evidence that the gate would judge it by."""

    names: Names
    evidence: Evidence

    @classmethod
    def of(cls, subject: Digest, evidence: Evidence) -> Self:
        """The side of an image."""
        return cls(Names.of(subject, evidence), evidence)

    def images(self) -> list[Entry]:
        """The image statements that count for it."""
        return [entry for entry in self.evidence.of_type(PredicateName.IMAGE) if self._counts(entry) and self._is_about(entry)]

    def components(self) -> dict[str, str]:
        """`NAME.LEAF` of each source it was built from; where two statements differ, both values."""
        found: dict[str, set[str]] = {}
        for entry in self.images():
            for name, component in as_object(as_object(entry.predicate.get("built_from")).get("components")).items():
                for leaf, value in as_object(component).items():
                    found.setdefault(f"{name}.{leaf}", set()).add(str(value))
        return {item: " and ".join(sorted(values)) for item, values in found.items()}

    def layers(self) -> tuple[tuple[str, str], ...] | None:
        """Digest and size of each layer, from the bottom; none where no statement records them."""
        for entry in self.images():
            layers = [as_object(item) for item in as_list(entry.predicate.get("layers"))]
            if layers:
                return tuple((str(layer.get("sha256")), f"{layer.get('bytes')} bytes") for layer in layers)
        return None

    def tests(self) -> dict[str, str] | None:
        """Each test by its name with the worst that a test-result says of it; none where there is no test-result."""
        listed = {str(item) for image in self.images() for item in as_list(image.predicate.get("test_results"))}
        results = [entry for entry in self.evidence.of_uri(TEST_RESULT) if self._counts(entry)]
        mine = [entry for entry in results if self._is_about(entry) or str(entry.payload) in listed]
        found: dict[str, str] = {}
        for name, word in _TEST_LISTS.items():
            found.update((str(test), word) for entry in mine for test in as_list(entry.predicate.get(name)))
        return found if mine else None

    def receipts(self) -> list[Receipt]:
        """The receipts that name it, for or against."""
        every = [Receipt.of(entry) for entry in self.evidence.of_type(PredicateName.QUALIFICATION_RECEIPT)]
        return [receipt for receipt in every if any(receipt.names(digest) for digest in self.names.rejections | self.names.passes)]

    def contracts(self) -> set[str]:
        """The contracts that a verdict is recorded of."""
        return {verdict_identity(entry)[0] for entry in self.evidence.of_type(PredicateName.CONTRACT_VERDICT)} - {""}

    def _counts(self, entry: Entry) -> bool:
        return entry.counts_as() and not self.evidence.taken_back(entry)

    def _is_about(self, entry: Entry) -> bool:
        return any(entry.is_about(digest) for digest in self.names.passes)


def demands(sides: Iterable[Side], catalogue: Catalogue, rules: EvidenceRules) -> tuple[Requirement, ...]:
    """What to ask the gate about each side, so that their answers can be compared: every contract, and every point tested on any."""
    contracts: set[str] = set()
    points: dict[tuple[str, str], Leaves] = {}
    for side in sides:
        contracts |= side.contracts()
        for receipt in side.receipts():
            for cell in receipt.scope.cells or ({},):
                point: Leaves = {**receipt.scope.exact, **cell}
                if receipt.capability in catalogue.capabilities:
                    points[receipt.capability, describe(point)] = point
    asked: list[Requirement] = [ContractRequirement(name, _AT, name) for name in sorted(contracts)]
    for (name, place), point in sorted(points.items(), key=lambda item: item[0]):
        capability = catalogue.capabilities[name]
        asked.append(CapabilityRequirement(f"{name} {place}", _AT, capability, (point,), (), rules))
    return tuple(asked)


def compare_images(a: Side, b: Side, answers_a: Decision, answers_b: Decision) -> ImageComparison:
    """What differs. The decisions are those about either image with the same demands as their policy."""
    found = [
        *_values(Section.COMPONENT, a.components(), b.components()),
        *_answers(answers_a.requirements, answers_b.requirements),
        *_layers(a.layers(), b.layers()),
        *_recorded(Section.TEST, a.tests(), b.tests()),
    ]
    changes = tuple(change for change in found if (change.a, change.code_a) != (change.b, change.code_b))
    alike = [change.section for change in found if change not in changes]
    return ImageComparison(changes, {section: alike.count(section) for section in Section})


def _values(section: Section, a: Mapping[str, str], b: Mapping[str, str]) -> list[Change]:
    return [Change(section, item, a.get(item), b.get(item)) for item in sorted(a.keys() | b.keys())]


def _recorded(section: Section, a: Mapping[str, str] | None, b: Mapping[str, str] | None) -> list[Change]:
    """Item by item where both sides record any; otherwise one change that says how many the one side records."""
    if a is None or b is None:
        counted = [f"{len(side)} recorded" if side is not None else None for side in (a, b)]
        return [Change(section, f"all {section}s", counted[0], counted[1])] if a is not b else []
    return _values(section, a, b)


def _layers(a: tuple[tuple[str, str], ...] | None, b: tuple[tuple[str, str], ...] | None) -> list[Change]:
    left, right = dict(a or ()), dict(b or ())
    if a is None or b is None:
        return _recorded(Section.LAYER, left if a else None, right if b else None)
    common = left.keys() & right.keys()
    order = [", ".join(sha256 for sha256, _ in side if sha256 in common) for side in (a, b)]
    every = sorted(left.keys() | right.keys())
    changes = [Change(Section.LAYER, sha256, left.get(sha256, NO_LAYER), right.get(sha256, NO_LAYER)) for sha256 in every]
    return changes if order[0] == order[1] else [*changes, Change(Section.LAYER, "order of the common layers", order[0], order[1])]


def _answers(a: tuple[Result, ...], b: tuple[Result, ...]) -> list[Change]:
    """The gate's answers, which are in the order of the demands."""
    return [_answer(one, other) for one, other in zip(a, b, strict=True)]


def _answer(a: Result, b: Result) -> Change:
    section = Section.SCOPE if a.capability else Section.CONTRACT
    same = (a.status, a.code) == (b.status, b.code)
    told = [f"{result.status} [{result.code}]" + ("" if same else f" {result.observed}") for result in (a, b)]
    return Change(section, a.required, told[0], told[1], a.code, b.code)
