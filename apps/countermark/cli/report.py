"""What a command says, as one value that text and JSON are printed from. Documents page, section 13."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from countermark.attestations.codes import Code, ExitCode, Outcome, Severity
from countermark.attestations.errors import CountermarkError, InvalidDocumentError
from countermark.attestations.findings import Finding
from countermark.attestations.release import __version__

SCHEMA = "https://countermark.dev/schema/report/v1"

_SHARED = frozenset(
    ("recorded", "statement", "statements", "subjects", "notes", "decisions", "question", "rows", "counts", "not_found"),
)
"""The members that several commands have; what one command alone tells stands under `details`."""

_VERDICTS = {
    ExitCode.YES: "OK",
    ExitCode.NO: "FAIL",
    ExitCode.USAGE: "INVALID",
    ExitCode.INVALID: "INVALID",
    ExitCode.CANNOT_TELL: "CANNOT_TELL",
    ExitCode.NOTHING: "NOTHING",
    ExitCode.TAMPERED: "TAMPERED",
}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that a command was to evaluate: an invariant of a contract, a requirement about an image, a document."""

    group: str
    name: str
    outcome: Outcome
    findings: tuple[Finding, ...] = ()

    @property
    def blocks(self) -> bool:
        """Whether it keeps the answer from being a yes; what nobody asked for does not."""
        idle = self.outcome in (Outcome.PASS, Outcome.SKIPPED, Outcome.NOT_APPLICABLE)
        return not idle or any(finding.severity is Severity.BLOCK for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Report:
    """The answer of one command. `text` is the human part, printed above the findings; `extra` is what only this command has;
    a `bare` report is its text alone; `forms` are what this command offers beside text and JSON; `checks` are what was to be evaluated,
    each with those of its findings that are not among `findings`, or all of them."""

    exit: ExitCode = ExitCode.YES
    evaluated: int = 0
    of: int = 0
    findings: tuple[Finding, ...] = ()
    not_evaluated: tuple[str, ...] = ()
    ledger: Mapping[str, Any] | None = None
    effective_time: str | None = None
    text: str = ""
    verdict: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    bare: bool = False
    forms: Mapping[str, str] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()

    @property
    def told(self) -> tuple[Finding, ...]:
        """Every finding once, those of the checks behind the others."""
        return tuple(dict.fromkeys([*self.findings, *(finding for check in self.checks for finding in check.findings)]))

    @classmethod
    def of_error(cls, error: CountermarkError) -> "Report":
        """The report of a command that could not answer."""
        mistakes = error.mistakes if isinstance(error, InvalidDocumentError) else (error,)
        return cls(exit=error.exit, findings=tuple(_as_finding(mistake) for mistake in mistakes))

    def verdict_word(self) -> str:
        """The word of the closed list that stands for the exit code, unless the command has its own."""
        return self.verdict or _VERDICTS[self.exit]

    def verdict_line(self, command: str) -> str:
        """The answer on one line: the verdict, what was evaluated, the ledger's head and the exit code."""
        counted = f" · evaluated {self.evaluated} of {self.of}" if self.of or self.exit == ExitCode.NOTHING else ""
        head = f" · ledger {self.ledger['origin']} at {self.ledger['size']}" if self.ledger else ""
        return f"{self.verdict_word()}  {command}{counted}{head} · exit {int(self.exit)}"

    def to_json(self, command: str) -> dict[str, Any]:
        """The report object; its shape is versioned by its schema."""
        details = {name: value for name, value in self.extra.items() if name not in _SHARED}
        return {
            "schema": SCHEMA,
            "command": command,
            "verdict": self.verdict_word(),
            "exit": int(self.exit),
            "evaluated": self.evaluated,
            "of": self.of,
            "findings": [finding.to_json() for finding in self.findings],
            "not_evaluated": list(self.not_evaluated),
            "ledger": self.ledger,
            "effective_time": self.effective_time,
            "tool": {"name": "countermark", "version": __version__},
            **{name: value for name, value in self.extra.items() if name in _SHARED},
            **({"details": details} if details else {}),
        }


def _as_finding(error: CountermarkError) -> Finding:
    return Finding(Code(error.code), Outcome.ERROR, error.fix, Severity.BLOCK, location=error.at, observed=error.message)
