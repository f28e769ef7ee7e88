"""`verify attestation`: is each envelope signed by somebody trusted here, and does it say what is asked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from countermark.actions.envelopes import read_envelope, read_texts
from countermark.attestations.codes import Code, ExitCode, Outcome
from countermark.attestations.digests import Digest
from countermark.attestations.envelope import Envelope
from countermark.attestations.errors import CountermarkError, InputError, Location, RefusedError
from countermark.attestations.findings import Finding
from countermark.attestations.times import Instant
from countermark.attestations.verifier import Trust, VerifiedStatement, Verifier


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a statement must say beside being signed: its subject and its predicate type, where asked."""

    subject: Digest | None = None
    predicate_type: str | None = None

    @classmethod
    def parse(cls, subject: str | None, predicate_type: str | None) -> Self:
        """As the options say it; `InputError` for a subject that is no digest."""
        return cls(Digest.parse(subject) if subject else None, predicate_type)

    def check(self, verified: VerifiedStatement, source: str) -> None:
        """`RefusedError` SUBJECT_MISMATCH or PAYLOAD_TYPE when the statement is about something else."""
        statement, at = verified.statement, Location(source)
        if self.predicate_type and statement.predicate_type != self.predicate_type:
            message = f"the predicate type is {statement.predicate_type}, not {self.predicate_type}"
            raise RefusedError(Code.PAYLOAD_TYPE, message, at=at, fix="give an attestation of the type that is asked for")
        if self.subject and not any(subject.may_be(self.subject) for subject in statement.subjects):
            message = f"{self.subject} is not among its subjects"
            raise RefusedError(Code.SUBJECT_MISMATCH, message, at=at, fix="give the attestation of this artifact")


@dataclass(frozen=True, slots=True)
class Checked:
    """One envelope with its verified statement, or with the error that it met; no envelope when it could not be read."""

    source: str
    envelope: Envelope | None
    error: CountermarkError | None
    verified: VerifiedStatement | None = None

    @property
    def exit(self) -> ExitCode:
        """What this envelope alone would exit with."""
        return self.error.exit if self.error else ExitCode.YES

    def finding(self) -> Finding | None:
        """What went wrong, as a finding."""
        if self.error is None:
            return None
        outcome = Outcome.FAIL if self.error.exit is ExitCode.NO else Outcome.ERROR
        at = self.error.at or Location(self.source)
        return Finding(self.error.code, outcome, self.error.fix, location=at, observed=self.error.message)


def check_files(paths: Sequence[str], trust: Trust, now: Instant, expected: Expectation) -> list[Checked]:
    """Every envelope of the files, verified at `now`. An unreadable file is one of the results."""
    verifier = Verifier(trust)
    return [result for path in paths for result in _check_file(path, verifier, now, expected)]


def _check_file(path: str, verifier: Verifier, now: Instant, expected: Expectation) -> Iterator[Checked]:
    try:
        for source, data in read_texts(path):
            yield check_one(read_envelope(data, source), source, verifier, now, expected)
    except InputError as error:
        yield Checked(path, None, error)


def check_one(item: Envelope | InputError, source: str, verifier: Verifier, now: Instant, expected: Expectation) -> Checked:
    """One envelope, verified; whatever it meets is in the result."""
    if isinstance(item, InputError):
        return Checked(source, None, item)
    try:
        verified = verifier.verify(item, at=now)
        expected.check(verified, item.source)
    except CountermarkError as error:
        return Checked(item.source, item, error)
    return Checked(item.source, item, None, verified)
