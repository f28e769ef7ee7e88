"""What exactly was tested, what exactly is demanded, and when the one covers the other.

A scope is flat here: one *leaf* (`tp`, `model`, `context_tokens`, …) with one value each. The three load leaves live in *cells*, the
combinations that were tested together: 262,144 tokens at one request and 131,072 at eight do not make 262,144 at eight.

Results do not transfer. A pass covers a demand only when every leaf that the demand names is recorded and equal, the load leaves
together in one cell. A failure covers it unless a named leaf is recorded *and different*: what a failure did not record, it may well
have been.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from countermark.attestations.digests import Digest
from countermark.attestations.located import JsonValue, as_integer, as_list, as_object

Value = int | str
Leaves = Mapping[str, Value]

CELL_LEAVES: Final = ("context_tokens", "concurrency", "draft_tokens")
TOPOLOGY_LEAVES: Final = ("tp", "dcp", "pp")
HARDWARE_LEAVES: Final = ("system", "accelerator", "sm", "fabric")
COUNT_LEAVES: Final = (*TOPOLOGY_LEAVES, "ranks", "nodes", *CELL_LEAVES)
"""The leaves whose value is an integer; all others are text."""
TEXT_LEAVES: Final = ("platform", *HARDWARE_LEAVES, "model", "draft", "publication_mode", "settings")
DIMENSIONS: Final = ("topology", *COUNT_LEAVES, "hardware", *TEXT_LEAVES)
"""Every name that a demand may use; `topology` and `hardware` stand for their leaves."""

_TOPOLOGY_TEXT = re.compile(r"TP([1-9][0-9]*)/DCP([1-9][0-9]*)(?:/PP([1-9][0-9]*))?\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Difference:
    """A leaf that keeps a scope from covering a demand; nothing observed means that it is not recorded."""

    leaf: str
    required: Value
    observed: tuple[Value, ...]

    def __str__(self) -> str:
        seen = " or ".join(str(value) for value in self.observed) or "not recorded"
        return f"{self.leaf} {seen}, required {self.required}"


@dataclass(frozen=True, slots=True)
class Scope:
    """What a statement says was tested: the image, leaves outside cells, and at least one cell when it is well formed."""

    image: Digest | None
    exact: Leaves
    cells: tuple[Leaves, ...]

    @classmethod
    def of(cls, value: JsonValue) -> Self:
        """Read a Scope object. Total: what cannot be read is not recorded, which covers no demand and shields from no failure."""
        fields = as_object(value)
        cells = tuple(_typed(cell, CELL_LEAVES) for cell in as_list(fields.get("cells")))
        return cls(Digest.stated(fields.get("image")), _exact(fields), cells)

    def covers_as_pass(self, point: Leaves) -> bool:
        """Whether a pass in this scope covers the demanded point."""
        return not self.differences(point)

    def covers_as_failure(self, point: Leaves) -> bool:
        """Whether a failure in this scope counts against the demanded point."""
        if any(self.exact.get(leaf, value) != value for leaf, value in point.items() if leaf not in CELL_LEAVES):
            return False
        load = {leaf: value for leaf, value in point.items() if leaf in CELL_LEAVES}
        return not self.cells or any(all(cell.get(leaf, value) == value for leaf, value in load.items()) for cell in self.cells)

    def differences(self, point: Leaves) -> tuple[Difference, ...]:
        """What keeps a pass in this scope from covering the point; of several cells, what the nearest one lacks."""
        exact = [Difference(leaf, value, _seen(self.exact, leaf)) for leaf, value in point.items() if leaf not in CELL_LEAVES]
        outside = [difference for difference in exact if difference.observed != (difference.required,)]
        load = {leaf: value for leaf, value in point.items() if leaf in CELL_LEAVES}
        nearest = min(self.cells or ({},), key=lambda cell: sum(cell.get(leaf) != value for leaf, value in load.items()))
        lacking = {leaf: value for leaf, value in load.items() if nearest.get(leaf) != value}
        return (*outside, *(Difference(leaf, value, self._tested(leaf, value, nearest)) for leaf, value in lacking.items()))

    def _tested(self, leaf: str, required: Value, nearest: Leaves) -> tuple[Value, ...]:
        """All tested values of a leaf; of one that was tested, but not together with the others, the value in the nearest cell."""
        tested = sorted({cell[leaf] for cell in self.cells if leaf in cell}, key=int)
        return _seen(nearest, leaf) if required in tested else tuple(tested)


def expand(dimension: str, value: JsonValue) -> dict[str, Value]:
    """The leaves that one dimension with one value stands for; none where the value is not of its form.

    `topology` takes an object or `TP4/DCP1`, `hardware` an object, `model` and `draft` an object or `repository@revision`.
    """
    if dimension == "topology":
        return _topology(value)
    if dimension == "hardware":
        return _typed(value, HARDWARE_LEAVES)
    if dimension in ("model", "draft") and isinstance(value, dict):
        repository, revision = value.get("repository"), value.get("revision")
        return {dimension: f"{repository}@{revision}"} if isinstance(repository, str) and isinstance(revision, str) else {}
    return _typed({dimension: value}, (dimension,))


def leaves_of(dimension: str) -> tuple[str, ...]:
    """The leaves that a dimension stands for."""
    return {"topology": TOPOLOGY_LEAVES, "hardware": HARDWARE_LEAVES}.get(dimension, (dimension,))


def describe(point: Leaves) -> str:
    """A point in words for people, in one fixed order; empty for a point that names nothing."""
    topology = "/".join(f"{leaf.upper()}{point[leaf]}" for leaf in TOPOLOGY_LEAVES if leaf in point)
    texts = {leaf: words.format(point[leaf]) for leaf, words in _WORDS.items() if leaf in point}
    load = [texts.pop(leaf) for leaf in CELL_LEAVES if leaf in texts]
    return ", ".join([*load, *filter(None, [topology]), *texts.values()])


_WORDS: Final = {
    "context_tokens": "{} tokens",
    "concurrency": "C{}",
    "draft_tokens": "draft {}",
    "ranks": "{} ranks",
    "nodes": "{} nodes",
    **{leaf: f"{leaf.replace('_', ' ')} {{}}" for leaf in TEXT_LEAVES},
}


def _exact(fields: Mapping[str, JsonValue]) -> dict[str, Value]:
    names = ("topology", "ranks", "nodes", "hardware", "platform", "model", "draft", "publication_mode", "settings")
    return {leaf: value for name in names for leaf, value in expand(name, fields.get(name)).items()}


def _topology(value: JsonValue) -> dict[str, Value]:
    if not isinstance(value, str):
        return _typed(value, TOPOLOGY_LEAVES)
    found = _TOPOLOGY_TEXT.match(value)
    return {leaf: int(text) for leaf, text in zip(TOPOLOGY_LEAVES, found.groups(), strict=True) if text} if found else {}


def _typed(value: JsonValue, leaves: Iterable[str]) -> dict[str, Value]:
    """The leaves of an object that have the type of their name."""
    fields = as_object(value)
    read = {leaf: _of_type(leaf, fields.get(leaf)) for leaf in leaves}
    return {leaf: found for leaf, found in read.items() if found is not None}


def _of_type(leaf: str, value: JsonValue) -> Value | None:
    """The value when it has the type of the leaf: an integer, which a boolean is not, or text that is not empty."""
    if leaf in COUNT_LEAVES:
        return as_integer(value)
    return value if isinstance(value, str) and value else None


def _seen(leaves: Leaves, leaf: str) -> tuple[Value, ...]:
    return (leaves[leaf],) if leaf in leaves else ()
