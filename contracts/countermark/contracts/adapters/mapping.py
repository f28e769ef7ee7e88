"""A user's own records, read by a document of kind EvidenceMapping: pointers and word tables, no expressions.

Nothing is computed again here, so a mapped claim is never more than reported. A word that the mapping does not list is refused.
"""

from collections.abc import Iterable
from typing import Any, Self

from countermark.attestations.codes import Outcome
from countermark.attestations.digests import DigestKind
from countermark.attestations.documents import Document
from countermark.attestations.located import JsonValue
from countermark.contracts.adapters.base import Adapter
from countermark.contracts.adapters.fields import Field, shown
from countermark.contracts.adapters.images import Component, Named, built_from, named_image
from countermark.contracts.adapters.notes import Case, Notes, settle
from countermark.contracts.adapters.reading import Claim, Reference
from countermark.contracts.catalogue import Catalogue


class MappingAdapter(Adapter):
    """Reads the documents that state the schema of one mapping."""

    tables = ()

    def __init__(self, document: Document) -> None:
        self.name = document.id
        self.version = document.version
        self.spec: dict[str, Any] = document.spec

    @classmethod
    def of(cls, document: Document, catalogue: Catalogue) -> Self:
        """Build from a validated EvidenceMapping; `InputError` UNKNOWN_NAME for a capability that the catalogue does not have."""
        for number, claim in enumerate(document.spec["claims"]):
            catalogue.get(claim["capability"], document.at(f"/spec/claims/{number}/capability"))
        return cls(document)

    def recognises(self, root: Field) -> bool:
        """Whether the document states exactly the mapping's schema."""
        return root.find(self.spec["schema_pointer"]).value == str(self.spec["schema"])

    def schema(self, root: Field) -> str:
        """The schema id."""
        del root
        return str(self.spec["schema"])

    def references(self, root: Field) -> Iterable[Reference]:
        """The files that the mapping names, each by the digest that the document states."""
        stated = {name: root.find(pointer) for name, pointer in self.spec.get("references", {}).items()}
        return [Reference(item.pointer, item.hex64, name) for name, item in stated.items()]

    def read(self, case: Case, notes: Notes) -> None:
        """One claim for each that the mapping lists and whose word it knows."""
        image = self.spec["image"]
        named = named_image(case, notes, case.root.find(image["pointer"]), DigestKind(image["kind"]))
        if named and self.spec.get("sources"):
            components = (Component(name, **pointers) for name, pointers in self.spec["sources"].items())
            notes.images.append(built_from(named, case.root, tuple(components)))
        for claim in self.spec["claims"]:
            word = case.root.find(claim["outcome"]["pointer"])
            outcome = claim["outcome"]["words"].get(word.text) if word.text is not None else None
            if outcome is None:
                notes.refuse(word, f"{shown(word.value)} is no word of the mapping {self.name}")
            elif named:
                notes.claims.append(self._claim(claim, Outcome(outcome), word, named, case))

    def _claim(self, claim: dict[str, Any], outcome: Outcome, word: Field, named: Named, case: Case) -> Claim:
        """A pass needs every file that the mapping names, with the digest that the document states."""
        complete = all(reference.pointer in case.files for reference in self.references(case.root))
        cell = {name: case.root.find(pointer).count for name, pointer in claim["cells"].items()}
        sizes = {leaf: case.root.find(pointer).positive for leaf, pointer in self.spec.get("topology", {}).items()}
        scope: dict[str, JsonValue] = {
            "image": str(named.image),
            "topology": {leaf: size for leaf, size in sizes.items() if size is not None},
            "cells": [{name: value for name, value in cell.items() if value is not None}],
        }
        settled = settle(outcome, [Outcome.PASS if complete else Outcome.INCONCLUSIVE])
        return Claim(claim["capability"], settled, scope, word.pointer, derived=named.derived)
