"""Which digests name the same image, and what crosses from one to another.

A manifest and a config that name each other are one image. A *pass* crosses such an alias only when it was proven from bytes, by
someone who may say so; a *rejection* crosses any alias that anyone with a role has stated. An index is not one image but several: no
pass crosses to or from it. A rejection of a manifest counts against the indexes above it, and a rejection of an index against the
manifests below it, but never from one manifest through their index to another.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self

from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError
from countermark.attestations.located import JsonValue
from countermark.attestations.predicate_types import PredicateName
from countermark.contracts.evidence import Entry, Evidence


@dataclass(frozen=True, slots=True)
class Alias:
    """Two digests that a statement says are names of one image, or an index and one of its members."""

    first: Digest
    second: Digest
    proven: bool

    @property
    def within_one_image(self) -> bool:
        """Whether both ends are at or below the manifest, so that they are one image."""
        return DigestKind.OCI_INDEX not in (self.first.kind, self.second.kind)


@dataclass(frozen=True, slots=True)
class Names:
    """The digests of one image, itself included: `passes` are those whose passes count for it, `rejections` those whose rejections do."""

    subject: Digest
    passes: frozenset[Digest]
    rejections: frozenset[Digest]
    mentioned: bool

    @classmethod
    def of(cls, subject: Digest, evidence: Evidence) -> Self:
        """The names of `subject` by the image statements of the evidence."""
        stated = [alias for entry in evidence.of_type(PredicateName.IMAGE) for alias in aliases(entry, evidence)]
        mentioned = any(subject in (alias.first, alias.second) for alias in stated)
        proven = [alias for alias in stated if alias.proven and alias.within_one_image]
        return cls(subject, _closure([subject], proven), _rejections(subject, stated), mentioned)


def aliases(entry: Entry, evidence: Evidence) -> list[Alias]:
    """The aliases that an image statement states; none when nobody with a role signed it."""
    if not entry.heard:
        return []
    trusted = entry.counts_as() and entry.predicate.get("verified") is True and not evidence.taken_back(entry)
    subjects = [digest for subject in entry.statement.subjects for digest in subject.typed if digest.kind.is_oci]
    items = entry.predicate.get("aliases")
    found: list[Alias] = []
    for item in items if isinstance(items, list) else []:
        other = _digest(item.get("digest")) if isinstance(item, dict) else None
        if isinstance(item, dict) and other is not None:
            found += [Alias(subject, other, trusted and item.get("proven") is True) for subject in subjects]
    return found


def _digest(value: JsonValue) -> Digest | None:
    try:
        digest = Digest.parse(value) if isinstance(value, str) else None
    except InputError:
        return None
    return digest if digest and digest.kind.is_oci else None


def _rejections(subject: Digest, stated: list[Alias]) -> frozenset[Digest]:
    inside = [alias for alias in stated if alias.within_one_image]
    indexes = [alias for alias in stated if alias.first.kind == alias.second.kind == DigestKind.OCI_INDEX]
    across = [alias for alias in stated if alias.within_one_image is False and alias not in indexes]
    if subject.kind is DigestKind.OCI_INDEX:
        above = _closure([subject], indexes)
        return above | _closure(_neighbours(above, across), inside)
    same = _closure([subject], inside)
    return same | _closure(_neighbours(same, across), indexes)


def _neighbours(of: Iterable[Digest], across: list[Alias]) -> set[Digest]:
    here = set(of)
    ends = [(alias.first, alias.second) for alias in across] + [(alias.second, alias.first) for alias in across]
    return {second for first, second in ends if first in here}


def _closure(start: Iterable[Digest], within: list[Alias]) -> frozenset[Digest]:
    """Everything that can be reached from `start`."""
    return frozenset(_reach(set(start), lambda found: _neighbours(found, within)))


def _reach(found: set[Digest], step: Callable[[set[Digest]], set[Digest]]) -> set[Digest]:
    while True:
        grown = found | step(found)
        if grown == found:
            return found
        found = grown
