"""The image that a document is about, and what it says that the image was built from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from countermark.attestations.codes import Code, Outcome, Severity
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.located import JsonValue
from countermark.contracts.adapters.fields import Field, shown
from countermark.contracts.adapters.notes import Case, Notes
from countermark.contracts.adapters.reading import Derived, ImageDraft

_NO_KIND: Final = "the digest stands there without its kind; give --bind {pointer}='kind oci-manifest' (or oci-config)"
_NO_IMAGE: Final = "the record names no image; give --bind /image=KIND:sha256:HEX"


@dataclass(frozen=True, slots=True)
class Named:
    """The image, and how its digest was read."""

    image: Digest
    derived: tuple[Derived, ...]


@dataclass(frozen=True, slots=True)
class Component:
    """Where a document states the source of one component: the pointers to its commit, tree and source digest."""

    name: str
    commit: str
    tree: str | None = None
    source_sha256: str | None = None


def named_image(case: Case, notes: Notes, stated: Field, kind: DigestKind | None) -> Named | None:
    """The image of a field whose digest is of `kind` where the schema says so. Without one there is nothing to claim anything of."""
    found = case.bindings.image(stated, kind)
    if found:
        return Named(*found)
    hint = _NO_KIND.format(pointer=stated.pointer) if stated.oci_hex else _NO_IMAGE
    notes.find(
        stated,
        Code.RECORD_UNMAPPED,
        "image.id-kind" if stated.oci_hex else "evidence.subject",
        Severity.BLOCK,
        Outcome.INCONCLUSIVE,
        required="the image as a digest whose kind is known",
        observed=shown(stated.value),
        fix=hint,
    )
    return None


def built_from(named: Named, at: Field, components: tuple[Component, ...]) -> ImageDraft:
    """The predicate image/v1 of what the document says: reported, not verified, and nothing that it does not say."""
    stated: dict[str, JsonValue] = {}
    for item in components:
        if found := _component(at, item):
            stated[item.name] = found
    predicate: Mapping[str, JsonValue] = {
        "level": str(named.image.kind).removeprefix("oci-"),
        "verified": False,
        "aliases": [],
        "layers": [],
        "labels": {},
        "published": [],
        "test_results": [],
        "built_from": {"components": stated},
    }
    return ImageDraft(named.image, predicate)


def _component(at: Field, item: Component) -> dict[str, JsonValue]:
    """What is stated of a component; nothing without its whole commit."""
    commit = at.find(item.commit).git_id
    tree = at.find(item.tree).git_id if item.tree else None
    source = at.find(item.source_sha256).hex64 if item.source_sha256 else None
    stated: dict[str, JsonValue] = {
        "commit": f"git-commit:{commit}",
        "tree": f"git-tree:{tree}" if tree else None,
        "source_sha256": source,
    }
    return {name: value for name, value in stated.items() if value} if commit else {}
