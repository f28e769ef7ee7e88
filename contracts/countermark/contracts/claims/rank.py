"""How much a status word says for an image."""

from collections.abc import Mapping
from typing import Final

from countermark.attestations.codes import Status

RANK: Final[Mapping[Status, int]] = {
    Status.REJECTED: 0,
    Status.UNSUPPORTED: 0,
    Status.UNQUALIFIED: 0,
    Status.IMPLEMENTED: 1,
    Status.RESEARCH_ONLY: 2,
    Status.QUALIFIED: 3,
}
"""A text may say what is derived, or less. The words that say nothing for an image are equal here."""
