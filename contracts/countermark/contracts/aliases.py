"""Which digests name the same image, and what crosses from one to another.

A manifest and a config that name each other are one image. A *pass* crosses such an alias only when it was proven from bytes, by
someone who may say so; a *rejection* crosses any alias that anyone with a role has stated. An index is not one image but several: no
pass crosses to or from it. A rejection of a manifest counts against the indexes above it, and a rejection of an index against the
manifests below it, but never from one manifest through their index to another.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.located import as_list, as_object
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
    """The digests of one image, itself included: `passes` are those whose passes count for it, `rejections` those whose rejections do.

    `mentioned` says that an image statement gives the subject as an alias; `platforms` are those recorded for it by someone who may.
    """

    subject: Digest
    passes: frozenset[Digest]
    rejections: frozenset[Digest]
    mentioned: bool
    platforms: frozenset[str]

    @classmethod
    def of(cls, subject: Digest, evidence: Evidence, platform: str | None = None) -> Self:
        """The names of `subject` by the image statements of the evidence.

        Where a `platform` is asked about, a member of an index that is recorded to be of another one does not speak against the index.
        """
        images = evidence.of_type(PredicateName.IMAGE)
        stated = [alias for entry in images for alias in aliases(entry, evidence)]
        proven = [alias for alias in stated if alias.proven and alias.within_one_image]
        passes = _closure([subject], proven)
        rejections = _rejections(subject, stated)
        if subject.kind is DigestKind.OCI_INDEX and platform:
            of = {digest: _platforms(_closure([digest], proven), images, evidence) for digest in rejections}
            rejections = frozenset(digest for digest in rejections if of[digest] <= {platform})
        mentioned = any(subject in (alias.first, alias.second) for alias in stated)
        return cls(subject, passes, rejections | {subject}, mentioned, _platforms(passes, images, evidence))


def _platforms(digests: Iterable[Digest], images: Iterable[Entry], evidence: Evidence) -> frozenset[str]:
    about = [entry for entry in images if any(entry.is_about(digest) for digest in digests)]
    told = [entry.predicate.get("platform") for entry in about if entry.counts_as() and not evidence.taken_back(entry)]
    return frozenset(platform for platform in told if isinstance(platform, str))


def aliases(entry: Entry, evidence: Evidence) -> list[Alias]:
    """The aliases that an image statement states; none when nobody with a role signed it."""
    if not entry.heard:
        return []
    trusted = entry.counts_as() and entry.predicate.get("verified") is True and not evidence.taken_back(entry)
    subjects = [digest for subject in entry.statement.subjects for digest in subject.typed if digest.kind.is_oci]
    found: list[Alias] = []
    for item in map(as_object, as_list(entry.predicate.get("aliases"))):
        other = Digest.stated(item.get("digest"))
        if other and other.kind.is_oci:
            found += [Alias(subject, other, trusted and item.get("proven") is True) for subject in subjects]
    return found + _below(found)


def _below(stated: list[Alias]) -> list[Alias]:
    """The manifest and the config that a statement about an index names, if it names one of each: one image, for a rejection at least."""
    below = {alias.second for alias in stated if alias.first.kind is DigestKind.OCI_INDEX}
    manifests = [digest for digest in below if digest.kind is DigestKind.OCI_MANIFEST]
    configs = [digest for digest in below if digest.kind is DigestKind.OCI_CONFIG]
    return [Alias(manifests[0], configs[0], proven=False)] if len(manifests) == len(configs) == 1 else []


def _rejections(subject: Digest, stated: list[Alias]) -> frozenset[Digest]:
    inside = [alias for alias in stated if alias.within_one_image]
    indexes = [alias for alias in stated if alias.first.kind == alias.second.kind == DigestKind.OCI_INDEX]
    across = [alias for alias in stated if (alias.first.kind is DigestKind.OCI_INDEX) is not (alias.second.kind is DigestKind.OCI_INDEX)]
    first, second = (indexes, inside) if subject.kind is DigestKind.OCI_INDEX else (inside, indexes)
    same = _closure([subject], first)
    neighbours = [digest for end in same for digest in _ends(across).get(end, ())]
    return same | _closure(neighbours, second)


def _closure(start: Iterable[Digest], within: list[Alias]) -> frozenset[Digest]:
    """Everything that can be reached from `start`."""
    ends = _ends(within)
    found = set(start)
    waiting = list(found)
    while waiting:
        new = ends.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return frozenset(found)


def _ends(within: list[Alias]) -> dict[Digest, set[Digest]]:
    ends: dict[Digest, set[Digest]] = {}
    for alias in within:
        ends.setdefault(alias.first, set()).add(alias.second)
        ends.setdefault(alias.second, set()).add(alias.first)
    return ends
