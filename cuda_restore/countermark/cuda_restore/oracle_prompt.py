"""The prompts of the bundled oracle: facts on both edges of every page, decoys and filler between them.

A *fact* is one token that says of one subject which word is its own. A *needle* is a fact whose subject is asked for. The first needle
carries the codeword; the last one is the very last token, so that a restore which is one token short shows. Everything is derived from
SHAKE-256, so a prompt has the same tokens, and its context the same digest, on every machine and with every library version.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError
from countermark.cuda_restore.identity import CHUNK_TOKENS

WORDS: Final = ("red", "blue", "green", "amber", "violet", "teal", "olive", "spark")
SPARK: Final = "spark"
"""What the oracle answers when its reads disagree; it is never the codeword."""

FILLERS: Final = 2048
"""Tokens below this say nothing; the others are facts."""


@dataclass(frozen=True, slots=True)
class OracleShape:
    """The size of the oracle: layers, ranks, and per token and layer a key and a value of `head_dim` bfloat16 numbers."""

    layers: int = 4
    ranks: int = 4
    tokens: int = 2048
    page_tokens: int = 64
    head_dim: int = 64

    def __post_init__(self) -> None:
        if self.tokens < 2 * self.page_tokens or self.tokens % CHUNK_TOKENS or self.page_tokens < 4 or CHUNK_TOKENS % self.page_tokens:
            raise _refuse(
                f"{self.tokens} tokens do not make two or more pages of {self.page_tokens}", "take multiples of 256 and divisors of it"
            )
        if min(self.layers, self.ranks) < 2 or self.head_dim < 32 or self.head_dim % 16:
            raise _refuse("an oracle has two or more layers and ranks and a head of 32, 48, 64, ...", "take a larger shape")

    @property
    def pages(self) -> int:
        """The pages of one layer."""
        return self.tokens // self.page_tokens

    @property
    def page_bytes(self) -> int:
        """The bytes of one page of keys, or of values."""
        return self.page_tokens * self.head_dim * 2


@dataclass(frozen=True, slots=True)
class Needle:
    """A fact to be asked for: where it stands, its subject, and the place of its word in `WORDS`."""

    position: int
    subject: int
    word: int


@dataclass(frozen=True, slots=True)
class Prompt:
    """The stored tokens of one request. `needles` are read off the tokens, never kept beside them."""

    tokens: tuple[int, ...]
    page_tokens: int

    @property
    def needles(self) -> tuple[Needle, ...]:
        """The facts on the edges of the pages, in the order of their positions; the first is the codeword's."""
        edges = (start + edge for start in range(0, len(self.tokens), self.page_tokens) for edge in (0, self.page_tokens - 1))
        return tuple(Needle(position, *fact_of(self.tokens[position])) for position in edges)

    @property
    def codeword(self) -> str:
        """The word that the oracle answers when every read agrees."""
        return WORDS[self.needles[0].word]

    def changed_at(self, position: int) -> "Prompt":
        """The same prompt with the filler token at `position` replaced by another filler token."""
        token = self.tokens[position]
        if token >= FILLERS:
            raise _refuse(f"token {position} is a fact, not filler", "change a token that says nothing")
        other = (token + 1) % FILLERS
        return Prompt((*self.tokens[:position], other, *self.tokens[position + 1 :]), self.page_tokens)

    def with_codeword(self, word: str) -> "Prompt":
        """The same prompt, one token changed: the first needle says `word`."""
        return Prompt((fact(self.needles[0].subject, _word(word)), *self.tokens[1:]), self.page_tokens)


def fact(subject: int, word: int) -> int:
    """The token that says that `subject` has the word number `word`."""
    return FILLERS + subject * len(WORDS) + word


def fact_of(token: int) -> tuple[int, int]:
    """Subject and word of a fact. `InputError` for a token that is none."""
    if token < FILLERS:
        raise _refuse(f"token {token} is filler where a fact belongs", "ask the oracle about its own prompts")
    return divmod(token - FILLERS, len(WORDS))


def write_prompt(shape: OracleShape, codeword: str = "red", *, episode: int = 0) -> Prompt:
    """A prompt of that length: filler, a needle on both edges of every page, and in every page a decoy that says "spark"."""
    name = f"countermark-oracle/1 episode {episode}"
    tokens = _numbers(f"{name} filler", shape.tokens, FILLERS)
    words = _numbers(f"{name} words", 2 * shape.pages, len(WORDS) - 1)
    places = _numbers(f"{name} decoys", shape.pages, shape.page_tokens - 2) + 1
    for page in range(shape.pages):
        start = page * shape.page_tokens
        for edge, position in enumerate((start, start + shape.page_tokens - 1)):
            tokens[position] = fact(2 * page + edge, int(words[2 * page + edge]))
        tokens[start + int(places[page])] = fact(2 * shape.pages + page, WORDS.index(SPARK))
    return Prompt(tuple(tokens.tolist()), shape.page_tokens).with_codeword(codeword)


def prompt_of(tokens: Sequence[int], shape: OracleShape) -> Prompt:
    """Tokens that came from outside as a prompt of that shape. `InputError` when a page edge holds no fact."""
    prompt = Prompt(tuple(tokens), shape.page_tokens)
    if len(tokens) != shape.tokens or SPARK in {WORDS[needle.word] for needle in prompt.needles}:
        raise _refuse(f"these {len(tokens)} tokens are no prompt of the oracle", "send a prompt that the oracle wrote")
    return prompt


def _numbers(label: str, count: int, below: int) -> NDArray[np.int64]:
    """`count` numbers from 0, below `below`, the same for the same label everywhere."""
    raw = hashlib.shake_256(label.encode()).digest(4 * count)
    return np.frombuffer(raw, "<u4").astype(np.int64) % below


def _word(word: str) -> int:
    if word not in WORDS or word == SPARK:
        raise _refuse(f"{word!r} is no codeword", f"use one of {', '.join(WORDS[:-1])}")
    return WORDS.index(word)


def _refuse(message: str, fix: str) -> InputError:
    return InputError(Code.SCHEMA_INVALID, message, fix=fix)
