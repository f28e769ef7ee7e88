"""`query history`: every entry that names a digest, in the order of the log, and what was said of those entries later."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from countermark.actions.queries.candidates import naming
from countermark.actions.queries.listing import Bearing, Listing, joined
from countermark.actions.queries.named import Named
from countermark.actions.queries.view import TODAY, View, When, kind_of, open_view
from countermark.actions.workspace import Workspace
from countermark.attestations.codes import Code, Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError
from countermark.attestations.located import as_object
from countermark.attestations.outcomes import outcome_of
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import Statement
from countermark.attestations.times import Instant
from countermark.ledger.key_event import KeyEvent
from countermark.ledger.leaf import EntryKind
from countermark.ledger.read import Entry

_AGAINST: Final = {
    PredicateName.REJECTION.uri: "rejects",
    PredicateName.RETRACTION.uri: "retracts",
    PredicateName.SUPERSESSION.uri: "supersedes",
}
_GOOD: Final = frozenset({None, Outcome.PASS, "ALLOW", "PASSED"})
_SHOWN_PLACES: Final = 3


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One entry. `names_it_at` are pointers into the statement, or `payload`, `signature`, `key`, or what it does to another entry."""

    index: int
    admitted: Instant
    what: str
    outcome: str | None
    names_it_at: tuple[str, ...]
    signer: str
    code: Code
    payload: Digest
    bearing: Bearing

    def cells(self) -> dict[str, str]:
        """The columns for people."""
        more = len(self.names_it_at) - _SHOWN_PLACES
        return {
            "entry": str(self.index),
            "admitted": str(self.admitted.whole_seconds()),
            "what": self.what,
            "outcome": self.outcome or "",
            "names it at": joined((*self.names_it_at[:_SHOWN_PLACES], f"and {more} more" if more > 0 else None), ", "),
            "signer": f"{self.signer} [{self.code}]",
            "payload": str(self.payload),
        }


def history_listing(workspace: Workspace, text: str, when: When = TODAY) -> Listing:
    """Every entry that names a digest of any kind: as subject, inside the predicate, as its payload, its key or its signer's key."""
    with open_view(workspace, when) as view:
        named = Named.resolve(view.reader, text)
        found = naming(view, [named.hex])
        indices = found.indices | _by_rows(view, named) | {entry.index for entry in view.notices}
        entries, unreadable = view.entries(indices)
        rows = [row for row in (_row(view, entry, _places(entry, named)) for entry in entries) if row.names_it_at]
        rows += _said_of(view, rows)
        missing = [] if rows else [f"{named}: no entry names it [{Code.SUBJECT_UNKNOWN}]"]
        missing += [f"whether entry {index} names it: its payload is not here" for index in found.withheld]
        ordered = sorted(rows, key=lambda row: row.index)
        return Listing(f"every entry that names {named}", view.head, view.effective_time, ordered, (*missing, *unreadable))


def _by_rows(view: View, named: Named) -> set[int]:
    return {hit.index for hit in view.reader.search_prefix(named.hex) if hit.hex == named.hex}


def _places(entry: Entry, named: Named) -> tuple[str, ...]:
    """Where an entry names it, by what the proven bytes say; the derived rows have done their part."""
    statement = entry.statement
    found = list(named.places(statement)) if statement else _places_in_document(entry, named)
    if named.kind in (DigestKind.PAYLOAD, None) and entry.digest.hex == named.hex:
        found.insert(0, "payload")
    if named.kind in (DigestKind.SPKI, None) and any(item.key_sha256.hex() == named.hex for item in entry.leaf.signatures):
        found.insert(0, "signature")
    return tuple(found)


def _places_in_document(entry: Entry, named: Named) -> list[str]:
    """A document is named by its own digest, a key event by its key; the text of either may name anything."""
    if named.kind in (DigestKind.FILE, None) and entry.leaf.kind is EntryKind.POLICY and entry.digest.hex == named.hex:
        return ["document"]
    if named.kind in (DigestKind.SPKI, None) and entry.leaf.kind is EntryKind.KEY_EVENT and _key(entry) == named.hex:
        return ["key"]
    return ["text"] if named.hex.encode() in entry.payload else []


def _key(entry: Entry) -> str:
    try:
        return KeyEvent.parse(entry.payload).key_sha256.hex()
    except InputError:
        return ""


def _row(view: View, entry: Entry, places: tuple[str, ...]) -> HistoryRow:
    statement, signed = entry.statement, view.signed(entry)
    outcome = _outcome(statement) if statement else None
    against = statement is not None and (statement.predicate_type in _AGAINST or outcome not in _GOOD)
    return HistoryRow(
        entry.index,
        Instant.from_ms(entry.leaf.admitted_ms),
        kind_of(entry),
        outcome,
        places,
        str(signed),
        signed.code,
        entry.digest,
        Bearing.NEGATIVE if against else Bearing.FOUND,
    )


def _outcome(statement: Statement) -> str | None:
    """The computed outcome of a statement, or the verdict of a decision or summary."""
    predicate = as_object(statement.predicate)
    core = predicate.get("core")
    verdict = core.get("verdict") if isinstance(core, dict) else predicate.get("verificationResult")
    found = outcome_of(statement.predicate_type, predicate)
    return found if found is not None else verdict if isinstance(verdict, str) else None


def _said_of(view: View, rows: Sequence[HistoryRow]) -> list[HistoryRow]:
    """The notices about these entries, which name the payload and perhaps not the digest, and the notices about those in turn."""
    about = {row.payload.hex: row.index for row in rows}
    listed = {row.index for row in rows}
    waiting = [(entry, statement) for entry in view.notices if (statement := entry.statement) and statement.predicate_type in _AGAINST]
    found: list[HistoryRow] = []
    while new := [(entry, does) for entry, statement in waiting if entry.index not in listed and (does := _does(statement, about))]:
        found += [_row(view, entry, does) for entry, does in new]
        about.update((entry.digest.hex, entry.index) for entry, _ in new)
        listed |= {entry.index for entry, _ in new}
    return found


def _does(statement: Statement, about: Mapping[str, int]) -> tuple[str, ...]:
    named = [hexed for subject in statement.subjects for hexed in subject.digests.values() if hexed in about]
    return tuple(f"{_AGAINST[statement.predicate_type]} entry {about[hexed]}" for hexed in named)
