"""The digests that a text quotes: whole ones, typed or bare, in whatever case, and abbreviated ones of seven digits or more."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from countermark.attestations.digests import Digest, DigestKind

_QUOTED: Final = re.compile(
    r"(?<![0-9A-Za-z])(?:(oci-index|oci-manifest|oci-config):)?(sha256:)?([0-9a-f]{7,64}|[0-9A-Fa-f]{64})(?![0-9A-Za-z])"
)
_WHOLE: Final = 64


@dataclass(frozen=True, slots=True)
class Quoted:
    """A digest as a text writes it. `kind` is that of an image where the text says so; `marked` when `sha256:` stands before it."""

    hex: str
    kind: DigestKind | None
    marked: bool

    @property
    def whole(self) -> bool:
        """Whether it is a whole SHA-256."""
        return len(self.hex) == _WHOLE

    @property
    def typed(self) -> Digest | None:
        """The image that it names by kind and whole digest."""
        return Digest(self.kind, self.hex) if self.kind and self.whole else None

    def __str__(self) -> str:
        return f"{f'{self.kind}:' if self.kind else ''}{'sha256:' if self.marked else ''}{self.hex}"


def quoted_in(text: str) -> Iterator[tuple[int, int, Quoted]]:
    """Each digest with where it begins and ends. A word of letters alone, or of digits alone, is a digest only in full length."""
    for found in _QUOTED.finditer(text):
        kind, mark, digits = found.groups()
        mixed = re.search("[0-9]", digits) and re.search("[a-f]", digits)
        if mixed or len(digits) in (40, _WHOLE):
            yield found.start(), found.end(), Quoted(digits.lower(), DigestKind(kind) if kind else None, mark is not None)
