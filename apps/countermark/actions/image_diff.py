"""`diff`: what changed between two images: components, contracts, qualified scopes, layers, tests."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from countermark.actions.gate import Asked
from countermark.actions.queries.judged_by import rules_only, told
from countermark.actions.queries.listing import Bearing, Listing, bearing_of
from countermark.actions.queries.view import When, open_view
from countermark.actions.subjects import resolve_subject
from countermark.actions.workspace import Workspace
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.contracts.compare_images import Change, ImageComparison, Section, Side, compare_images, demands

_KINDS = (DigestKind.OCI_MANIFEST, DigestKind.OCI_CONFIG, DigestKind.OCI_INDEX)
_NOT_RECORDED = "not recorded"


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One thing that differs; a side is none where nothing is recorded of it. The bearing is that of B, the image one would change to."""

    section: Section
    item: str
    a: str | None
    b: str | None
    bearing: Bearing

    def cells(self) -> dict[str, str]:
        """The columns for people."""
        return {"what": self.section, "item": self.item, "A": self.a or _NOT_RECORDED, "B": self.b or _NOT_RECORDED}


def diff_listing(workspace: Workspace, asked: Asked, a: str, b: str) -> Listing:
    """What differs between image `a` and image `b`, each judged by the gate at every scope that either was tested in.

    `asked` holds the policy, if any, whose rules of evidence count. Raises what the gate raises.
    """
    by, rules = rules_only(workspace, asked)
    with open_view(workspace, When.of(asked), by.trust) as view:
        subjects = [resolve_subject(view.reader, text, _KINDS) for text in (a, b)]
        left, right = (Side.of(subject, view.evidence(subject)) for subject in subjects)
        known = [view.decide(subject, by.policy).requirements[0].code is not Code.SUBJECT_UNKNOWN for subject in subjects]
        policy = replace(by.policy, requires=demands((left, right), by.policy.catalogue, rules))
        found = compare_images(left, right, *(view.decide(subject, policy) for subject in subjects))
        question = f"what differs between A = {subjects[0]} and B = {subjects[1]}"
        missing = [
            f"{subject}: no record names it [{Code.SUBJECT_UNKNOWN}]"
            for subject, is_known in zip(subjects, known, strict=True)
            if not is_known
        ]
        missing += _missing(left, right)
        notes = (*told(by, by.policy.requires[0]), *_same(found), *_one_image(left, subjects[1]))
        rows = [_row(change) for change in found.changes]
        return Listing(question, view.head, view.effective_time, rows, tuple(missing), notes)


def _row(change: Change) -> ChangeRow:
    return ChangeRow(change.section, change.item, change.a, change.b, _bearing(change))


def _bearing(change: Change) -> Bearing:
    if change.code_b is not None:
        return bearing_of(change.code_b, holds=change.code_b is Code.OK)
    if change.a is None or change.b is None:
        return Bearing.NOT_FOUND
    return Bearing.NEGATIVE if (change.section, change.b) == (Section.TEST, "fail") else Bearing.FOUND


def _missing(left: Side, right: Side) -> Iterator[str]:
    """What neither side records, so that nothing can differ in it."""
    recorded = {
        "the components of either": left.components() or right.components(),
        "the layers of either": left.layers() or right.layers(),
        "a test-result of either": left.tests() or right.tests(),
        "a receipt of either": left.receipts() or right.receipts(),
        "a contract verdict": left.contracts() or right.contracts(),
    }
    yield from (what for what, found in recorded.items() if not found)


def _same(found: ImageComparison) -> Iterator[str]:
    alike = [f"{count} {section}{'s' if count > 1 else ''}" for section, count in found.same.items() if count]
    if alike:
        yield f"the same: {', '.join(alike)}"


def _one_image(left: Side, other: Digest) -> Iterator[str]:
    if other in left.names.passes:
        yield "A and B are proven to be names of one image"
