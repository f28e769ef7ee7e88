"""Which records can bear on a question. A ledger may hold very many notices, and all but a few are about other images.

Only names are compared here, as bare hex and without regard to kinds, so that what is kept is always more than what counts. What is
dropped says nothing about the subject, about an image that is linked to it, or about a statement that does.
"""

from collections.abc import Iterable, Iterator

from countermark.attestations.codes import Outcome
from countermark.attestations.digests import Digest
from countermark.attestations.located import JsonValue, as_list, as_object
from countermark.attestations.outcomes import receipt_outcome
from countermark.attestations.predicate_types import PredicateName
from countermark.contracts.evidence import Record

_IMAGE, _RECEIPT, _VERDICT = PredicateName.IMAGE.uri, PredicateName.QUALIFICATION_RECEIPT.uri, PredicateName.CONTRACT_VERDICT.uri


def relevant(records: Iterable[Record], subject: Digest) -> list[Record]:
    """The records that are about `subject`, about whatever they themselves are about, and those of which results might transfer."""
    everything = list(records)
    by_name: dict[str, list[Record]] = {}
    for record in everything:
        for hexed in _names(record):
            by_name.setdefault(hexed, []).append(record)
    by_payload: dict[str, list[Record]] = {}
    for record in everything:
        by_payload.setdefault(record.payload.hex, []).append(record)
    kept: dict[tuple[int, Digest], Record] = {}
    names, waiting = {subject.hex}, [subject.hex]
    fresh = [record for record in everything if _always(record)]
    while fresh or waiting:
        if waiting:
            hexed = waiting.pop()
            fresh += (*by_name.get(hexed, ()), *by_payload.get(hexed, ()))
        for record in fresh:
            if (record.index, record.payload) not in kept:
                kept[record.index, record.payload] = record
                new = set(_leads_to(record)) - names
                names |= new
                waiting += new
        fresh = []
    return list(kept.values())


def _always(record: Record) -> bool:
    """Contract verdicts name no image; passing receipts of other images are told, though they do not transfer."""
    kind = record.statement.predicate_type
    return kind == _VERDICT or (kind == _RECEIPT and receipt_outcome(record.statement.predicate) is Outcome.PASS)


def _names(record: Record) -> Iterator[str]:
    """The hex of everything that a record may be about."""
    for subject in record.statement.subjects:
        yield from subject.digests.values()
    if record.statement.predicate_type == _RECEIPT:
        yield from _hex_of(_field(_field(record.statement.predicate, "scope"), "image"))
    yield from _aliases(record)


def _leads_to(record: Record) -> Iterator[str]:
    """What else must be looked at once a record is: what speaks of it, what it rests on, and the other names it gives the image."""
    yield record.payload.hex
    if record.statement.predicate_type == _IMAGE:
        yield from _names(record)
        for item in as_list(_field(record.statement.predicate, "test_results")):
            yield from _hex_of(item)
    for item in as_list(_field(record.statement.predicate, "rests_on")):
        yield from _hex_of(item)


def _aliases(record: Record) -> Iterator[str]:
    if record.statement.predicate_type == _IMAGE:
        for item in as_list(_field(record.statement.predicate, "aliases")):
            yield from _hex_of(_field(item, "digest"))


def _hex_of(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value.rpartition(":")[2]


def _field(value: JsonValue, name: str) -> JsonValue:
    return as_object(value).get(name)
