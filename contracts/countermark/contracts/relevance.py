"""Which records can bear on a question. A ledger may hold very many notices, and all but a few are about other images.

Only names are compared here, as bare hex and without regard to kinds, so that what is kept is always more than what counts. What is
dropped says nothing about the subject, about an image that is linked to it, or about a statement that does.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Generic, Protocol, TypeVar

from countermark.attestations.codes import Outcome
from countermark.attestations.digests import Digest
from countermark.attestations.located import JsonValue, as_list, as_object
from countermark.attestations.outcomes import receipt_outcome
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import Statement
from countermark.contracts.evidence import Record

_IMAGE, _RECEIPT, _VERDICT = PredicateName.IMAGE.uri, PredicateName.QUALIFICATION_RECEIPT.uri, PredicateName.CONTRACT_VERDICT.uri
_WAIVER: Final = PredicateName.WAIVER.uri


class Said(Protocol):
    """A statement and where it stands; who signed it makes no difference to what it is about."""

    @property
    def index(self) -> int:
        """Its entry."""

    @property
    def payload(self) -> Digest:
        """What a later statement names it by."""

    @property
    def statement(self) -> Statement:
        """What it says."""


_Said = TypeVar("_Said", bound=Said)


def relevant(records: Iterable[Record], subject: Digest) -> list[Record]:
    """The records that are about `subject`, about whatever they themselves are about, and those of which results might transfer."""
    return Relevance(records).to(subject)


class Relevance(Generic[_Said]):
    """Statements by what they are about: sorted once, and asked about as many subjects as there are."""

    def __init__(self, records: Iterable[_Said]) -> None:
        self._by_hex = _by_hex(records)
        self._kept: dict[tuple[int, Digest], _Said] = {}
        self._names: set[str] = set()
        always = (record for found in self._by_hex.values() for record in found if _always(record))
        self._follow(self._kept, self._names, [*always], [], {})

    def to(self, subject: Digest, more: Iterable[_Said] = ()) -> list[_Said]:
        """What bears on a subject, of these records and some more."""
        others, kept, names = _by_hex(more), dict(self._kept), set(self._names)
        fresh = [record for hexed, found in others.items() for record in found if hexed in names or _always(record)]
        waiting = [] if subject.hex in names else [subject.hex]
        names.add(subject.hex)
        self._follow(kept, names, fresh, waiting, others)
        return list(kept.values())

    def _follow(
        self,
        kept: dict[tuple[int, Digest], _Said],
        names: set[str],
        fresh: list[_Said],
        waiting: list[str],
        others: Mapping[str, Sequence[_Said]],
    ) -> None:
        """Keep the fresh records, and all that is reached from them and from the hexes that are waiting."""
        while fresh or waiting:
            if waiting:
                hexed = waiting.pop()
                fresh += (*self._by_hex.get(hexed, ()), *others.get(hexed, ()))
            for record in fresh:
                if (record.index, record.payload) not in kept:
                    kept[record.index, record.payload] = record
                    new = set(_leads_to(record)) - names
                    names |= new
                    waiting += new
            fresh = []


def _by_hex(records: Iterable[_Said]) -> dict[str, list[_Said]]:
    """The records under every hex that they are about, and under that of their payload."""
    found: dict[str, list[_Said]] = {}
    for record in records:
        for hexed in {record.payload.hex, *_names(record)}:
            found.setdefault(hexed, []).append(record)
    return found


def _always(record: Said) -> bool:
    """Contract verdicts name no image; passing receipts and waivers of other images are told, though they do not transfer."""
    kind = record.statement.predicate_type
    return kind in (_VERDICT, _WAIVER) or (kind == _RECEIPT and receipt_outcome(record.statement.predicate) is Outcome.PASS)


def _names(record: Said) -> Iterator[str]:
    """The hex of everything that a record may be about."""
    for subject in record.statement.subjects:
        yield from subject.digests.values()
    if record.statement.predicate_type == _RECEIPT:
        yield from _hex_of(_field(_field(record.statement.predicate, "scope"), "image"))
    yield from _aliases(record)


def _leads_to(record: Said) -> Iterator[str]:
    """What else must be looked at once a record is: what speaks of it, what it rests on, and the other names it gives the image."""
    yield record.payload.hex
    if record.statement.predicate_type == _IMAGE:
        yield from _names(record)
        for item in as_list(_field(record.statement.predicate, "test_results")):
            yield from _hex_of(item)
    for item in as_list(_field(record.statement.predicate, "rests_on")):
        yield from _hex_of(item)


def _aliases(record: Said) -> Iterator[str]:
    if record.statement.predicate_type == _IMAGE:
        for item in as_list(_field(record.statement.predicate, "aliases")):
            yield from _hex_of(_field(item, "digest"))


def _hex_of(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value.rpartition(":")[2]


def _field(value: JsonValue, name: str) -> JsonValue:
    return as_object(value).get(name)
