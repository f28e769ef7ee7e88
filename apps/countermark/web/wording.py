"""The words, signs and style classes of the pages. Colour is never the only carrier: every status has a sign and its word."""

from dataclasses import dataclass
from typing import Final

from countermark.attestations.codes import Code, Outcome, Status

_SIGNS: Final = {
    Status.QUALIFIED: "✓",
    Status.RESEARCH_ONLY: "◐",
    Status.IMPLEMENTED: "○",
    Status.UNSUPPORTED: "–",
    Status.UNQUALIFIED: "!",
    Status.REJECTED: "✗",
}
MEANINGS: Final = {
    Status.QUALIFIED: "evidence that counts covers exactly this scope",
    Status.RESEARCH_ONLY: "it passed, and its record claims no more than research",
    Status.IMPLEMENTED: "built and tested, or run on no GPU; nothing qualifies it",
    Status.UNSUPPORTED: "no receipt covers it: nobody tested it here",
    Status.UNQUALIFIED: "it was tested and failed, or its evidence does not suffice",
    Status.REJECTED: "somebody who may has rejected it, and nobody lifted that",
}
_TONES: Final = {
    "ALLOW": ("✓", "qualified"),
    "DENY": ("✗", "rejected"),
    Outcome.PASS: ("✓", "qualified"),
    Outcome.FAIL: ("✗", "rejected"),
    Outcome.INCONCLUSIVE: ("!", "unqualified"),
    Outcome.ERROR: ("!", "unqualified"),
    "verified": ("✓", "qualified"),
    "recompute": ("✗", "rejected"),
}


@dataclass(frozen=True, slots=True)
class Badge:
    """A word with its sign; `tone` names the style of a status."""

    word: str
    sign: str
    tone: str


NOT_TESTED: Final = Badge("not tested", "·", "silent")


def status_badge(word: str) -> Badge:
    """The badge of a status; a word that is none is shown as it is."""
    known = next((status for status in Status if status == word), None)
    return Badge(word, _SIGNS[known], known) if known else Badge(word, "?", "silent")


def outcome_badge(word: str) -> Badge:
    """The badge of an outcome or a verdict; whatever is neither good nor bad is quiet."""
    sign, tone = _TONES.get(word, ("·", "silent"))
    return Badge(word, sign, tone)


def code_badge(code: str) -> Badge:
    """The badge of a signature's result code."""
    return Badge(code, "✓", "qualified") if code == Code.OK else Badge(code, "✗", "rejected")


def grouped(number: int) -> str:
    """A number with its thousands apart."""
    return f"{number:,}"


def counted(number: int, one: str, many: str = "") -> str:
    """A number of things, in the singular or plural."""
    return f"{grouped(number)} {one if number == 1 else many or f'{one}s'}"
