"""What an adapter reads out of a document: claims, what it refused, what it found, and what else it needs.

`EvidenceReading.predicate` is the predicate evidence-document/v1. It holds no time of recording: the same files read by the same
adapter give the same bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from countermark.attestations.codes import Code, ExitCode, Outcome, Severity
from countermark.attestations.digests import Digest
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.contracts.adapters.fields import File

NOT_RECORDED: Final = "not-recorded"
SOURCE_REPORTED: Final[Mapping[str, JsonValue]] = {"source_reported": True, "site_reproduced": False, "independent_runs": 0}
"""The evidence state of a record that speaks of its own source's runs only."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A file that a document refers to: by its digest, and where it is known by the name under which it lies beside the document.

    `by_name` says that the schema states no digests, so that the name alone leads to it. Otherwise no digest leads nowhere.
    """

    pointer: str
    sha256: str | None = None
    name: str | None = None
    by_name: bool = False


@dataclass(frozen=True, slots=True)
class Derived:
    """A field of a claim that the document does not state in so many words."""

    field: str
    rule: str
    source: str

    def to_json(self) -> dict[str, JsonValue]:
        """The object of the predicate."""
        return {"field": self.field, "rule": self.rule, "source": self.source}


@dataclass(frozen=True, slots=True)
class Claim:
    """One outcome of one capability in one scope, as the document reports it and nothing in the document contradicts it.

    `controls` are those that recompute from operands in the document; all others are not recorded. `observed` is an interval of two
    times, each none where it is not recorded.
    """

    capability: str
    outcome: Outcome
    scope: Mapping[str, JsonValue]
    source: str
    controls: Mapping[str, Outcome] = field(default_factory=dict)
    research_only: bool = False
    observed: tuple[str | None, str | None] = (None, None)
    derived: tuple[Derived, ...] = ()

    def to_json(self, controls: tuple[str, ...]) -> dict[str, JsonValue]:
        """The claim object; `controls` are all those of the capability."""
        return {
            "capability": self.capability,
            "outcome": str(self.outcome),
            "claim": "research-only" if self.research_only and self.outcome is not Outcome.FAIL else None,
            "scope": dict(self.scope),
            "controls": {name: str(self.controls.get(name, NOT_RECORDED)) for name in controls},
            "observed": {"from": self.observed[0], "to": self.observed[1]},
            "source": self.source,
            "derived": [item.to_json() for item in self.derived],
        }


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that the adapter could not map, or would not believe."""

    pointer: str
    why: str


@dataclass(frozen=True, slots=True)
class ImageDraft:
    """What a document says an image was built from: a predicate image/v1, reported and not verified."""

    image: Digest
    predicate: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class EvidenceReading:
    """A document read by one adapter. `claims` are claim objects of the predicate."""

    adapter: tuple[str, int]
    schema: str
    root: File
    referenced: tuple[File, ...]
    not_here: tuple[Reference, ...]
    evidence_state: Mapping[str, JsonValue]
    claims: tuple[Mapping[str, JsonValue], ...]
    refused: tuple[Refusal, ...]
    findings: tuple[Finding, ...]
    bound_by: tuple[Mapping[str, JsonValue], ...]
    images: tuple[ImageDraft, ...]
    published: Mapping[str, JsonValue] | None = None

    @property
    def subject(self) -> Digest:
        """What the statement is about: the bytes of the document."""
        return self.root.digest

    @property
    def rejections(self) -> tuple[Finding, ...]:
        """The findings that reject an image as a whole."""
        return tuple(finding for finding in self.findings if finding.code is Code.IMAGE_REJECTED)

    @property
    def exit(self) -> ExitCode:
        """0 it holds together; 1 it contradicts itself or reports what rejects its image; 4 it cannot be told; 5 it claims nothing."""
        blocking = {finding.outcome for finding in self.findings if finding.severity is Severity.BLOCK}
        codes = {ExitCode.NO if outcome is Outcome.FAIL else ExitCode.CANNOT_TELL for outcome in blocking}
        return ExitCode.first_of({*codes, ExitCode.YES if self.claims else ExitCode.NOTHING})

    def predicate(self) -> dict[str, JsonValue]:
        """The predicate evidence-document/v1."""
        published: dict[str, JsonValue] = {} if self.published is None else {"published": dict(self.published)}
        return {
            "adapter": {"name": self.adapter[0], "version": self.adapter[1]},
            "schema": self.schema,
            **published,
            "files": [_file(self.root, "root"), *(_file(file, "referenced") for file in self.referenced)],
            "not_here": [{"pointer": item.pointer, "sha256": item.sha256} for item in self.not_here],
            "evidence_state": dict(self.evidence_state),
            "claims": [dict(claim) for claim in self.claims],
            "refused": [{"pointer": item.pointer, "why": item.why} for item in self.refused],
            "findings": [finding.to_json() for finding in self.findings],
            "bound_by": [dict(item) for item in self.bound_by],
        }


def _file(file: File, role: str) -> dict[str, JsonValue]:
    return {"path": file.name, "sha256": file.digest.hex, "bytes": len(file.data), "role": role}
