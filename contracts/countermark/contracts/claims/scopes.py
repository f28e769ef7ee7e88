"""What a sentence names beside a status: capabilities, and the points of a scope in the words that people use for them.

`TP4/DCP1` is a topology, `131,072 tokens` or `131,072- and 262,144-token` a context, `C8` a concurrency, `7 draft tokens` a draft. Counts
of other tokens (of a chunk, of an output) are no scope.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from countermark.attestations.located import JsonValue
from countermark.contracts.requirement import format_require

_COUNT: Final = r"(?<![\w.,])(\d{1,3}(?:,\d{3})+|\d+)"
_LISTED: Final = r"(?=-?(?:,?\s+(?:and|or)\s+|,\s+)(?:[\d,]+-?(?:,?\s+(?:and|or)\s+|,\s+))*[\d,]+[- ]tokens?\b)"
_NO_CONTEXT: Final = r"(?![ -]+(?:draft|logical|geometry|chunks?|blocks?|pages?|granularity|outputs?|budget))"
_TOPOLOGY: Final = re.compile(r"\bTP(\d+)(?:/DCP(\d+))?(?:/PP(\d+))?\b")
_LEAVES: Final[Mapping[str, tuple[re.Pattern[str], ...]]] = {
    "context_tokens": (re.compile(rf"{_COUNT}[- ]tokens?\b{_NO_CONTEXT}"), re.compile(rf"{_COUNT}{_LISTED}")),
    "concurrency": (re.compile(r"\bC(\d+)\b"), re.compile(r"(?i)\bconcurrency (?:of )?(\d+)\b")),
    "draft_tokens": (re.compile(rf"{_COUNT} draft tokens?\b"), re.compile(r"(?i)\bdraft[- ](\d+)\b")),
}


@dataclass(frozen=True, slots=True)
class Named:
    """Something that a sentence names, and where: a capability by its id, or leaves of a scope."""

    start: int
    end: int
    capability: str | None = None
    leaves: tuple[tuple[str, int], ...] = ()


def named_in(sentence: str, capabilities: Iterable[str]) -> Iterator[Named]:
    """The capabilities and the parts of a scope that a sentence names. A capability goes by its id, or by the words of its id."""
    for capability in capabilities:
        words = r"[ .-]".join(map(re.escape, re.split("[.-]", capability)))
        yield from (Named(found.start(), found.end(), capability) for found in re.finditer(rf"(?i)(?<![\w.-]){words}(?![\w-])", sentence))
    for found in _TOPOLOGY.finditer(sentence):
        sizes = zip(("tp", "dcp", "pp"), found.groups(), strict=True)
        yield Named(found.start(), found.end(), leaves=tuple((leaf, int(size)) for leaf, size in sizes if size))
    for leaf, patterns in _LEAVES.items():
        for count in (count for pattern in patterns for count in pattern.finditer(sentence)):
            yield Named(count.start(), count.end(), leaves=((leaf, int(count[1].replace(",", ""))),))


def asks(named: Sequence[Named], capabilities: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """What must be asked, each as `--require` takes it: of every group at least one must hold.

    A capability that is named must hold at every point; where none is named, some capability must at each.
    """
    own = list(dict.fromkeys(item.capability for item in named if item.capability))
    alternatives: list[tuple[str, ...]] = [(capability,) for capability in own]
    points = list(_points([item.leaves for item in named if item.leaves]))
    groups = alternatives or [tuple(capabilities)]
    return tuple(tuple(format_require(capability, point) for capability in group) for group in groups for point in points)


def _points(leaves: Sequence[tuple[tuple[str, int], ...]]) -> Iterator[dict[str, JsonValue]]:
    """Every combination of the values of each dimension."""
    dimensions: dict[str, dict[tuple[tuple[str, int], ...], None]] = {}
    for values in leaves:
        dimensions.setdefault(values[0][0], {})[values] = None
    for combination in itertools.product(*dimensions.values()):
        yield {leaf: value for values in combination for leaf, value in values}
