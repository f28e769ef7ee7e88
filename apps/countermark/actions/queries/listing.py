"""The answer to an auditor's question: rows, and, apart from what is negative, what was not found at all.

"There is no rejection" and "there is no record" are different answers, and so are "the test failed" and "nobody tested". Every row
says which it is, and what has no row because nothing was found is named in words.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Final, Protocol

from countermark.attestations.codes import Code
from countermark.attestations.located import JsonValue
from countermark.attestations.times import Instant
from countermark.contracts.decision import DecisionHead


class Bearing(StrEnum):
    """What a row is to the question: something found, something found that speaks against, or the place of something missing."""

    FOUND = "found"
    NEGATIVE = "negative"
    NOT_FOUND = "not-found"


_MISSING: Final = frozenset(
    {Code.SUBJECT_UNKNOWN, Code.CAP_UNQUALIFIED, Code.CAP_SCOPE, Code.CAP_NO_EVIDENCE, Code.CONTRACT_NOT_EVALUATED, Code.NOTHING_EVALUATED}
)
"""The codes of a requirement that say that no record covers it, rather than that one speaks against it or does not suffice."""


def bearing_of(code: Code, *, holds: bool) -> Bearing:
    """The bearing of a requirement's answer."""
    if holds:
        return Bearing.FOUND
    return Bearing.NOT_FOUND if code in _MISSING else Bearing.NEGATIVE


class Row(Protocol):
    """One row of a listing: a frozen dataclass, whose fields are its JSON, and whose cells are its text."""

    @property
    def bearing(self) -> Bearing:
        """What the row is to the question."""
        ...

    def cells(self) -> Mapping[str, str]:
        """The columns for people, by their headings; rows with the same headings stand in one table."""
        ...


@dataclass(frozen=True, slots=True)
class Listing:
    """A question in words, and its answer at one head and effective time.

    `not_found` names what was asked for, or should have been there, and is not. `notes` say under what the answer holds. `considered`
    counts what was looked at, by bearing, where a filter leaves rows out; without one the rows are all there is.
    """

    question: str
    head: DecisionHead
    effective_time: Instant
    rows: Sequence[Row]
    not_found: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    considered: tuple[Bearing, ...] | None = None

    @property
    def counts(self) -> dict[str, int]:
        """How many there are of each bearing, before any filter; what has no row but a name counts as not found."""
        seen = Counter(self.considered if self.considered is not None else (row.bearing for row in self.rows))
        seen[Bearing.NOT_FOUND] += len(self.not_found)
        return {str(bearing): seen[bearing] for bearing in Bearing}

    def of_bearing(self, bearing: Bearing) -> tuple[Row, ...]:
        """The rows of one bearing, in their order."""
        return tuple(row for row in self.rows if row.bearing is bearing)

    def to_json(self) -> dict[str, JsonValue]:
        """What the JSON report of a query has beside the fields of every report."""
        return {
            "question": self.question,
            "rows": [row_json(row) for row in self.rows],
            "counts": {**self.counts},
            "not_found": list(self.not_found),
            "notes": list(self.notes),
        }


def row_json(row: object) -> dict[str, JsonValue]:
    """The fields of a row, digests and instants as text."""
    return {item.name: _json(getattr(row, item.name)) for item in fields(row)}  # type: ignore[arg-type]  # rows are dataclasses


def _json(value: object) -> JsonValue:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, Mapping):
        return {str(name): _json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json(item) for item in value]
    return str(value)


def joined(parts: Iterable[object], between: str = "; ") -> str:
    """The texts of those parts that say something."""
    return between.join(text for part in parts if (text := str(part) if part is not None else ""))
