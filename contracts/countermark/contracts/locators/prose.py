"""What a text for people says of a digest: the status words in the same sentence, row or list item.

A sentence ends at `.`, `;`, `!` or `?` before a blank, at an empty line, at a list item and at a table row. A word belongs to the digest
nearest to it. A word behind a negation in its clause says nothing.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from countermark.attestations.errors import Location

_DIGEST = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{7,64}(?![0-9A-Za-z])")
_END = re.compile(r"[.;!?](?=[\s)\"'*_]|$)|\n[ \t]*\n|\n(?=[ \t]*(?:[-*+•|#>]|\d+[.)])[ \t])|\n(?=\|)")
_NEGATION = re.compile(r"(?i)\b(?:not|never|no|none|neither|nor|cannot|isn't|aren't|wasn't|weren't|don't|doesn't)\b")
_WITHOUT = re.compile(r"(?i)\bwithout\W+(?:\w+\W+){0,2}$")
"""It denies the word or two behind it, not what the rest of the clause says."""
_CLAUSE = re.compile(
    r"(?i)[,:—–]|\b(?:but|however|any ?more|any longer)\b|\band\b(?=[^,]*\bis\b)|\band\b(?=\s+(?:now|has|have|are|was|were|it|they|this)\b)"
)


@dataclass(frozen=True, slots=True)
class Claim:
    """A status word that is said of a digest, whole or abbreviated; and where the word stands."""

    word: str
    digest: str
    at: Location


def claims(text: str, path: str, words: Mapping[str, object]) -> Iterator[Claim]:
    """The claims of a text, each word as it is spelled in `words`."""
    spelled = {word.lower(): word for word in words}
    pattern = words_pattern(spelled)
    for start, sentence in sentences(text):
        digests = [found for found in _DIGEST.finditer(sentence) if re.search("[0-9]", found.group()) and re.search("[a-f]", found.group())]
        for word in pattern.finditer(sentence) if digests else ():
            if not negated(sentence[: word.start()]):
                nearest = min(digests, key=lambda digest: min(abs(digest.start() - word.end()), abs(word.start() - digest.end())))
                yield Claim(spelled[word.group().lower()], nearest.group(), place_in(text, path, start + word.start()))


def words_pattern(words: Iterable[str]) -> re.Pattern[str]:
    """An expression for each of the words as a whole word, the longest first; capitals do not matter, nor does `_emphasis_`."""
    listed = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    return re.compile(rf"(?i)(?:(?<![\w-])|(?<=\W_)|(?<=\W__))(?:{listed})(?![^\W_]|-|__?[^\W_])")


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """The sentences of a text, each with where it begins."""
    start = 0
    for end in _END.finditer(text):
        yield start, text[start : end.end()]
        start = end.end()
    yield start, text[start:]


def negated(before: str) -> bool:
    """Whether what follows these words of a sentence is behind a negation in its clause."""
    return _NEGATION.search(_CLAUSE.split(before)[-1]) is not None or _WITHOUT.search(before) is not None


def place_in(text: str, path: str, offset: int) -> Location:
    """The line and column of an offset."""
    return Location(path, text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))
