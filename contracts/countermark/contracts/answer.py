"""The answer to one demand, before it is put into words of a decision."""

from dataclasses import dataclass

from countermark.attestations.codes import Code, Status
from countermark.attestations.times import Instant
from countermark.contracts.evidence import Entry


@dataclass(frozen=True, slots=True)
class Considered:
    """An entry that was weighed, and why the answer does not rest on it; no reason means that it does."""

    entry: Entry
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A derived status and its code. `accepted` says whether the demand is met, which a policy may let a lesser status do.

    `codes` are all that apply, where they are more than the first: an exception must be made for each of them.
    """

    status: Status
    code: Code
    observed: str
    fix: str
    considered: tuple[Considered, ...] = ()
    accepted: bool = False
    next_expiry: Instant | None = None
    codes: tuple[Code, ...] = ()

    @property
    def every_code(self) -> tuple[Code, ...]:
        """All codes that apply, the first of them first."""
        return tuple(dict.fromkeys((self.code, *self.codes)))
