"""`query signers`: who signed what, and who signed on both sides of a separation: their own build and its qualification."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from countermark.actions.queries.listing import Bearing, Listing
from countermark.actions.queries.view import TODAY, View, When, kind_of, open_view
from countermark.actions.workspace import Workspace
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.predicate_types import PredicateName
from countermark.contracts.aliases import Names
from countermark.contracts.evidence import Entry, Evidence
from countermark.ledger.audit_report import name_entries

_OWN_BUILD = ("builder", "qualifier")
"""Kept apart whatever the trust policy says: the question is who qualified their own build."""


@dataclass(frozen=True, slots=True)
class SignerRow:
    """What one principal, or one key that nobody owns, signed of one type, with one result."""

    signer: str
    roles: tuple[str, ...]
    what: str
    entries: tuple[int, ...]
    code: Code
    bearing: Bearing

    def cells(self) -> dict[str, str]:
        """The columns for people."""
        return {
            "signer": self.signer,
            "roles": ", ".join(self.roles) or "none",
            "what": self.what,
            "count": str(len(self.entries)),
            "entries": name_entries(self.entries),
            "code": self.code,
        }


@dataclass(frozen=True, slots=True)
class ConflictRow:
    """One principal on both sides: `first` and `second` are the entries signed in either role."""

    signer: str
    conflict: str
    subject: str
    first: tuple[int, ...]
    second: tuple[int, ...]
    bearing: Bearing = Bearing.NEGATIVE

    def cells(self) -> dict[str, str]:
        """The columns for people."""
        return {
            "signer": self.signer,
            "conflict": self.conflict,
            "about": self.subject,
            "first": name_entries(self.first),
            "second": name_entries(self.second),
        }


def signers_listing(workspace: Workspace, when: When = TODAY) -> Listing:
    """Who signed what, over every entry of the ledger, and the principals who signed nothing."""
    with open_view(workspace, when) as view:
        grouped: dict[tuple[str, str, Code], list[int]] = defaultdict(list)
        unreadable: list[str] = []
        for index in range(view.reader.head.size):
            entries, problems = view.entries([index])
            unreadable += problems
            for entry in entries:
                by = view.signed(entry)
                for name in by.principals or map(str, by.keys):
                    grouped[name, kind_of(entry), by.code].append(index)
        rows = [_signer_row(view, *key, entries) for key, entries in sorted(grouped.items())]
        signed = {row.signer for row in rows}
        silent = [f"anything signed by {name}" for name in view.trust.principals if name not in signed]
        return Listing("who signed what", view.head, view.effective_time, rows, (*silent, *unreadable), _notes(view))


def conflicts_listing(workspace: Workspace, when: When = TODAY) -> Listing:
    """Principals who qualified their own build, acted in two roles that the trust policy separates, or took back their own word."""
    with open_view(workspace, when) as view:
        records, unreadable = view.records(range(view.reader.head.size))
        evidence = Evidence.of(records, view.trust)
        rows = [*_both_sides(evidence), *_own_word(evidence)]
        pairs = ", ".join(" and ".join(pair) for pair in _pairs(evidence))
        nothing = [] if rows else [f"a principal on both sides ({pairs}): nobody, in {len(records)} statements"]
        notes = (f"kept apart: {pairs}", *_notes(view))
        return Listing("who signed on both sides", view.head, view.effective_time, rows, (*nothing, *unreadable), notes)


def _signer_row(view: View, signer: str, what: str, code: Code, entries: list[int]) -> SignerRow:
    roles = tuple(role.name for role in view.trust.roles.values() if signer in role.members)
    return SignerRow(signer, roles, what, tuple(entries), code, Bearing.FOUND if code is Code.OK else Bearing.NEGATIVE)


def _notes(view: View) -> tuple[str, ...]:
    """What else an auditor should know: keys that were taken away, and that nobody but the operator answers for anything."""
    lone = ["one person holds all roles: nobody else has answered for anything here"] if view.trust.single_operator else []
    return (*lone, *(str(told) for told in view.keys.told if told.code is Code.OK and told.event.event != "add"))


def _pairs(evidence: Evidence) -> list[tuple[str, str]]:
    return list(dict.fromkeys([_OWN_BUILD, *evidence.trust.separate]))


def _both_sides(evidence: Evidence) -> Iterator[ConflictRow]:
    """For each image, under all of its names, those who made statements about it in both roles of a pair."""
    about: dict[Digest, list[Entry]] = defaultdict(list)
    for entry in evidence.entries:
        for digest in _images(entry):
            about[digest].append(entry)
    told: set[ConflictRow] = set()
    for image in sorted(about):
        names = sorted(Names.of(image, evidence).passes)
        entries = {entry.index: entry for name in names for entry in about.get(name, ())}
        for pair in _pairs(evidence):
            for row in _of_pair(evidence, list(entries.values()), pair, names[0]):
                if row not in told:
                    told.add(row)
                    yield row


def _of_pair(evidence: Evidence, entries: list[Entry], pair: tuple[str, str], image: Digest) -> Iterator[ConflictRow]:
    first, second = (_made_by(evidence, entries, role) for role in pair)
    for signer in sorted(first.keys() & second.keys()):
        only_first, only_second = sorted(first[signer] - second[signer]), sorted(second[signer] - first[signer])
        if only_first and only_second:
            yield ConflictRow(signer, f"{pair[0]} and {pair[1]} of one image", str(image), tuple(only_first), tuple(only_second))


def _made_by(evidence: Evidence, entries: list[Entry], role: str) -> dict[str, set[int]]:
    """The entries of statements that a role makes, by each member of it who signed them."""
    found: dict[str, set[int]] = defaultdict(set)
    rule = evidence.trust.roles.get(role)
    for entry in entries:
        if rule and entry.statement.predicate_type in rule.makes:
            for signer in set(entry.signers) & set(rule.members):
                found[signer].add(entry.index)
    return found


def _own_word(evidence: Evidence) -> Iterator[ConflictRow]:
    """Retractions of a statement by one who had signed it."""
    by_payload = {entry.payload.hex: entry for entry in evidence.entries}
    for entry in evidence.of_type(PredicateName.RETRACTION):
        named = {hexed for subject in entry.statement.subjects for hexed in subject.digests.values()}
        for other in (by_payload[hexed] for hexed in sorted(named & by_payload.keys())):
            for signer in sorted(set(entry.signers) & set(other.signers)):
                yield ConflictRow(signer, "took back a statement of their own", str(other.payload), (other.index,), (entry.index,))


def _images(entry: Entry) -> list[Digest]:
    return [digest for subject in entry.statement.subjects for digest in subject.typed if digest.kind.is_oci]
