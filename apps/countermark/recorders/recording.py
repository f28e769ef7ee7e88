"""What a recorder hands over: a predicate and its subjects, unsigned; and what a check of a recorded predicate found."""

from collections.abc import Callable
from dataclasses import dataclass

from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.attestations.statement import Subject

Progress = Callable[[int, int], None]
"""Told `(done_bytes, total_bytes)` while a recorder hashes; called from one thread at a time."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One statement to be: `predicate_name` is a name below our base URI, or the whole URI of somebody else's predicate.

    The notes are for the person who records (what was left out, what could not be proven); they are not part of the statement.
    """

    predicate_name: str
    subjects: tuple[Subject, ...]
    predicate: dict[str, JsonValue]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """How many facts of a predicate were compared with the world, and each one that differs."""

    evaluated: int
    findings: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        """Whether something was compared and all of it agreed."""
        return self.evaluated > 0 and not self.findings


def silent(_done_bytes: int, _total_bytes: int) -> None:
    """The progress of a caller who does not watch."""
