"""`query impact`: what rests on something that turned out bad, which images it concerns, and whether their decisions would change."""

from dataclasses import dataclass
from typing import Literal

from countermark.actions.gate import Asked
from countermark.actions.past_decisions import PastDecision
from countermark.actions.queries.bad import Bad, BadChecker, BadKey, BadRevision, BadStatement
from countermark.actions.queries.judged_by import documents
from countermark.actions.queries.listing import Bearing, Listing, joined
from countermark.actions.queries.named import Named
from countermark.actions.queries.reach import Reach
from countermark.actions.queries.view import View, When, open_view, short_type
from countermark.actions.workspace import Workspace
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import CannotTellError, InputError, Location, NothingError, UsageError
from countermark.contracts.policy import ReleasePolicy
from countermark.ledger.audit_report import name_entries

What = Literal["commit", "model-revision", "key", "checker", "payload"]


@dataclass(frozen=True, slots=True)
class TouchedRow:
    """A statement that rests on the bad thing, and why."""

    index: int
    what: str
    about: tuple[str, ...]
    why: str
    signer: str
    code: Code
    payload: Digest
    bearing: Bearing = Bearing.FOUND

    def cells(self) -> dict[str, str]:
        """The columns for people."""
        return {
            "entry": str(self.index),
            "what": self.what,
            "about": joined(self.about, ", "),
            "why": self.why,
            "signer": f"{self.signer} [{self.code}]",
            "payload": str(self.payload),
        }


@dataclass(frozen=True, slots=True)
class ImageRow:
    """An image that is concerned, and a decision about it: as recorded, as it is now, and as if all that is touched were taken back.

    `falls` are the requirements that hold now and would not hold then.
    """

    image: Digest
    why: str
    policy: str
    recorded_entry: int | None
    recorded: str | None
    now: str
    without: str
    changes: bool
    falls: tuple[str, ...]
    bearing: Bearing

    def cells(self) -> dict[str, str]:
        """The columns for people."""
        recorded = f"{self.recorded} at entry {self.recorded_entry}" if self.recorded_entry is not None else "not recorded"
        return {
            "image": str(self.image),
            "why": self.why,
            "policy": self.policy,
            "recorded": recorded,
            "now": self.now,
            "without it": self.without,
            "changes": "yes" if self.changes else "no",
            "falls": joined(self.falls, ", "),
        }


def impact_listing(workspace: Workspace, asked: Asked, what: What, value: str) -> Listing:
    """What rests on a commit, model revision, key, checker version or statement, directly or through others, and what that changes.

    Decisions are those of `asked`'s policy, or without one the last recorded one about each image under each policy. `InputError` or
    `UsageError` for a value that names nothing.
    """
    by = documents(workspace, asked) if asked.policy else None
    with open_view(workspace, When.of(asked), by.trust if by else None) as view:
        bad = _bad(view, what, value)
        reach = Reach(view, bad)
        touched = [_touched(reach, index) for index in sorted(reach.touched)]
        judged = _Judged(view, reach)
        if by:
            judged.under(by.policy)
        else:
            judged.as_recorded()
        missing = [] if touched else [f"{bad}: no statement names it"]
        missing += [*judged.missing, *reach.unreadable]
        notes = [f"decisions are judged by trust policy {view.trust.id}@{view.trust.version}"]
        notes += [*_signed_besides(bad, reach), *_told_of(bad, view)]
        return Listing(f"what rests on {bad}", view.head, view.effective_time, [*touched, *judged.rows], tuple(missing), tuple(notes))


def _signed_besides(bad: Bad, reach: Reach) -> list[str]:
    """What a key signed that is no statement: documents, which are named by their digest whoever signed them, and key events."""
    others = bad.signed - reach.touched.keys() if isinstance(bad, BadKey) else set()
    return [f"it also signed {name_entries(others)}, which are no statements"] if others else []


def _told_of(bad: Bad, view: View) -> list[str]:
    """What the log itself says of a key."""
    told = [item for item in view.keys.told if isinstance(bad, BadKey) and item.event.key_sha256 == bad.key.raw]
    return [f"{item}{'' if item.code is Code.OK else f' [does not count: {item.code}]'}" for item in told]


def _bad(view: View, what: What, value: str) -> Bad:
    at = Location(f"--{what}")
    if what == "checker":
        return _checker(value, at)
    if what == "key":
        return BadKey.of(view, _typed(value, DigestKind.SPKI, at))
    if what == "payload":
        return BadStatement(_typed(value, DigestKind.PAYLOAD, at))
    return BadRevision(Named.of(_typed(value, DigestKind.GIT_COMMIT, at)), source=what == "commit")


def _typed(text: str, kind: DigestKind, at: Location) -> Digest:
    """A digest of one kind, written with it, or as its hex alone."""
    bare = text.removeprefix("sha256:")
    digest = Digest.parse(text if bare == text and ":" in text else f"{kind}:{bare}" if kind.is_git else f"{kind}:sha256:{bare}", at=at)
    if digest.kind is not kind:
        raise InputError(Code.BAD_DIGEST, f"{text} is no {kind}", at=at, fix=f"give a {kind}")
    return digest


def _checker(text: str, at: Location) -> BadChecker:
    name, _, version = text.rpartition("@")
    if not name or not (version.isascii() and version.isdecimal()):
        raise UsageError(Code.UNKNOWN_NAME, f"{text!r} is not of the form NAME@VERSION", at=at, fix="write it like pins.agree@1")
    return BadChecker(name, int(version))


def _touched(reach: Reach, index: int) -> TouchedRow:
    item = reach.touched[index]
    record = item.record
    about = tuple(str(digest) for subject in record.statement.subjects for digest in subject.typed)
    what = short_type(record.statement.predicate_type)
    return TouchedRow(index, what, about, item.why, joined(record.signers, ", ") or "unknown", record.code, record.payload)


class _Judged:
    """The decisions about the concerned images, with and without what is touched."""

    def __init__(self, view: View, reach: Reach) -> None:
        self.rows: list[ImageRow] = []
        self.missing: list[str] = []
        self._view = view
        self._reach = reach
        self._taken_back = {item.record.payload for item in reach.touched.values()}

    def under(self, policy: ReleasePolicy) -> None:
        """Under one policy for all images."""
        for image in self._reach.images:
            self._judge(image, policy, None)

    def as_recorded(self) -> None:
        """Under the policies by which they were decided."""
        recorded, unreadable = self._view.decisions()
        self.missing += unreadable
        for image in self._reach.images:
            about = [decision for decision in recorded if decision.subject == image]
            last = {policy.id if (policy := decision.input("policy")) else "": decision for decision in about}
            if not last:
                self.missing.append(f"a decision about {image}: none is recorded, so whether one changes is not known; give --policy FILE")
            for decision in last.values():
                try:
                    self._judge(image, decision.policy(self._view.reader), decision)
                except (InputError, CannotTellError, NothingError) as error:
                    self.missing.append(f"whether the decision of entry {decision.record.index} about {image} changes: {error.message}")

    def _judge(self, image: Digest, policy: ReleasePolicy, recorded: PastDecision | None) -> None:
        now = self._view.decide(image, policy)
        without = self._view.decide(image, policy, self._taken_back)
        left = {result.id for result in without.requirements if result.satisfied or result.waived_by}
        falls = tuple(result.id for result in now.requirements if (result.satisfied or result.waived_by) and result.id not in left)
        changes = now.verdict != without.verdict
        self.rows.append(
            ImageRow(
                image,
                self._reach.tainted.get(image, "something touched is about it"),
                f"{policy.id}@{policy.version}",
                recorded.record.index if recorded else None,
                recorded.verdict if recorded else None,
                now.verdict,
                without.verdict,
                changes,
                falls,
                Bearing.NEGATIVE if changes or falls else Bearing.FOUND,
            )
        )
