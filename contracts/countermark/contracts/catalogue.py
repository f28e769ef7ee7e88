"""The capability catalogue: what each capability means, which dimensions a policy must name for it, and what proves it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.documents import Document
from countermark.attestations.errors import InputError, Location
from countermark.attestations.spelling import meant


@dataclass(frozen=True, slots=True)
class Capability:
    """One capability. `gpu` says that a run on any other device shows no more than that it is implemented."""

    id: str
    means: str
    must_name: tuple[str, ...]
    evidence: frozenset[str]
    controls: tuple[str, ...]
    gpu: bool = False


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The capabilities by id, and the identity of the file they were read from."""

    id: str
    version: int
    digest: Digest
    capabilities: Mapping[str, Capability]

    @classmethod
    def of(cls, document: Document) -> Self:
        """Build from a validated CapabilityCatalog."""
        found: dict[str, dict[str, Any]] = document.spec["capabilities"]
        return cls(document.id, document.version, document.digest, {name: _capability(name, fields) for name, fields in found.items()})

    def get(self, name: str, at: Location) -> Capability:
        """The capability of that id; `InputError` UNKNOWN_NAME, with the nearest one, when there is none."""
        if name not in self.capabilities:
            raise InputError(
                Code.UNKNOWN_NAME,
                f"no capability {name!r} in catalogue {self.id}@{self.version}",
                at=at,
                fix=suggest(name, self.capabilities),
            )
        return self.capabilities[name]


def suggest(name: str, known: Mapping[str, object] | tuple[str, ...]) -> str:
    """The fix for a name that is not known: the nearest one, or all there are."""
    return meant(name, known) or f"use one of {', '.join(known)}"


def _capability(name: str, fields: Mapping[str, Any]) -> Capability:
    return Capability(
        name, fields["means"], tuple(fields["must_name"]), frozenset(fields["evidence"]), tuple(fields["controls"]), "device" in fields
    )
