"""The qualification matrix: capability × tested scope, each cell with the gate's answer and the evidence that it leads to."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from countermark.actions.dossier import Answered, Column, Dossier
from countermark.attestations.codes import Code
from countermark.contracts.decision import Result
from countermark.contracts.scope import TOPOLOGY_LEAVES, describe
from countermark.web.wording import NOT_TESTED, Badge, grouped, status_badge

_AGAINST: Final = frozenset({Code.IMAGE_REJECTED, Code.CAP_REJECTED, Code.CAP_FAILED})
"""What speaks against a capability in a scope holds there whether or not it was tested there."""
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class Group:
    """Columns that differ in their cell alone. `letter` names it in the legend, which has all of its `dimensions`."""

    letter: str
    title: str
    dimensions: str
    span: int


@dataclass(frozen=True, slots=True)
class Cell:
    """One answer. `anchor` is where it is told in full, empty where there is nothing to tell."""

    badge: Badge
    code: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Row:
    """A capability and its cells, in the order of the columns."""

    capability: str
    means: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """An answer in full, with every cell that it is the answer of."""

    anchor: str
    places: tuple[tuple[str, str], ...]
    badge: Badge
    result: Result


@dataclass(frozen=True, slots=True)
class Matrix:
    """The table, and the answers behind it; `left_out` counts scopes without a column."""

    groups: tuple[Group, ...]
    columns: tuple[tuple[str, ...], ...]
    rows: tuple[Row, ...]
    told: tuple[Told, ...]
    left_out: int

    @property
    def empty(self) -> bool:
        """Whether nothing was tested anywhere, and nothing speaks against the image."""
        return not self.told


def matrix(dossier: Dossier, prefix: str) -> Matrix:
    """The matrix of an image; `prefix` keeps its anchors apart from those of other images on the page."""
    answers = _Answers(prefix, {}, [])
    rows = [_row(answered, dossier.columns, answers) for answered in dossier.answers]
    loads = tuple(tuple(_load(column)) for column in dossier.columns)
    return Matrix(tuple(_groups(dossier.columns)), loads, tuple(rows), tuple(answers.told()), dossier.left_out)


def _groups(columns: Sequence[Column]) -> Iterator[Group]:
    for n, (exact, found) in enumerate(groupby(columns, key=lambda column: describe(column.exact))):
        members = list(found)
        topology = describe({leaf: value for leaf, value in members[0].exact.items() if leaf in TOPOLOGY_LEAVES})
        title = topology or ("topology not recorded" if exact else "no scope recorded but the load")
        yield Group(_LETTERS[n] if n < len(_LETTERS) else str(n), title, exact or "nothing else is recorded", len(members))


def _load(column: Column) -> Iterator[str]:
    """The lines of a column's heading."""
    words = {"context_tokens": "{} tokens", "concurrency": "C{}", "draft_tokens": "draft {}"}
    found = [form.format(_number(column.cell[leaf])) for leaf, form in words.items() if leaf in column.cell]
    yield from found or ["any load"]


def _number(value: int | str) -> str:
    return grouped(value) if isinstance(value, int) else value


@dataclass(frozen=True, slots=True)
class _Answers:
    """The answers behind the cells, each once."""

    prefix: str
    numbers: dict[tuple[str, ...], int]
    found: list[tuple[Result, list[tuple[str, str]]]]

    def anchor(self, capability: str, column: Column, result: Result) -> str:
        """Where the answer is told; it is put there if it is a new one."""
        key = (result.code, result.observed, result.fix, *(f"{item.payload} {item.used} {item.why}" for item in result.evidence))
        number = self.numbers.setdefault(key, len(self.found))
        if number == len(self.found):
            self.found.append((result, []))
        self.found[number][1].append((capability, describe({**column.exact, **column.cell}) or "any scope"))
        return f"{self.prefix}-answer-{number}"

    def told(self) -> Iterator[Told]:
        """All of them, in the order of the rows."""
        for number, (result, places) in enumerate(self.found):
            yield Told(f"{self.prefix}-answer-{number}", tuple(places), status_badge(result.status), result)


def _row(answered: Answered, columns: Sequence[Column], answers: _Answers) -> Row:
    cells = [
        Cell(status_badge(result.status), str(result.code), answers.anchor(answered.capability, column, result))
        if tested or result.code in _AGAINST
        else Cell(NOT_TESTED, "", "")
        for result, tested, column in zip(answered.results, answered.tested, columns, strict=True)
    ]
    return Row(answered.capability, answered.means, tuple(cells))
