"""The one error tree of the program.

A verdict is data (a `Finding`, a decision); an error is an exception that says why there is no verdict. Each class is one row of
the exit-code table, so a caller who lets an error travel cannot turn it into the wrong exit code.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from countermark.attestations.codes import Code, ExitCode


@dataclass(frozen=True, slots=True)
class Location:
    """Where in an input something was found. Lines and columns count from 1; the pointer is RFC 6901."""

    file: str
    line: int | None = None
    column: int | None = None
    pointer: str | None = None

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        return f"{place} {self.pointer}" if self.pointer else place


class CountermarkError(Exception):
    """Why there is no verdict: a code of the closed list, where, and the action that mends it."""

    exit: ClassVar[ExitCode] = ExitCode.INTERNAL

    def __init__(self, code: Code, message: str, *, at: Location | None = None, fix: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.at = at
        self.fix = fix

    def __str__(self) -> str:
        """One line: where, what (with its code), and the fix."""
        where = f"{self.at}: " if self.at else ""
        fix = f"; {self.fix}" if self.fix else ""
        return f"{where}{self.message} [{self.code}]{fix}"


class RefusedError(CountermarkError):
    """The answer is no: a signature or proof is bad, or a rule forbids the act (exit 1)."""

    exit = ExitCode.NO


class UsageError(CountermarkError):
    """The command was called in a way that has no meaning (exit 2)."""

    exit = ExitCode.USAGE


class InputError(CountermarkError):
    """The input is malformed, inconsistent with its schema, or cannot be read (exit 3)."""

    exit = ExitCode.INVALID


class InvalidDocumentError(InputError):
    """A document with one or more mistakes; all of them are told."""

    def __init__(self, mistakes: Sequence[InputError]) -> None:
        first = mistakes[0]
        super().__init__(first.code, first.message, at=first.at, fix=first.fix)
        self.mistakes = tuple(mistakes)

    def __str__(self) -> str:
        return "\n".join(str(mistake) for mistake in self.mistakes)


class CannotTellError(CountermarkError):
    """Something that the answer needs is not here: a ledger, a trust root, a device (exit 4)."""

    exit = ExitCode.CANNOT_TELL


class NothingError(CountermarkError):
    """There was nothing to evaluate (exit 5)."""

    exit = ExitCode.NOTHING


class TamperError(CountermarkError):
    """A ledger or bundle contradicts its own proof (exit 6)."""

    exit = ExitCode.TAMPERED
