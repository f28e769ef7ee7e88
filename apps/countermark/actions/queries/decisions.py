"""`query decisions`: every decision that was recorded, whether it may be believed, and by which documents it was made."""

from collections.abc import Iterator
from dataclasses import dataclass

from countermark.actions.past_decisions import PastDecision
from countermark.actions.queries.listing import Bearing, Listing, joined
from countermark.actions.queries.named import Named
from countermark.actions.queries.view import TODAY, View, When, open_view
from countermark.actions.workspace import Workspace
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.errors import CannotTellError, InputError
from countermark.attestations.located import as_integer, as_object
from countermark.attestations.times import Instant


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """A decision as it was recorded; `problems` are reasons not to believe it. `channel` is that of the policy, where that is known."""

    index: int
    id: str
    verdict: str
    mode: str
    subject: str
    channel: str | None
    policy: str
    effective_time: str
    admitted: Instant
    evaluated: int | None
    satisfied: int | None
    codes: tuple[str, ...]
    waived: tuple[str, ...]
    signer: str
    code: Code
    payload: Digest
    problems: tuple[str, ...]
    bearing: Bearing

    def cells(self) -> dict[str, str]:
        """The columns for people."""
        return {
            "entry": str(self.index),
            "admitted": str(self.admitted.whole_seconds()),
            "verdict": joined([self.verdict, "warn only" if self.mode == "warn" else None], ", "),
            "image": self.subject,
            "channel": self.channel or "not known",
            "policy": self.policy,
            "codes": joined((*self.codes, *(f"waived by {name}" for name in self.waived)), ", "),
            "signer": f"{self.signer} [{self.code}]",
            "decision": self.id,
            "problems": joined(self.problems),
        }


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which decisions are asked for: of a channel, admitted since an instant, about an image."""

    channel: str | None = None
    since: Instant | None = None
    subject: str | None = None

    def __str__(self) -> str:
        parts = (("of channel", self.channel), ("since", self.since), ("about", self.subject))
        return joined(["every decision", *(f"{word} {value}" for word, value in parts if value)], " ")


def decisions_listing(workspace: Workspace, wanted: Wanted, when: When = TODAY) -> Listing:
    """The recorded decisions; a decision whose channel nobody can tell is named apart when one channel is asked for."""
    with open_view(workspace, when) as view:
        subject = Named.resolve(view.reader, wanted.subject) if wanted.subject else None
        found, unreadable = view.decisions()
        asked = [item for item in found if _is_about(item, subject) and (wanted.since is None or item.record.admitted >= wanted.since)]
        rows = [_row(view, item) for item in asked]
        shown = [row for row in rows if wanted.channel in (None, row.channel)]
        unknown = [row for row in rows if wanted.channel and row.channel is None]
        missing = [f"the channel of entry {row.index}, {row.verdict}: the bytes of its policy are not in the ledger" for row in unknown]
        nothing = [] if shown else [f"{wanted}: none is recorded"]
        return Listing(str(wanted), view.head, view.effective_time, shown, (*nothing, *missing, *unreadable))


def _is_about(decision: PastDecision, subject: Named | None) -> bool:
    return subject is None or any(place.startswith("/subject/") for place in subject.places(decision.record.statement))


def _row(view: View, decision: PastDecision) -> DecisionRow:
    record, core = decision.record, decision.core
    problems = tuple(_problems(view, decision))
    policy = decision.input("policy")
    allowed = decision.verdict == "ALLOW" and not problems
    return DecisionRow(
        record.index,
        decision.id,
        decision.verdict,
        str(core.get("mode")),
        str(decision.subject or core.get("subject")),
        _channel(view, decision),
        f"{policy.id}@{policy.version}" if policy else "not named",
        str(core.get("effective_time")),
        record.admitted,
        as_integer(core.get("evaluated")),
        as_integer(core.get("satisfied")),
        tuple(sorted({str(item.get("code")) for item in decision.requirements})),
        tuple(str(item["waived_by"]) for item in decision.requirements if item.get("waived_by") is not None),
        joined(record.signers, ", ") or "unknown",
        record.code,
        record.payload,
        problems,
        Bearing.FOUND if allowed else Bearing.NEGATIVE,
    )


def _channel(view: View, decision: PastDecision) -> str | None:
    """None where the bytes of the policy are not in the ledger, or are no policy."""
    try:
        return str(decision.document(view.reader, "policy", "ReleasePolicy").spec["channel"])
    except (InputError, CannotTellError):
        return None


def _problems(view: View, decision: PastDecision) -> Iterator[str]:
    """Who signed it, what it is about, and whether this log ever was what it says that it was decided at."""
    record = decision.record
    if record.code is not Code.OK:
        yield f"nobody who signed it may decide [{record.code}]"
    if decision.subject is None or not any(decision.subject in subject.typed for subject in record.statement.subjects):
        yield f"its core is about another image than its subject [{Code.SUBJECT_MISMATCH}]"
    ledger = as_object(decision.core.get("ledger"))
    size, root = as_integer(ledger.get("size")), ledger.get("root")
    if ledger.get("origin") != view.reader.head.origin:
        yield f"it was decided over another ledger, {ledger.get('origin')}"
    elif size is None or not 0 < size <= record.index or view.reader.root_at(size).hex() != root:
        yield f"this ledger never had the size and root that it names [{Code.SPLIT_VIEW}]"
