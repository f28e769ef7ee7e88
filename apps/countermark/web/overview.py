"""The page of a ledger: how whole it is, what its images are worth, what speaks against them, who signed, what happened when."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from countermark.actions.ledger_report import Image, Overview, about, reason
from countermark.actions.queries.listing import Bearing, Listing
from countermark.actions.queries.view import short_type
from countermark.attestations.codes import ExitCode, Severity, Status
from countermark.attestations.located import JsonValue
from countermark.web.cards import cards
from countermark.web.charts import Chart, charts
from countermark.web.matrix import Matrix, matrix
from countermark.web.rendering import render
from countermark.web.waterfall import WIDTH
from countermark.web.wording import MEANINGS, Badge, code_badge, outcome_badge, status_badge

_MOST_DAYS: Final = 62
_WORDS: Final = {ExitCode.YES: "whole", ExitCode.TAMPERED: "tampered", ExitCode.NOTHING: "nothing audited"}


@dataclass(frozen=True, slots=True)
class Bar:
    """A labelled count, and its length in thousandths of the longest."""

    label: str
    count: int
    width: int


@dataclass(frozen=True, slots=True)
class Shown:
    """One image as the template reads it. `statuses` counts tested cells by status."""

    anchor: str
    subject: str
    names: tuple[str, ...]
    statuses: tuple[tuple[Badge, str], ...]
    verdict: Badge | None
    decision: str
    matrix: Matrix
    silent: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under the headings that any of them fills; `bearing` says what they are to the question."""

    bearing: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def overview_page(overview: Overview, made: Mapping[str, JsonValue]) -> str:
    """The page; `made` says which program made it, and when."""
    images = [_image(image, f"image-{n}") for n, image in enumerate(overview.images)]
    return render(
        "overview.html",
        o=overview,
        made=made,
        whole=_whole(overview),
        protected=_protected(overview),
        findings=[(finding, finding.severity is Severity.BLOCK) for finding in overview.audit.findings],
        images=images,
        untested=[image for image in images if not image.statuses],
        rules=_rules(overview),
        kinds=_bars(overview.kinds),
        days=_bars(_grouped(overview.days)),
        negative=[
            (entry.index, short_type(entry.statement.predicate_type), about(entry), reason(entry), entry.signer, code_badge(entry.code))
            for entry in overview.negative
        ],
        signers=tuple(_tables(overview.signers)),
        conflicts=tuple(_tables(overview.conflicts)),
        decisions=tuple(_tables(overview.decisions)),
        charts=_charts(overview),
        cards=cards((image.dossier for image in overview.images), (*overview.negative, *overview.runs)),
        meanings=MEANINGS,
        badge=status_badge,
    )


def _whole(overview: Overview) -> Badge:
    word = _WORDS.get(overview.exit, "not settled")
    return Badge(word, "✓", "qualified") if overview.exit is ExitCode.YES else Badge(word, "✗", "rejected")


def _protected(overview: Overview) -> str:
    """How far somebody else could notice a removal."""
    audit = overview.audit
    if audit.protected_to:
        return f"entry {audit.protected_to - 1}, by checkpoints that {', '.join(audit.held_by)} hold"
    return "nothing yet: nobody outside is known to hold a checkpoint, so what is rewritten with the log's own key would not show"


def _rules(overview: Overview) -> str:
    rules, policy = overview.rules, overview.documents.policy
    told = f"signed by {rules.signed_by}, basis {' or '.join(sorted(rules.basis))}, greatest age {rules.max_age_text}"
    return told if policy.id == "adhoc" else f"{told}, as policy {policy.id}@{policy.version} asks"


def _image(image: Image, anchor: str) -> Shown:
    found = image.dossier
    return Shown(
        anchor,
        str(found.subject),
        tuple(map(str, found.names)),
        tuple(_counts(image)),
        outcome_badge(image.decision.verdict) if image.decision else None,
        f"{image.decision.policy}, entry {image.decision.index}" if image.decision else "",
        matrix(found, anchor),
        found.silent,
    )


def _counts(image: Image) -> Iterator[tuple[Badge, str]]:
    if image.rejected:
        yield status_badge(Status.REJECTED), "the whole image"
    else:
        yield from ((status_badge(status), str(image.statuses[status])) for status in Status if image.statuses.get(status))


def _bars(counts: Mapping[str, int]) -> tuple[Bar, ...]:
    longest = max(counts.values(), default=1)
    return tuple(Bar(label, count, max(2, count * WIDTH // longest)) for label, count in counts.items())


def _grouped(days: Mapping[str, int]) -> Mapping[str, int]:
    """By day, or by month or year where there would be too many bars."""
    for length in (10, 7, 4):
        found: dict[str, int] = {}
        for day, count in days.items():
            found[day[:length]] = found.get(day[:length], 0) + count
        if len(found) <= _MOST_DAYS:
            break
    return found


def _tables(listing: Listing) -> Iterator[Table]:
    """Rows of one bearing and one set of headings stand in one table; what was not found at all is told in words."""
    for bearing in Bearing:
        groups: dict[tuple[str, ...], list[Mapping[str, str]]] = {}
        for row in listing.of_bearing(bearing):
            groups.setdefault(tuple(row.cells()), []).append(row.cells())
        for headings, rows in groups.items():
            filled = tuple(heading for heading in headings if any(row[heading] for row in rows))
            yield Table(bearing.replace("-", " "), filled, tuple(tuple(row[heading] for heading in filled) for row in rows))
    if listing.not_found:
        yield Table("not found", ("what",), tuple((text,) for text in listing.not_found))


def _charts(overview: Overview) -> tuple[Chart, ...]:
    return charts(overview.runs)
