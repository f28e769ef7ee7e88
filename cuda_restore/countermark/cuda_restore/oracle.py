"""A retrieval network in numpy that can tell what a restored cache means; every number in it is exact in bfloat16.

Keys and values are signs, +1 and -1, so all sums are small integers and the same on every machine. A token's key holds a code of what
can be asked for (the subject of a fact), its value a code of the answer (the word); the other half of both is the *context code*, which
depends on all earlier tokens through all layers below. Each layer and rank has sign keys of its own, so another layer's or rank's cache
is noise. Two heads read every needle in every layer on every rank:

* the *content head* attends to the key that matches the subject. Like a cache of rotated keys it does not mind whole pages changing
  places, as long as each key keeps its value;
* the *slot head* attends to a position, as windowed and recurrent layers do, and sees exactly that.

Attention is hard: all weight on the highest score. The answer is the codeword only if every read gives exactly the value that the
prompt has there; one read that does not makes it "spark". One pooled question would heal nearly every fault by redundancy.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from countermark.cuda_restore.oracle_prompt import FILLERS, SPARK, WORDS, Needle, OracleShape, Prompt

Cache = NDArray[np.uint8]
"""One rank's cache in logical order: [layer, key or value, page, byte]."""

Signs = NDArray[np.int64]
Numbers = NDArray[np.float32]

KEY, VALUE = 0, 1
_BF16_ONE: Final = 0x3F80
_BF16_SIGN: Final = 0x8000


class Head(StrEnum):
    """How a needle is looked for."""

    CONTENT = "content"
    SLOT = "slot"


@dataclass(frozen=True, slots=True)
class Miss:
    """A read that did not give what the prompt says. `read` is the word it gave, if any; the right word in a wrong context is a miss."""

    head: Head
    layer: int
    rank: int
    needle: int
    read: str | None

    def __str__(self) -> str:
        told = f"read {self.read!r}" if self.read else "read nothing"
        return f"{self.head} head, layer {self.layer}, rank {self.rank}, needle {self.needle}: {told}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the oracle said: one word, out of how many reads, and which of them missed, in the order of rank, layer, head, needle."""

    word: str
    reads: int
    misses: tuple[Miss, ...]

    @property
    def why(self) -> str | None:
        """The first miss, named, and how many there are; nothing when every read agreed."""
        return f"{self.misses[0]}; {len(self.misses)} of {self.reads} reads miss" if self.misses else None


class Oracle:
    """The network of one shape. It holds no state: the same prompt and caches give the same answer."""

    def __init__(self, shape: OracleShape) -> None:
        self.shape = shape
        self._width = shape.head_dim // 2

    def prefill(self, prompt: Prompt) -> list[Cache]:
        """The cache of each rank after the prompt was computed: what a server would store."""
        keys, values = self._states(prompt)
        return [
            np.stack([np.stack([self._pages(keys, layer, rank, KEY), self._pages(values, layer, rank, VALUE)]) for layer in self._layers])
            for rank in range(self.shape.ranks)
        ]

    def answer(self, prompt: Prompt, caches: Sequence[Cache], *, tokens: int | None = None) -> Answer:
        """Ask for every needle, given each rank's cache and how many tokens the server believes it holds (all, when left out)."""
        _, expected = self._states(prompt)
        seen = self.shape.tokens if tokens is None else tokens
        misses = tuple(
            miss
            for rank, cache in enumerate(caches)
            for layer in self._layers
            for miss in self._read(prompt.needles, cache[layer], expected[layer], layer, rank, seen)
        )
        reads = 2 * len(prompt.needles) * self.shape.layers * len(caches)
        agreed = len(caches) == self.shape.ranks and not misses
        return Answer(prompt.codeword if agreed else SPARK, reads, misses)

    @property
    def _layers(self) -> range:
        return range(self.shape.layers)

    def _states(self, prompt: Prompt) -> tuple[Signs, Signs]:
        """Keys and values [layer, token, number] of the prompt before the sign keys, computed the way a server prefills."""
        asked, told, context = self._embed(np.array(prompt.tokens))
        keys, values = [], []
        for layer in self._layers:
            keys.append(np.concatenate([asked, context], axis=1))
            values.append(np.concatenate([told, context], axis=1))
            earlier = np.cumsum(context, axis=0) - context
            # one token changed changes these sums by 2 in some columns, and with them this bit, for every later token
            gate = 1 - 2 * ((earlier >> 1) & 1)
            context = context * gate * np.roll(asked, layer + 1, axis=1)
        return np.stack(keys), np.stack(values)

    def _embed(self, tokens: Signs) -> tuple[Signs, Signs, Signs]:
        """Three codes of every token: what it can be asked for, what it answers, and its own context code."""
        is_fact = tokens >= FILLERS
        subject, word = np.divmod(np.where(is_fact, tokens - FILLERS, 0), len(WORDS))
        filler = np.where(is_fact, 0, tokens)
        plain = [_signs(f"filler {part}", FILLERS, self._width)[filler] for part in ("key", "value", "context")]
        subjects = [_signs(f"subject {part}", int(subject.max()) + 1, self._width)[subject] for part in ("key", "context")]
        words = [_signs(f"word {part}", len(WORDS), self._width)[word] for part in ("value", "context")]
        facts = [subjects[0], words[0], subjects[1] * words[1]]
        asked, told, context = (np.where(is_fact[:, None], one, other) for one, other in zip(facts, plain, strict=True))
        return asked, told, context

    def _pages(self, states: Signs, layer: int, rank: int, kind: int) -> NDArray[np.uint8]:
        """The pages of one layer as bytes, under the sign key of layer and rank."""
        negative = states[layer] * self._sign_key(layer, rank, kind) < 0
        numbers = np.where(negative, _BF16_ONE | _BF16_SIGN, _BF16_ONE).astype("<u2")
        return np.asarray(numbers.view(np.uint8)).reshape(self.shape.pages, self.shape.page_bytes)

    def _sign_key(self, layer: int, rank: int, kind: int) -> Signs:
        return _signs(f"layer {layer} rank {rank} kind {kind}", 1, self.shape.head_dim).reshape(-1)

    def _read(self, needles: Sequence[Needle], cache: Cache, expected: Signs, layer: int, rank: int, seen: int) -> Iterator[Miss]:
        """Ask one layer of one rank for every needle with both heads."""
        keys, values = (
            _numbers(cache[kind], self.shape.head_dim)[:seen] * self._sign_key(layer, rank, kind).astype(np.float32)
            for kind in (KEY, VALUE)
        )
        positions = np.array([needle.position for needle in needles])
        subjects = _signs("subject key", 1 + max(needle.subject for needle in needles), self._width)
        query = subjects[[needle.subject for needle in needles]].astype(np.float32)
        with np.errstate(invalid="ignore", over="ignore"):
            by_content = _attend(query @ keys[:, : self._width].T, values)
            by_slot = _attend(-np.abs(positions[:, None] - np.arange(seen)).astype(np.float32), values)
        for head, read in ((Head.CONTENT, by_content), (Head.SLOT, by_slot)):
            for number in np.flatnonzero((read != expected[positions]).any(axis=1)):
                yield Miss(head, layer, rank, int(number), self._word(read[number]))

    def _word(self, read: Numbers) -> str | None:
        """The word that a read spells exactly; nothing when it spells none."""
        codes = _signs("word value", len(WORDS), self._width)
        return next((word for word, code in zip(WORDS, codes, strict=True) if (read[: self._width] == code).all()), None)


def _attend(scores: Numbers, values: Numbers) -> Numbers:
    """Hard attention: the value with the highest score, the mean of those that share it. A score that is no number spoils the read."""
    winners = scores == scores.max(axis=1, keepdims=True)
    read: Numbers = values[winners.argmax(axis=1)]
    for query in np.flatnonzero(winners.sum(axis=1) != 1):
        read[query] = values[winners[query]].mean(axis=0) if winners[query].any() else np.nan
    return read


def _numbers(pages: NDArray[np.uint8], head_dim: int) -> Numbers:
    """The bfloat16 numbers of a layer's pages, [token, number], widened to float32 without loss."""
    half = np.ascontiguousarray(pages).view("<u2").reshape(-1, head_dim)
    return np.asarray(np.left_shift(half, 16, dtype=np.uint32)).view(np.float32)


@cache
def _signs(label: str, rows: int, columns: int) -> Signs:
    """A matrix of signs that is the same for the same label everywhere. More rows leave the first ones as they are."""
    raw = hashlib.shake_256(f"countermark-oracle/1 {label} {columns}".encode()).digest(rows * columns // 8)
    bits = np.unpackbits(np.frombuffer(raw, np.uint8)).reshape(rows, columns)
    signs: Signs = 1 - 2 * bits.astype(np.int64)
    signs.flags.writeable = False
    return signs
