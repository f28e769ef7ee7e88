"""What a text for people says of images: status words in its sentences, markers, and which images it names at all.

A status word is said of the image nearest to it in its sentence. Where its sentence names none, it is said of those of the sentence before,
if it begins with a word that points back (`it`, `this`, `status`), or else of those at the head of its table's column, or that the heading
of its section names. With it count
the capabilities and the scope in its clause and in the clauses behind it that have no status word of their own. A word behind a negation
says nothing. Fenced code and comments are no sentences; images that fenced code names are named.
"""

import re
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from countermark.attestations.codes import Status
from countermark.attestations.digests import Digest
from countermark.attestations.errors import InputError, Location
from countermark.contracts.claims.markers import NumberMarker, StatusMarker, markers
from countermark.contracts.claims.quoted import Quoted, quoted_in
from countermark.contracts.claims.scopes import Named, asks, named_in
from countermark.contracts.locators.base import decoded
from countermark.contracts.locators.prose import negated, place_in, sentences, words_pattern

_COMMENT: Final = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_FENCED: Final = re.compile(r"(?ms)^ {0,3}(`{3,}|~{3,})[^\n]*$.*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)")
_CLAUSE: Final = re.compile(r",(?=\s)|[;:—–|]|\b(?:and|but|while)\b")
_OF_AN_IMAGE: Final = re.compile(r"(?i)\b(?:image|artifact|candidate|build)s?\b")
_POINTS_BACK: Final = re.compile(r"(?i)[\W_]*(?:it|its|this|that|these|they|both|status|state|verdict)\b")
_HEADING: Final = re.compile(r"\s*(#{1,6})\s")
_TABLE: Final = re.compile(r"(?m)^[ \t]*\|[^\n]*(?:\n[ \t]*\|[^\n]*)+")
_CELL_END: Final = re.compile(r"(?<!\\)\|")
_STATUS: Final = words_pattern(str(status) for status in Status)

Meaning = Callable[[Quoted], Sequence[Digest]]
"""The images that a quoted digest may mean: none for what is no image, several where it is cut too short, and for a digest that nobody
recorded the one that it names."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A status that a text gives to an image; of each group of `asks`, in the grammar of `--require`, at least one must bear it."""

    status: Status
    image: Digest
    asks: tuple[tuple[str, ...], ...]
    at: Location

    @property
    def is_specific(self) -> bool:
        """Whether it names a capability or a scope."""
        return any(len(group) == 1 or "@" in group[0] for group in self.asks)


@dataclass(frozen=True, slots=True)
class Mention:
    """An image that a text names, where it does so first."""

    quoted: Quoted
    images: tuple[Digest, ...]
    at: Location


@dataclass(frozen=True, slots=True)
class TextReading:
    """All that a text says. `mistakes` are markers that cannot be read; `rejects` are the images that it calls rejected, and
    `rejects_unnamed` says that it also calls an image rejected without naming it."""

    path: str
    claims: tuple[Claim, ...]
    numbers: tuple[NumberMarker, ...]
    mentions: tuple[Mention, ...]
    mistakes: tuple[InputError, ...]
    rejects: frozenset[Digest]
    rejects_unnamed: bool


@dataclass(frozen=True, slots=True)
class _Said:
    """A status word of a sentence and where it stands; `images` are what it is said of, none where it is negated."""

    status: Status
    start: int
    end: int
    images: tuple[Digest, ...]
    affirmed: bool


def read_text(data: bytes, path: str, meaning: Meaning, capabilities: Mapping[str, object]) -> TextReading:
    """Read a text; `InputError` for one that is not UTF-8."""
    text = decoded(data, path)
    said = list(_said(_blanked(text, _COMMENT, _FENCED), meaning))
    prose = [claim for sentence in said for claim in _claims(sentence, text, path, list(capabilities))]
    marked = list(markers(data, path, capabilities))
    stated = [Claim(item.status, item.image, ((item.ask,),), item.at) for item in marked if isinstance(item, StatusMarker)]
    rejecting = [word for _, _, words in said for word in words if word.status is Status.REJECTED and word.affirmed]
    return TextReading(
        path,
        (*prose, *stated),
        tuple(item for item in marked if isinstance(item, NumberMarker)),
        tuple(mentions(_blanked(text, _COMMENT), path, meaning)),
        tuple(item for item in marked if isinstance(item, InputError)),
        frozenset(image for word in rejecting for image in word.images)
        | {claim.image for claim in stated if claim.status is Status.REJECTED},
        any(_rejects_unnamed(sentence, words) for _, sentence, words in said),
    )


def _blanked(text: str, *patterns: re.Pattern[str]) -> str:
    """The text with what matches as blanks, so that all else stays where it is."""
    for pattern in patterns:
        text = pattern.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    return text


def _rejects_unnamed(sentence: str, words: Sequence[_Said]) -> bool:
    affirmed = [word for word in words if word.status is Status.REJECTED and word.affirmed and not word.images]
    return bool(affirmed) and _OF_AN_IMAGE.search(sentence) is not None


_Sentence = tuple[int, str, list[_Said]]
_Images = list[tuple[int, int, tuple[Digest, ...]]]
"""Where images are named in a sentence, and which."""


def _said(text: str, meaning: Meaning) -> Iterator[_Sentence]:
    """Each sentence with a status word: where it begins, itself, and its status words."""
    before: _Images = []
    heads = _Heads(text, meaning)
    sections: list[tuple[int, _Images]] = []
    for start, sentence in sentences(text):
        named = [(begin, end, images) for begin, end, quoted in quoted_in(sentence) for images in [tuple(meaning(quoted))] if images]
        heading = _HEADING.match(sentence)
        if heading:
            sections = [section for section in sections if section[0] < len(heading[1])] + [(len(heading[1]), named)]
        words = list(_STATUS.finditer(sentence))
        if words:
            section = next((images for _, images in reversed(sections) if images), [])
            meant = named or (before if _POINTS_BACK.match(sentence) else []) or section
            columns = [[] if named else heads.over(start + word.start()) for word in words]
            pairs = zip(words, columns, strict=True)
            yield start, sentence, [_word(word, sentence, column or meant, own=bool(named)) for word, column in pairs]
        before = named or (before if not sentence.strip() else [])


class _Heads:
    """The tables of a text, and the images at the heads of their columns."""

    def __init__(self, text: str, meaning: Meaning) -> None:
        self._text, self._meaning = text, meaning
        self._tables = [found.span() for found in _TABLE.finditer(text)]
        self._starts = [start for start, _ in self._tables]

    def over(self, offset: int) -> _Images:
        """The images that head the column of what stands at an offset; none outside tables."""
        number = bisect(self._starts, offset) - 1
        if number < 0 or offset >= self._tables[number][1]:
            return []
        column = len(_CELL_END.findall(self._text, self._text.rfind("\n", 0, offset) + 1, offset))
        first = self._starts[number]
        cells = _CELL_END.split(self._text[first : self._text.index("\n", first)])
        quoted = quoted_in(cells[column]) if column < len(cells) else ()
        return [(begin, end, images) for begin, end, one in quoted for images in [tuple(self._meaning(one))] if images]


def _word(word: re.Match[str], sentence: str, images: "_Images", *, own: bool) -> _Said:
    """A status word with what it is said of: the nearest image of its own sentence, or all that another sentence names."""
    nearest = min(images, key=lambda item: _apart(item[0], item[1], word.start(), word.end()), default=(0, 0, ()))[2]
    meant = nearest if own else tuple(dict.fromkeys(image for _, _, some in images for image in some))
    return _Said(Status(word.group().lower()), word.start(), word.end(), meant, not negated(sentence[: word.start()]))


def _claims(sentence: _Sentence, text: str, path: str, capabilities: Sequence[str]) -> Iterator[Claim]:
    start, own, words = sentence
    claiming = [word for word in words if word.affirmed and word.images]
    named = sorted(named_in(own, capabilities), key=lambda item: item.start) if claiming else []
    clauses = [found.start() for found in _CLAUSE.finditer(own)]
    for word in claiming:
        mine = [item for item in named if _owner(item, words, clauses) is word]
        at = place_in(text, path, start + word.start)
        yield from (Claim(word.status, image, asks(mine, capabilities), at) for image in word.images)


def _owner(item: Named, words: Sequence[_Said], clauses: Sequence[int]) -> _Said:
    """The status word that something named belongs to: the nearest in its clause, or else the last before it, or else the first."""
    beside = [word for word in words if bisect(clauses, word.start) == bisect(clauses, item.start)]
    before = [word for word in words if word.start < item.start]
    if beside:
        return min(beside, key=lambda word: _apart(item.start, item.end, word.start, word.end))
    return before[-1] if before else words[0]


def _apart(start: int, end: int, other_start: int, other_end: int) -> int:
    """How many characters lie between two spans."""
    return max(start - other_end, other_start - end, 0)


def mentions(text: str, path: str, meaning: Meaning) -> Iterator[Mention]:
    """Every image that a text names, where it does so first."""
    seen: set[str] = set()
    for start, _, quoted in quoted_in(text):
        if quoted.hex not in seen:
            seen.add(quoted.hex)
            images = tuple(meaning(quoted))
            if images:
                yield Mention(quoted, images, place_in(text, path, start))
