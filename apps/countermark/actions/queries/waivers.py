"""`waiver list` and `query waivers`: which exceptions exist, who asked, who approved, when they end, and which are orphaned."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from countermark.actions.queries.listing import Bearing, Listing, joined
from countermark.actions.queries.view import TODAY, View, When, open_view
from countermark.actions.workspace import Workspace
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.documents import load_document, read_file
from countermark.attestations.errors import InputError
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.times import Instant
from countermark.contracts.aliases import Names
from countermark.contracts.gate import is_known
from countermark.contracts.policy import WaiverRules
from countermark.contracts.requirement import HOUR_NS
from countermark.contracts.waiver import Objection, Waiver, approvals, faults, out_of_bounds, unapproved
from countermark.ledger.submission import DOCUMENT_TYPE


class State(StrEnum):
    """How a waiver stands, the first that applies."""

    INVALID = "invalid"
    TAKEN_BACK = "taken back"
    EXPIRED = "expired"
    ORPHANED = "orphaned"
    UNAPPROVED = "not approved"
    NOT_BEGUN = "not begun"
    IN_FORCE = "in force"


_NO_POLICY: Final = "no policy of that id is recorded here, and none is given"
LIVE: Final = frozenset({State.UNAPPROVED, State.NOT_BEGUN, State.IN_FORCE})
"""What is shown when not all are asked for: what waives now, or may yet."""


@dataclass(frozen=True, slots=True)
class WaiverRow:
    """A waiver; `problems` are all reasons why it does not count, `left_h` hours to its end. An unreadable one has no more than a name."""

    state: State
    name: str
    image: str
    policy: str
    requirement: str
    codes: tuple[str, ...]
    requested_by: str
    approved_by: tuple[str, ...]
    not_before: Instant | None
    expires: Instant | None
    left_h: int | None
    ticket: str
    reason: str
    entry: int
    payload: Digest
    problems: tuple[str, ...]
    bearing: Bearing

    def cells(self) -> dict[str, str]:
        """The columns for people."""
        return {
            "waiver": self.name,
            "state": self.state,
            "image": self.image,
            "policy": self.policy,
            "requirement": self.requirement,
            "codes": joined(self.codes, ", "),
            "asked by": self.requested_by,
            "approved by": joined(self.approved_by, ", ") or "nobody",
            "ends": str(self.expires) if self.expires else "",
            "left": f"{self.left_h // 24}d {self.left_h % 24}h" if self.left_h is not None else "",
            "ticket": self.ticket,
            "entry": str(self.entry),
            "problems": joined(self.problems),
        }


def waivers_listing(workspace: Workspace, when: When = TODAY, policy: Path | None = None, *, every: bool = False) -> Listing:
    """The waivers of a ledger, those that end first before the others; without `every` only what waives now or may yet.

    They are held to the policy of a file where its id is theirs, else to the newest policy of that id that `gate --record` kept.
    """
    with open_view(workspace, when) as view:
        policies = _policies(view)
        if policy:
            given = WaiverRules.of(load_document(read_file(policy), str(policy), "ReleasePolicy"))
            policies[given.policy] = given
        records, unreadable = view.records(view.reader.statements(PredicateName.WAIVER.uri))
        rows = [_row(view, payload, policies) for payload in dict.fromkeys(record.payload for record in records)]
        rows.sort(key=lambda row: (row.expires is None, row.expires or Instant(0), row.entry))
        shown = [row for row in rows if every or row.state in LIVE]
        question = "every waiver" if every else "waivers that are in force or may come to be"
        nothing = [] if rows else ["a waiver: none is recorded"]
        considered = tuple(row.bearing for row in rows)
        notes = tuple(_notes(view, rows, shown))
        return Listing(question, view.head, view.effective_time, shown, (*nothing, *unreadable), notes, considered)


def _notes(view: View, rows: list[WaiverRow], shown: list[WaiverRow]) -> Iterator[str]:
    yield f"judged by trust policy {view.trust.id}@{view.trust.version}"
    if view.trust.single_operator:
        yield "one person holds all roles: nobody can approve what another asks for, so that nothing is waived"
    if len(shown) < len(rows):
        yield f"{len(rows) - len(shown)} more are expired, taken back, orphaned or invalid; --all shows them"


def _policies(view: View) -> dict[str, WaiverRules]:
    """The newest policy of each id whose bytes the ledger keeps."""
    found: dict[str, WaiverRules] = {}
    for entry in view.notices:
        if entry.leaf.payload_type == DOCUMENT_TYPE:
            with suppress(InputError):
                rules = WaiverRules.of(load_document(entry.payload, f"entry {entry.index}", "ReleasePolicy"))
                found[rules.policy] = rules
    return found


def _row(view: View, payload: Digest, policies: dict[str, WaiverRules]) -> WaiverRow:
    record = view.records(view.reader.find_payload(payload.raw))[0][0]
    subjects = [digest for subject in record.statement.subjects for digest in subject.typed]
    evidence = view.evidence(subjects[0]) if subjects else None
    entry = evidence.find(str(payload)) if evidence else None
    try:
        waiver = Waiver.of(record.statement.predicate)
    except InputError as error:
        about = joined(subjects, ", ")
        return _unreadable(record.index, payload, about, str(error))
    if entry is None or evidence is None:
        return _unreadable(record.index, payload, "", "it is about nothing")
    own = [] if entry.is_about(waiver.subject) else ["its subject is another image than the one it names"]
    invalid = [*own, *faults(waiver, view.trust)]
    taken_back = evidence.taken_back(entry)
    rules = policies.get(waiver.policy)
    bounds = [*out_of_bounds(waiver, rules)] if rules else [Objection(_NO_POLICY, Code.UNKNOWN_NAME)]
    names = Names.of(waiver.subject, view.evidence(waiver.subject))
    unknown = [] if is_known(names, view.evidence(waiver.subject)) else ["no record of the ledger names the image"]
    missing = [*unapproved(waiver, entry, view.trust)]
    over, begun = waiver.is_over(view.effective_time), view.effective_time >= waiver.not_before
    state = _first(
        (State.INVALID, bool(invalid) or any(item.code is not Code.UNKNOWN_NAME for item in bounds)),
        (State.TAKEN_BACK, taken_back is not None),
        (State.EXPIRED, over),
        (State.ORPHANED, bool(unknown or bounds)),
        (State.UNAPPROVED, bool(missing)),
        (State.NOT_BEGUN, not begun),
    )
    problems = (*invalid, *bounds, *unknown, *missing, *([f"taken back by {taken_back.signer}"] if taken_back else []))
    return WaiverRow(
        state,
        waiver.name,
        str(waiver.subject),
        waiver.policy,
        waiver.requirement,
        tuple(map(str, waiver.codes)),
        waiver.requested_by,
        approvals(waiver, entry, view.trust),
        waiver.not_before,
        waiver.expires,
        None if over else (waiver.expires.ns - view.effective_time.ns) // HOUR_NS,
        waiver.ticket,
        waiver.reason,
        entry.index,
        payload,
        tuple(map(str, problems)),
        Bearing.FOUND if state is State.IN_FORCE else Bearing.NEGATIVE,
    )


def _first(*states: tuple[State, bool]) -> State:
    return next((state for state, holds in states if holds), State.IN_FORCE)


def _unreadable(index: int, payload: Digest, about: str, why: str) -> WaiverRow:
    return WaiverRow(
        State.INVALID, f"{payload.hex[:12]}…", about, "", "", (), "", (), None, None, None, "", "", index, payload, (why,), Bearing.NEGATIVE
    )
