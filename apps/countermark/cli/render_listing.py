"""An auditor's listing as text and JSON: what was found, what is negative, what was not found; then the head and the effective time."""

from collections.abc import Iterator, Mapping, Sequence

from countermark.actions.queries.listing import Bearing, Listing
from countermark.attestations.codes import ExitCode
from countermark.cli.report import Report
from countermark.contracts.explain_text import plain

_HEADINGS = {Bearing.FOUND: "found", Bearing.NEGATIVE: "negative", Bearing.NOT_FOUND: "not found"}


def listing_report(command: str, listing: Listing) -> Report:
    """The report of a question that was answered, also with no rows."""
    counted = sum(listing.counts.values())
    return Report(
        evaluated=counted,
        of=counted,
        ledger=listing.head.to_json(),
        effective_time=str(listing.effective_time),
        text="\n".join((*_body(listing), _tail(command, listing))),
        extra=listing.to_json(),
        bare=True,
    )


def _body(listing: Listing) -> Iterator[str]:
    yield plain(listing.question)
    yield from (f"  {plain(note)}" for note in listing.notes)
    for bearing in Bearing:
        rows = listing.of_bearing(bearing)
        absent = listing.not_found if bearing is Bearing.NOT_FOUND else ()
        if not rows and not absent:
            continue
        yield f"{_HEADINGS[bearing]}:"
        yield from _tables([row.cells() for row in rows])
        yield from (f"  {plain(text)}" for text in absent)


def _tables(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """A table for the rows of each set of headings, in the order in which each set comes first."""
    groups: dict[tuple[str, ...], list[Mapping[str, str]]] = {}
    for row in rows:
        groups.setdefault(tuple(row), []).append(row)
    for headings, group in groups.items():
        shown = [heading for heading in headings if any(row[heading] for row in group)]
        lines = [shown, *([plain(row[heading]) for heading in shown] for row in group)]
        widths = [max(len(line[n]) for line in lines) for n in range(len(shown))]
        yield from ("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)


def _tail(command: str, listing: Listing) -> str:
    counts = ", ".join(f"{count} {name.replace('-', ' ')}" for name, count in listing.counts.items())
    head = listing.head
    held = f"entries below {head.protected_to} held by others" if head.protected_to else "no entry known to be held by others"
    ledger = f"ledger {head.origin} size {head.size} root {head.root}, {held}"
    return f"OK  {command} · {counts} · {ledger} · at {listing.effective_time} · exit {int(ExitCode.YES)}"
