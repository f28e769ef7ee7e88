"""How far a bad thing reaches: from the statements that name it to all that rests on them, and to the images that contain it.

A statement rests on another when its predicate names the other's payload: a receipt its record, a decision the evidence that it used, a
summary its inputs. An image contains a commit that it was built from, and everything in the image that it is built on; what is said of
such an image is touched, even by one who never heard of the commit.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from countermark.actions.past_decisions import PastDecision
from countermark.actions.queries.bad import Bad
from countermark.actions.queries.candidates import naming
from countermark.actions.queries.view import View
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.located import as_list, as_object, walk
from countermark.attestations.predicate_types import VERIFICATION_SUMMARY, PredicateName
from countermark.contracts.evidence import Record


@dataclass(frozen=True, slots=True)
class Touched:
    """A statement that is touched, and why."""

    record: Record
    why: str


class Reach:
    """Everything that is touched, grown level by level until nothing new is found."""

    def __init__(self, view: View, bad: Bad) -> None:
        self.touched: dict[int, Touched] = {}
        self.tainted: dict[Digest, str] = {}
        self.unreadable: list[str] = []
        self._view = view
        self._bad = bad
        self._first_of: dict[str, int] = {}
        fresh = self._touch(bad.candidates(view), bad.why)
        while fresh:
            fresh = self._touch(naming(view, fresh).indices, self._why)

    @property
    def images(self) -> tuple[Digest, ...]:
        """The images that are concerned: those that contain it, and those that something touched is about."""
        about = {digest for item in self.touched.values() for digest in self._about(item.record)}
        return tuple(sorted(about | self.tainted.keys()))

    def _about(self, record: Record) -> set[Digest]:
        """The images that a statement is about, itself or through the statements that it takes back or replaces."""
        found = set(_subjects(record))
        for payload in [digest for digest in found if digest.kind is DigestKind.PAYLOAD]:
            records, _ = self._view.records(self._view.reader.find_payload(payload.raw))
            found |= {digest for other in records for digest in _subjects(other)}
        return {digest for digest in found if digest.kind.is_oci}

    def _touch(self, indices: Iterable[int], why: "Why") -> set[str]:
        """Take in those statements that have a reason; the hexes by which more may be found."""
        records, unreadable = self._view.records(set(indices) - self.touched.keys())
        self.unreadable += [text for text in unreadable if text not in self.unreadable]
        new = [Touched(record, reason) for record in records if (reason := why(record))]
        found: set[str] = set()
        for item in new:
            self.touched[item.record.index] = item
            self._first_of.setdefault(item.record.payload.hex, item.record.index)
            found |= {item.record.payload.hex, *self._taint(item.record)}
        return found

    def _taint(self, record: Record) -> set[str]:
        """The images that contain it by what a statement says: those that are new, by their hex."""
        reason = self._contains(record)
        names = _subjects(record) if _is_index(record) else _names(record)
        new = {digest for digest in names if reason and digest.kind.is_oci and digest not in self.tainted}
        self.tainted.update((digest, str(reason)) for digest in new)
        return {digest.hex for digest in new}

    def _contains(self, record: Record) -> str | None:
        """Why the image of an image statement contains the bad thing; none when it does not say so."""
        if record.statement.predicate_type != PredicateName.IMAGE.uri:
            return None
        if self._bad.is_in_image(record):
            return "is built from it"
        base = Digest.stated(as_object(record.statement.predicate).get("base"))
        if base in self.tainted:
            return f"is built on {base}"
        same = next((digest for digest in _names(record) if digest in self.tainted), None)
        return f"{'contains' if _is_index(record) else 'is'} {same}" if same else None

    def _why(self, record: Record) -> str | None:
        rests_on = sorted(self._first_of[hexed] for hexed in set(_rests_on(record)) & self._first_of.keys())
        if rests_on:
            return f"rests on entry {rests_on[0]}"
        about = next((digest for digest in _subjects(record) if digest in self.tainted), None)
        if about:
            return f"about {about}, which {self.tainted[about]}"
        reason = self._contains(record)
        return f"about an image that {reason}" if reason else None


class Why(Protocol):
    """Why a statement is touched; none when it is not."""

    def __call__(self, record: Record, /) -> str | None:
        """The reason in words."""
        ...


def _rests_on(record: Record) -> Iterator[str]:
    """The hex of every payload that a statement rests on. Of a decision that is what an answer used, not all that was weighed."""
    predicate = as_object(record.statement.predicate)
    named = [node for _, node in walk(record.statement.predicate)]
    if record.statement.predicate_type == VERIFICATION_SUMMARY:
        for item in as_list(predicate.get("inputAttestations")):
            yield str(as_object(as_object(item).get("digest")).get("sha256"))
        return
    if record.statement.predicate_type == PredicateName.DECISION.uri:
        inputs = as_object(as_object(predicate.get("core")).get("inputs"))
        documents = [inputs.get("contract_verdicts"), inputs.get("waivers")]
        named = [*PastDecision.of(record).rests_on(), *(node for item in documents for _, node in walk(item))]
    for node in named:
        digest = Digest.stated(node)
        if digest and digest.kind is DigestKind.PAYLOAD:
            yield digest.hex


def _subjects(record: Record) -> list[Digest]:
    return [digest for subject in record.statement.subjects for digest in subject.typed]


def _names(record: Record) -> list[Digest]:
    """The subjects, and the digests that an image statement proves to be of the same image or, below an index, in it."""
    aliases = map(as_object, as_list(as_object(record.statement.predicate).get("aliases")))
    proven = [item for item in aliases if item.get("proven") is True]
    others = [digest for item in proven if (digest := Digest.stated(item.get("digest"))) and digest.kind is not DigestKind.OCI_INDEX]
    return [*_subjects(record), *others]


def _is_index(record: Record) -> bool:
    """An index is not one image: what is in one of its members is in the index, and not in the others."""
    return any(digest.kind is DigestKind.OCI_INDEX for digest in _subjects(record))
