"""Stored requests for a served model: what is sent, the one word that answers it, and how an answer is compared with that word."""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.attestations.jsontext import loads
from countermark.attestations.located import JsonValue

NORMALISATIONS: Final[Mapping[str, Callable[[str], str]]] = {
    "none": str,
    "strip": str.strip,
    "casefold": str.casefold,
    "nfc": lambda text: unicodedata.normalize("NFC", text),
    "nfkc": lambda text: unicodedata.normalize("NFKC", text),
}
"""What may be done to an answer, by name; the steps of a list are done in its order."""

_DEFAULTS: Final[Mapping[str, JsonValue]] = {"max_tokens": 16, "temperature": 0}
_FORCED: Final[Mapping[str, JsonValue]] = {"stream": False, "n": 1, "echo": False}


@dataclass(frozen=True, slots=True)
class Question:
    """A stored request, the word that answers it, and the normalisation under which answers are compared."""

    request: Mapping[str, JsonValue]
    required: str
    normalisation: tuple[str, ...] = ("none",)

    def __post_init__(self) -> None:
        if not self.normalisation or not set(self.normalisation) <= NORMALISATIONS.keys():
            raise _refuse(f"{list(self.normalisation)} is no normalisation", f"use {', '.join(NORMALISATIONS)}")
        if not isinstance(self.prompt, str) and not _is_tokens(self.prompt):
            raise _refuse("the request has no prompt of text or token ids", "store the body of a completion request")
        if self.request.get("temperature", 0) != 0:
            raise _refuse("the request is not greedy", "store it with temperature 0, or an answer proves nothing")

    @classmethod
    def load(cls, path: Path, required: str, normalisation: Sequence[str] = ("none",)) -> Self:
        """Read a stored request, a JSON object with at least `prompt`. Raises `InputError`."""
        try:
            value = loads(path.read_bytes(), str(path))
        except OSError as error:
            raise InputError(
                Code.UNREADABLE, f"cannot be read: {error.strerror}", at=Location(str(path)), fix="store the request there"
            ) from None
        if not isinstance(value, dict):
            raise InputError(
                Code.SCHEMA_INVALID, "a stored request is a JSON object", at=Location(str(path)), fix="store the body of a request"
            )
        return cls(value, required, tuple(normalisation))

    @property
    def prompt(self) -> JsonValue:
        """The text, or the list of token ids, that is completed."""
        return self.request.get("prompt")

    def body(self, model: str) -> dict[str, JsonValue]:
        """What is sent: the stored members, for this model, greedy, as one whole answer."""
        return {**_DEFAULTS, **self.request, **_FORCED, "model": model}

    def is_answered_by(self, text: str) -> bool:
        """Whether a text is exactly the word, nothing before it and nothing after it, under the normalisation."""
        return self.normalised(text) == self.normalised(self.required)

    def normalised(self, text: str) -> str:
        """The text after all steps."""
        for step in self.normalisation:
            text = NORMALISATIONS[step](text)
        return text

    def differs_in_one_token(self, other: "Question") -> bool:
        """Whether both prompts have the same length and differ in one place: a token id, or a word of a text."""
        one, two = _places(self.prompt), _places(other.prompt)
        return type(self.prompt) is type(other.prompt) and len(one) == len(two) and sum(a != b for a, b in zip(one, two, strict=True)) == 1


def _places(prompt: JsonValue) -> list[JsonValue]:
    if isinstance(prompt, str):
        return list(prompt.split())
    return prompt if isinstance(prompt, list) else []


def _is_tokens(prompt: JsonValue) -> bool:
    return isinstance(prompt, list) and bool(prompt) and all(type(token) is int for token in prompt)


def _refuse(message: str, fix: str) -> InputError:
    return InputError(Code.SCHEMA_INVALID, message, fix=fix)
