"""`ledger report`: an overview of a ledger for people who do not use the command line. It reads and audits everything."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from countermark.actions.audit import audit_ledger
from countermark.actions.dossier import Dossier, dossier
from countermark.actions.gate import Asked, Documents
from countermark.actions.queries.candidates import images
from countermark.actions.queries.decisions import DecisionRow, Wanted, decisions_listing
from countermark.actions.queries.judged_by import rules_only
from countermark.actions.queries.listing import Listing
from countermark.actions.queries.signers import conflicts_listing, signers_listing
from countermark.actions.queries.view import View, When, kind_of, open_view
from countermark.actions.workspace import Workspace
from countermark.attestations.codes import Code, ExitCode, Status
from countermark.attestations.digests import Digest
from countermark.attestations.located import as_object
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.times import Instant
from countermark.contracts.decision import DecisionHead
from countermark.contracts.evidence import Entry, Evidence
from countermark.contracts.requirement import EvidenceRules
from countermark.ledger.audit_report import AuditReport
from countermark.ledger.queries import Quarantined

MOST_IMAGES: Final = 200
"""More images than this are named, and not judged."""

_NEGATIVE: Final = (PredicateName.REJECTION, PredicateName.RETRACTION, PredicateName.SUPERSESSION)
_RUNS: Final = (PredicateName.RESTORE_RUN, PredicateName.BENCHMARK_RUN)


@dataclass(frozen=True, slots=True)
class Image:
    """One image under all of its names: what it is worth, and the last decision that was recorded about it."""

    dossier: Dossier
    statuses: Mapping[Status, int]
    decision: DecisionRow | None

    @property
    def rejected(self) -> bool:
        """Whether it is rejected as a whole, in whatever scope."""
        return any(result.code is Code.IMAGE_REJECTED for answered in self.dossier.answers for result in answered.results)


@dataclass(frozen=True, slots=True)
class Overview:
    """A ledger at one head. `kinds` counts entries, `days` counts them by the UTC day of their admission; `negative` are rejections,
    retractions and supersessions, `runs` are restores and benchmarks; `unjudged` are the images beyond `MOST_IMAGES`."""

    audit: AuditReport
    head: DecisionHead
    effective_time: Instant
    begun: Instant
    note: str
    documents: Documents
    rules: EvidenceRules
    kinds: Mapping[str, int]
    days: Mapping[str, int]
    images: tuple[Image, ...]
    unjudged: tuple[Digest, ...]
    negative: tuple[Entry, ...]
    runs: tuple[Entry, ...]
    signers: Listing
    conflicts: Listing
    decisions: Listing
    quarantined: tuple[Quarantined, ...]
    unreadable: tuple[str, ...]

    @property
    def exit(self) -> ExitCode:
        """That of the audit: an overview of what contradicts itself is no yes."""
        return self.audit.exit


def ledger_overview(workspace: Workspace, asked: Asked, progress: Callable[[int, int], None] | None = None) -> Overview:
    """Audit a ledger, then gather what is in it; `asked` holds the policy, if any, whose rules of evidence the images are judged by.

    Raises what `open_view` does.
    """
    audited = audit_ledger(workspace, [], progress=progress)
    by, rules = rules_only(workspace, asked)
    with open_view(workspace, When.of(asked), by.trust) as view:
        head = DecisionHead(view.head.origin, view.head.size, view.head.root, view.head.notices, audited.protected_to)
        then = When(at=Instant.from_ms(view.reader.head.admitted_ms))
        decisions = decisions_listing(workspace, Wanted(), then)
        known = tuple(images(view))
        judged = tuple(_images(view, known[:MOST_IMAGES], by, rules, decisions))
        admitted = Counter[str]()
        kinds = Counter[str]()
        for index in range(head.size):
            for entry in view.entries([index])[0]:
                admitted[str(Instant.from_ms(entry.leaf.admitted_ms))[:10]] += 1
                kinds[kind_of(entry)] += 1
        negative, unreadable = _statements(view, _NEGATIVE)
        runs, more = _statements(view, _RUNS)
        return Overview(
            audited,
            head,
            view.effective_time,
            Instant.from_ms(view.reader.genesis.created_ms),
            view.reader.head.note,
            by,
            rules,
            dict(kinds.most_common()),
            dict(sorted(admitted.items())),
            judged,
            known[MOST_IMAGES:],
            negative,
            runs,
            signers_listing(workspace, then),
            conflicts_listing(workspace, then),
            decisions,
            view.reader.quarantined(),
            (*unreadable, *more),
        )


def _images(view: View, known: tuple[Digest, ...], by: Documents, rules: EvidenceRules, decisions: Listing) -> Iterator[Image]:
    """Each image once: a digest that is proven to be a name of one before it is told there."""
    last = {row.subject: row for row in decisions.rows if isinstance(row, DecisionRow)}
    seen: set[Digest] = set()
    for digest in known:
        if digest in seen:
            continue
        found = dossier(view, digest, by.policy, rules)
        seen |= found.same
        told = [row for name in sorted(found.same) if (row := last.get(str(name)))]
        yield Image(found, _statuses(found), max(told, key=lambda row: row.index, default=None))


def _statuses(found: Dossier) -> Counter[Status]:
    """How many tested cells have each status; where none was tested, what is true of the whole image."""
    tested = [
        result.status
        for answered in found.answers
        for result, here in zip(answered.results, answered.tested, strict=True)
        if here or result.status is Status.REJECTED
    ]
    return Counter(tested)


def _statements(view: View, names: tuple[PredicateName, ...]) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    records, unreadable = view.records(index for name in names for index in view.reader.statements(name.uri))
    return Evidence.of(records, view.trust).entries, unreadable


def about(entry: Entry) -> str:
    """What a negative record is about."""
    named = [str(digest) for subject in entry.statement.subjects for digest in subject.typed]
    return ", ".join(named) or "a digest of no kind"


def reason(entry: Entry) -> str:
    """Why, as it says."""
    return str(as_object(entry.statement.predicate).get("reason") or "no reason is given")
