"""Rates computed again from their operands, under each definition of the closed list.

A document's words are no definition: the operands decide. A value that follows from them under one definition only is told so, with
the definition's name.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from countermark.contracts.adapters.fields import Field

TOLERANCE: Final = 1e-9
"""Relative; published rates carry all digits of a double."""


@dataclass(frozen=True, slots=True)
class Operands:
    """One request: completion tokens, wall time and time to first token in seconds."""

    completion: int
    wall_s: float
    ttft_s: float

    @classmethod
    def of(cls, row: Field) -> "Operands | None":
        """The operands of a row `{usage: {completion_tokens}, wall_s, ttft_s}`; none unless each is there and makes sense."""
        tokens, wall, ttft = row["usage"]["completion_tokens"].positive, row["wall_s"].number, row["ttft_s"].number
        if tokens is None or wall is None or ttft is None or not 0 <= ttft < wall:
            return None
        return cls(tokens, wall, ttft)


DECODE: Final[dict[str, Callable[[Operands], float]]] = {
    "decode.excl-first": lambda row: (row.completion - 1) / (row.wall_s - row.ttft_s),
    "decode.all": lambda row: row.completion / (row.wall_s - row.ttft_s),
}
"""The definitions of a decode rate."""
FORMULAS: Final = {
    "decode.excl-first": "(completion - 1) / (wall - TTFT)",
    "decode.all": "completion / (wall - TTFT)",
    "e2e.request": "completion / wall",
}


def end_to_end(row: Operands) -> float:
    """Completion tokens over the whole wall time (`e2e.request`)."""
    return row.completion / row.wall_s


def close(value: float | None, wanted: float) -> bool:
    """Whether a recorded value is the computed one."""
    return value is not None and abs(value - wanted) <= TOLERANCE * abs(wanted)


def recomputing(rows: Sequence[Operands], values: Sequence[float | None]) -> list[str]:
    """The definitions under which every value follows from its row; none without rows."""
    fitting = (name for name, rate in DECODE.items() if all(close(value, rate(row)) for row, value in zip(rows, values, strict=True)))
    return list(fitting) if rows else []


def middle(rows: Iterable[Operands], name: str) -> float:
    """The median of the rates of some rows, the mean of the middle two where their number is even."""
    return median(DECODE[name](row) for row in rows)
