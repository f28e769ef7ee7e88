"""Whether an answer is the one that was required, judged again from the words and the hash that a document records.

Documents print an answer after some normalisation and hash it before. The raw text is found again when its hash is the one recorded:
that shows which normalisation was applied, declared or not. What the document says of the match is never looked at.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

from countermark.attestations.codes import Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.contracts.adapters.fields import Field
from countermark.contracts.controls import exact_answer

DECLARED: Final = ("strip",)
"""The normalisation that the readers here declare: a first token begins with a space, which is no part of the word."""
_SEARCHED: Final = 4096
"""Characters; a longer answer is compared as it is printed, and no raw form of it is looked for."""
_AROUND: Final = ("", " ", "\n", "\n\n")
_CASES: Final = (str, str.capitalize, str.upper, str.title)
_STEPS: Final[dict[tuple[str, ...], tuple[bool, bool]]] = {
    ("none",): (False, False),
    ("strip",): (True, False),
    ("casefold",): (False, True),
    ("strip", "casefold"): (True, True),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """One judged answer.

    `raw` is the text whose digest is recorded, where it could be found again, and `steps` lead from it to the text that is printed.
    `outcome` is pass for equality under the declared normalisation, fail for a difference under every one, not-run where no digest is
    recorded to judge by, and otherwise inconclusive.
    """

    required: str
    observed: str
    sha256: str | None
    raw: str | None
    steps: tuple[str, ...]
    outcome: Outcome

    @property
    def digest(self) -> Digest | None:
        """The digest of the raw response."""
        return Digest(DigestKind.RESPONSE_RAW, self.sha256) if self.sha256 else None

    @property
    def shows(self) -> bool:
        """Whether the operands of an exact comparison are there."""
        return self.outcome is not Outcome.NOT_RUN


def judge(required: Field, observed: Field, response_sha256: Field) -> Answer | None:
    """Judge an answer by the fields that hold it; none where a document records no words to judge."""
    wanted, printed, sha256 = required.text, observed.text, response_sha256.hex64
    if wanted is None or printed is None:
        return None
    raw, steps = next(_origins(printed, sha256), (None, ()))
    return Answer(wanted, printed, sha256, raw, steps, _outcome(wanted, printed, sha256, raw))


def _outcome(wanted: str, printed: str, sha256: str | None, raw: str | None) -> Outcome:
    text = printed if raw is None else raw
    if not text.strip():
        return Outcome.INCONCLUSIVE
    if _widest(text) != _widest(wanted):
        return Outcome.FAIL
    if sha256 is None:
        return Outcome.NOT_RUN
    digest = Digest(DigestKind.RESPONSE_RAW, sha256)
    exact = raw is not None and exact_answer(wanted, str(digest), list(DECLARED), raw) is Outcome.PASS
    return Outcome.PASS if exact else Outcome.INCONCLUSIVE


def _origins(printed: str, sha256: str | None) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The raw texts with this hash from which a known normalisation leads to the printed one."""
    for steps, (strips, folds) in _STEPS.items():
        cases = _CASES if folds else _CASES[:1]
        around = _AROUND if strips and len(printed) <= _SEARCHED else _AROUND[:1]
        for case, before, after in product(cases, around, around):
            raw = f"{before}{case(printed)}{after}"
            if _applied(raw, strips, folds) == printed and Digest.of(DigestKind.RESPONSE_RAW, raw.encode()).hex == sha256:
                yield raw, steps


def normalised(text: str, steps: tuple[str, ...]) -> str:
    """The text after the steps that lead from a raw answer to a printed one; a combination that is not known changes nothing."""
    return _applied(text, *_STEPS.get(steps, (False, False)))


def _applied(raw: str, strips: bool, folds: bool) -> str:
    text = raw.strip() if strips else raw
    return text.casefold() if folds else text


def _widest(text: str) -> str:
    """The text under every normalisation that is known: what differs here differs under all of them."""
    return unicodedata.normalize("NFKC", text).strip().casefold()
