"""Record an image at one of its levels, with the aliases that its bytes prove."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import UsageError
from countermark.attestations.located import JsonValue
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import Subject
from countermark.recorders.docker import Reported
from countermark.recorders.image_source import choose, choose_reported, images_in, open_source
from countermark.recorders.oci import Image
from countermark.recorders.recording import Progress, Recording, silent
from countermark.recorders.shape import Node

_LEVELS = {DigestKind.OCI_INDEX: "index", DigestKind.OCI_MANIFEST: "manifest", DigestKind.OCI_CONFIG: "config"}
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*\Z")


@dataclass(frozen=True, slots=True)
class Alias:
    """Another digest of the image, whether bytes prove that it is the same image, and how."""

    digest: Digest
    proven: bool
    how: str

    def to_json(self) -> dict[str, JsonValue]:
        """The element of `aliases`."""
        return {"digest": str(self.digest), "proven": self.proven, "how": self.how}


def record_image(
    path: Path,
    *,
    digest: Digest | str | None = None,
    platform: str | None = None,
    components: Sequence[str] = (),
    base: Digest | None = None,
    test_results: Sequence[Digest] = (),
    progress: Progress = silent,
) -> Recording:
    """The `image/v1` statement of one image in an OCI layout folder, an OCI or docker archive, or `docker image inspect` JSON.

    The subject is `digest` if given (typed, or a bare `sha256:HEX64` when the kind is plain from the image), else the manifest, else,
    where there is no manifest, the config. Several images and no choice: an `InputError` that lists them.
    """
    built_from = dict(map(parse_component, components))
    if len(built_from) != len(components):
        raise UsageError(Code.DUPLICATE_KEY, "a component is named twice", fix="give each component once")
    stated: dict[str, JsonValue] = {
        "base": str(base) if base else None,
        "test_results": [str(result) for result in test_results],
        **({"built_from": {"components": {**built_from}}} if built_from else {}),
    }
    place = open_source(path, progress)
    if isinstance(place, Node):
        reported = choose_reported(place, digest)
        notes = ("every fact is reported by docker, none is proven from bytes", *_unbound(built_from))
        return Recording(
            PredicateName.IMAGE, (Subject.of(reported.subject),), reported_facts(reported) | stated, (*notes, *_unbound(built_from))
        )
    subject, image = choose(place, images_in(place), digest, platform)
    notes = (*image.notes, *_unbound(built_from))
    return Recording(PredicateName.IMAGE, (Subject.of(subject),), proven_facts(subject, image) | stated, notes)


def _unbound(built_from: Mapping[str, JsonValue]) -> Iterator[str]:
    """An image whose source nobody states meets no contract that binds one."""
    if not built_from:
        yield "no --component NAME=COMMIT is given: a gate that asks for a contract will deny with PIN_MISMATCH"


def proven_facts(subject: Digest, image: Image) -> dict[str, JsonValue]:
    """The part of the predicate that bytes prove."""
    return {
        "level": _LEVELS[subject.kind],
        "verified": True,
        "aliases": [alias.to_json() for alias in _aliases(subject, image)],
        "platform": image.platform,
        "layers": [{"sha256": layer.sha256, "bytes": layer.size_bytes} for layer in image.layers],
        "labels": dict(image.labels),
        "published": [],
    }


def reported_facts(reported: Reported) -> dict[str, JsonValue]:
    """The part of the predicate that docker reports; it names no aliases, because it does not say of what kind they would be."""
    return {
        "level": _LEVELS[reported.subject.kind],
        "verified": False,
        "aliases": [],
        "platform": reported.platform,
        "layers": [],
        "labels": dict(reported.labels),
        "published": [*reported.published],
    }


def parse_component(text: str) -> tuple[str, dict[str, JsonValue]]:
    """Read `NAME=COMMIT[,tree=ID][,source_sha256=HEX][,repository=URL]`; ids are bare hex or typed digests."""
    (name, commit), *options = (part.partition("=")[::2] for part in text.split(","))
    fields = dict(options)
    if (
        not _NAME.match(name)
        or len(fields) != len(options)
        or not all(fields.values())
        or set(fields) - {"tree", "source_sha256", "repository"}
    ):
        raise UsageError(
            Code.UNKNOWN_NAME, f"{text!r} is not a component", fix="write NAME=COMMIT[,tree=…][,source_sha256=…][,repository=…]"
        )
    if not commit:
        raise UsageError(Code.UNKNOWN_NAME, f"{text!r} names no component", fix="write NAME=COMMIT, with the name of the contract's pin")
    component: dict[str, JsonValue] = {"commit": str(_digest(DigestKind.GIT_COMMIT, commit))}
    if "tree" in fields:
        component["tree"] = str(_digest(DigestKind.GIT_TREE, fields["tree"]))
    if "source_sha256" in fields:
        component["source_sha256"] = _digest(DigestKind.SOURCE_TREE, fields["source_sha256"]).hex
    if "repository" in fields:
        component["repository"] = fields["repository"]
    return name, component


def _digest(kind: DigestKind, text: str) -> Digest:
    found = Digest.parse(text) if ":" in text else Digest(kind, text)
    if found.kind is not kind:
        raise UsageError(Code.BAD_DIGEST, f"{text} is not a {kind}", fix=f"give a {kind}")
    return found


def _aliases(subject: Digest, image: Image) -> Iterator[Alias]:
    """The image's other digests. Going down, each is named by the bytes of the one above, all hashed here.

    Going up to an index that names other images too, the index is not the same image: such an alias is not proven, so that a
    rejection crosses it and a pass does not.
    """
    position = image.digests.index(subject)
    others = 0
    for number in range(position - 1, -1, -1):
        above, below = image.digests[number : number + 2]
        others += image.indexes[number].images - 1 if number < len(image.indexes) else 0
        yield Alias(above, not others, f"its bytes name {below}" + (f", beside {others} other image(s)" if others else ""))
    for above, below in pairwise(image.digests[position:]):
        yield Alias(below, True, f"named by the bytes of {above}")
