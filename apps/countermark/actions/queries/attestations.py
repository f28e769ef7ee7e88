"""`query attestation`: the statements that name a digest, and what each says, read into typed form where its type is a standard one."""

from collections.abc import Mapping
from dataclasses import dataclass

from countermark.actions.queries.candidates import naming
from countermark.actions.queries.listing import Bearing, Listing, joined
from countermark.actions.queries.named import Named
from countermark.actions.queries.view import TODAY, View, When, open_view, short_type
from countermark.actions.workspace import Workspace
from countermark.attestations.codes import Code, Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.foreign_predicates import Reading
from countermark.attestations.located import JsonValue
from countermark.attestations.outcomes import outcome_of
from countermark.attestations.statement import Statement
from countermark.ledger.read import Entry


@dataclass(frozen=True, slots=True)
class AttestationRow:
    """A statement. `says` are the fields of a standard predicate, none for other types; `problem` is why one cannot be read.

    `outcome` is computed, never the signer's roll-up; `names_it_at` are pointers into the statement, or `payload`.
    """

    index: int
    predicate_type: str
    subjects: tuple[str, ...]
    names_it_at: tuple[str, ...]
    outcome: Outcome | None
    says: Mapping[str, JsonValue] | None
    problem: str | None
    in_short: str
    signer: str
    code: Code
    payload: Digest
    bearing: Bearing

    def cells(self) -> dict[str, str]:
        """The columns for people."""
        return {
            "entry": str(self.index),
            "what": short_type(self.predicate_type),
            "outcome": self.outcome or "",
            "says": self.problem or self.in_short,
            "names it at": joined(self.names_it_at[:2], ", "),
            "signer": f"{self.signer} [{self.code}]",
            "payload": str(self.payload),
        }


def attestation_listing(workspace: Workspace, text: str, predicate_type: str | None = None, when: When = TODAY) -> Listing:
    """Every statement that names a digest as a subject, anywhere in its predicate, or as its own payload; of one type, if it is given.

    The digest may be that of a material or of a model's file. Raises what `open_view` does, and `InputError` for text that is no digest.
    """
    with open_view(workspace, when) as view:
        named = Named.resolve(view.reader, text)
        found = naming(view, [named.hex])
        indices = found.indices | {hit.index for hit in view.reader.search_prefix(named.hex) if hit.hex == named.hex}
        entries, unreadable = view.entries(indices)
        pairs = ((entry, statement) for entry in entries if (statement := entry.statement))
        wanted = ((entry, statement) for entry, statement in pairs if predicate_type in (None, statement.predicate_type))
        rows = [_row(view, entry, statement, places) for entry, statement in wanted if (places := _places(named, entry, statement))]
        of_type = f" of type {predicate_type}" if predicate_type else ""
        missing = [] if rows else [f"{named}: no statement{of_type} names it [{Code.SUBJECT_UNKNOWN}]"]
        missing += [f"whether entry {index} names it: its payload is not here" for index in found.withheld]
        question = f"statements{of_type} that name {named}"
        return Listing(question, view.head, view.effective_time, rows, (*missing, *unreadable))


def _places(named: Named, entry: Entry, statement: Statement) -> tuple[str, ...]:
    own = named.kind in (DigestKind.PAYLOAD, None) and entry.digest.hex == named.hex
    return (*(["payload"] if own else []), *named.places(statement))


def _row(view: View, entry: Entry, statement: Statement, places: tuple[str, ...]) -> AttestationRow:
    reading, signed = Reading.of(statement.predicate_type, statement.predicate), view.signed(entry)
    computed = outcome_of(statement.predicate_type, statement.predicate)
    outcome = reading.outcome if reading.outcome is not None else computed
    return AttestationRow(
        entry.index,
        statement.predicate_type,
        tuple(f"{name}:{value}" for subject in statement.subjects for name, value in subject.digests.items()),
        places,
        outcome,
        reading.to_json(),
        reading.problem,
        reading.claim.brief() if reading.claim else "",
        str(signed),
        signed.code,
        entry.digest,
        Bearing.FOUND if outcome in (None, Outcome.PASS) else Bearing.NEGATIVE,
    )
