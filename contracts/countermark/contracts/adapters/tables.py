"""The tables of an adapter: what it reads from what. The code reads by them, and its page repeats them."""

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Table:
    """A table for people: a heading, and as many cells in each row as there."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """The table as the adapter's page holds it, one line a row."""
        head, *rows = (f"| {' | '.join(cells)} |" for cells in (self.head, *self.rows))
        return "\n".join([head, f"|{'---|' * len(self.head)}", *rows])


class Meaning(Enum):
    """What a status word of a document stands for."""

    PASS = "pass"
    RESEARCH = "pass, claim `research-only`"
    FAIL = "fail"
    BUILD = "build evidence, no claim"
    NONE = "no claim at all"


def word_table(words: dict[str, Meaning]) -> Table:
    """The word table of an adapter. Whatever stands in none of its rows is refused."""
    rows = [(f"`{word}`", meaning.value) for word, meaning in words.items()]
    return Table(("word", "stands for"), (*rows, ("anything else", "refused")))
