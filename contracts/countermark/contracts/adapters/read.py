"""From the bytes of an outside document to what it claims: the one function that commands, tests and audits share.

It is pure: the same files, bindings and adapter give the same reading.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from countermark.attestations.codes import Code, Outcome, Severity
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.contracts.adapters.base import Adapter
from countermark.contracts.adapters.bindings import Binding, Bindings
from countermark.contracts.adapters.fields import Field, File, shown
from countermark.contracts.adapters.notes import Case, Notes
from countermark.contracts.adapters.reading import EvidenceReading, Reference
from countermark.contracts.adapters.registry import adapter_for
from countermark.contracts.catalogue import Catalogue


def read_document(
    root: File, referenced: Mapping[str, File], catalogue: Catalogue, binds: Iterable[Binding] = (), adapter: Adapter | None = None
) -> EvidenceReading:
    """Read a document. `referenced` are files at hand by name relative to its folder; those that it does not refer to are left out.

    Raises `InputError`: SCHEMA_INVALID and its like for what is no JSON, RECORD_UNMAPPED for a schema that no adapter reads,
    RECORD_CONTRADICTED for a binding against the record, UNKNOWN_NAME for a binding that nothing takes.
    """
    document, bindings = Field.of(root), Bindings(binds)
    reader = adapter_for(document, adapter)
    resolved = resolve(reader.references(document), referenced)
    notes = Notes(findings=list(_unresolved(document, resolved)))
    reader.read(Case(document, resolved.files, bindings), notes)
    claims = tuple(_claims(notes, bindings, catalogue))
    bindings.check_used()
    return EvidenceReading(
        (reader.name, reader.version),
        reader.schema(document),
        root,
        tuple(dict.fromkeys(resolved.files.values())),
        resolved.not_here,
        reader.evidence_state(document),
        claims,
        tuple(dict.fromkeys(notes.refused)),
        tuple(dict.fromkeys(notes.findings)),
        tuple(item.to_json() for item in bindings.items),
        tuple(notes.images),
        reader.published(document),
    )


@dataclass(frozen=True, slots=True)
class Resolved:
    """References to the files at hand by their pointers, those without one, and files that lie in the place of one and are others."""

    files: Mapping[str, File]
    missing: tuple[Reference, ...]
    others: Mapping[str, File]

    @property
    def not_here(self) -> tuple[Reference, ...]:
        """The missing files that have a digest, each digest once."""
        return tuple({item.sha256: item for item in reversed(self.missing) if item.sha256}.values())[::-1]


def resolve(references: Iterable[Reference], files: Mapping[str, File]) -> Resolved:
    """Find the file of each reference: by its digest, wherever it lies; by its name alone only where the schema states no digests."""
    by_digest = {file.digest.hex: file for file in reversed(list(files.values()))}
    found: dict[str, File] = {}
    others: dict[str, File] = {}
    missing: list[Reference] = []
    for reference in references:
        beside = files.get(reference.name or "")
        here = beside if reference.by_name else by_digest.get(reference.sha256 or "")
        if here:
            found[reference.pointer] = here
            continue
        missing.append(reference)
        if beside:
            others[reference.pointer] = beside
    return Resolved(found, tuple(missing), others)


def references_of(root: File, adapter: Adapter | None = None) -> Sequence[Reference]:
    """The files that a document refers to; raises `InputError` as `read_document` does."""
    document = Field.of(root)
    return tuple(adapter_for(document, adapter).references(document))


def _unresolved(document: Field, resolved: Resolved) -> Iterable[Finding]:
    """A finding for each named file that is another than its digest says, or that the document rests on and that is not at hand."""
    for reference in resolved.missing:
        at, other = document.find(reference.pointer), resolved.others.get(reference.pointer)
        if other and reference.sha256:
            yield Finding(
                Code.RECORD_CONTRADICTED,
                Outcome.FAIL,
                f"give the {other.name} that the record was made of",
                checker="evidence.refs-resolve",
                location=at.at,
                required=reference.sha256,
                observed=f"{other.digest.hex}, the SHA-256 of {other.name}",
            )
        elif reference.name and not reference.by_name:
            yield Finding(
                Code.REF_NOT_HERE,
                Outcome.NOT_RUN,
                f"give {reference.name} beside the record" if reference.sha256 else f"state the SHA-256 of {reference.name}",
                Severity.BLOCK,
                "evidence.refs-resolve",
                at.at,
                required=f"{reference.name} by its SHA-256",
                observed="not at hand" if reference.sha256 else f"no SHA-256 is stated: {shown(at.value)}",
            )


def _claims(notes: Notes, bindings: Bindings, catalogue: Catalogue) -> Iterable[dict[str, JsonValue]]:
    for claim in notes.claims:
        scope, derived = bindings.scope(claim.scope)
        controls = (
            catalogue.capabilities[claim.capability].controls if claim.capability in catalogue.capabilities else tuple(claim.controls)
        )
        yield replace(claim, scope=scope, derived=(*claim.derived, *derived)).to_json(controls)
