"""The bench of the tamper cases: ledgers to spoil, the table of cases, and what a verifier says of each.

A case is a function named after its number in the study. It spoils a ledger (or a note, a proof, a key …) of its own and gives back a
*look*: a call without arguments that verifies what was spoilt and says what was seen. What must be seen stands in its decorator.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from ledger_box import Box, make_box, raw, varied

from countermark.attestations.codes import Code, ExitCode, Severity
from countermark.attestations.errors import CountermarkError
from countermark.ledger.audit import audit
from countermark.ledger.audit_report import AuditReport


@dataclass(frozen=True)
class Seen:
    """What a verifier said: its exit code, and each finding with the entries it names and what was observed."""

    exit: ExitCode
    findings: tuple[tuple[Code, str, str], ...] = ()

    def has(self, code: Code, where: str, says: str) -> bool:
        """Whether there is such a finding; `says` is a part of what was observed."""
        if code is Code.OK:
            return self.exit is ExitCode.YES and not self.findings
        return any(code is found and where == entries and says in text for found, entries, text in self.findings)


Look: TypeAlias = Callable[[], Seen]


@dataclass(frozen=True)
class Case:
    """One tamper case: what it does, and what must be seen."""

    number: int
    make: Callable[["Lab"], Look]
    code: Code
    exit: ExitCode
    where: str
    says: str

    @property
    def name(self) -> str:
        return self.make.__name__

    def holds(self, seen: Seen) -> bool:
        """Whether this is the verdict."""
        return seen.exit is self.exit and seen.has(self.code, self.where, self.says)


CASES: list[Case] = []
PAYLOAD_OF = "(SELECT payload_sha256 FROM entry WHERE idx = {})"
"""The digest of the payload that the column of an entry names."""
_EXITS = {
    Code.OK: ExitCode.YES,
    Code.WITHHELD: ExitCode.YES,
    Code.GUARD_MISSING: ExitCode.YES,
    Code.TAMPERED: ExitCode.TAMPERED,
    Code.LEDGER_TAMPERED: ExitCode.TAMPERED,
    Code.SPLIT_VIEW: ExitCode.TAMPERED,
    Code.ROLLBACK: ExitCode.TAMPERED,
    Code.MALFORMED: ExitCode.INVALID,
    Code.UNTRUSTED: ExitCode.NO,
    Code.SUSPECT: ExitCode.NO,
}


def case(
    code: Code, where: str = "", says: str = "", *, exits: ExitCode | None = None
) -> Callable[[Callable[["Lab"], Look]], Callable[["Lab"], Look]]:
    """Enter a case into the table; the exit code is that of its word, unless it is given."""

    def enter(make: Callable[["Lab"], Look]) -> Callable[["Lab"], Look]:
        number = int(make.__name__.split("_")[1])
        expected = _EXITS.get(code, ExitCode.CANNOT_TELL) if exits is None else exits
        CASES.append(Case(number, make, code, expected, where, says))
        return make

    return enter


@dataclass
class Lab:
    """Ledgers to take copies of: one of nine entries, one of 265 with a full tile and eleven checkpoints."""

    folder: Path
    _made: dict[str, Box] = field(default_factory=dict)
    _copies: int = 0

    def small(self) -> Box:
        """Entry 0; 1 key event; 2 document; 3 image with aliases; 4 restore run; 5 rejection; 6 test result with an unverified
        signature beside; 7 test result in a bundle; 8 the payload of 6 signed by another."""
        return self._copy("small")

    def large(self) -> Box:
        """As the small one, then 250 in one transaction and six in one each."""
        return self._copy("large")

    def space(self) -> Path:
        """A folder of its own."""
        self._copies += 1
        folder = self.folder / f"copy-{self._copies}"
        folder.mkdir()
        return folder

    def _copy(self, name: str) -> Box:
        if name not in self._made:
            self._made[name] = _make(self.folder / name, large=name == "large")
        return self._made[name].copy(self.space())


def _make(folder: Path, *, large: bool) -> Box:
    box = make_box(folder)
    box.append(*varied(box))
    if large:
        box.append(*(box.passed(number) for number in range(250)))
        for number in range(250, 256):
            box.append(box.passed(number))
    db = raw(box.path)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return box


def audited(box: Box, *, anchor: bool = False, held: Mapping[str, str] | None = None, **options: Any) -> Look:
    """Look at a ledger with `verify ledger`; without its anchor, so that the ledger alone must show it, unless that is asked for."""
    if not anchor:
        box.forget()

    def look() -> Seen:
        return of_report(audit(box.path, options.get("keys", box.keys), anchor=box.anchor, held=held or {}, **_without(options, "keys")))

    return look


def of_report(report: AuditReport) -> Seen:
    """What an audit said; a finding that merely informs of a missing anchor is not counted."""
    counted = (item for item in report.findings if not (item.severity is Severity.INFO and item.checker == "ledger.anchor"))
    return Seen(report.exit, tuple((item.code, item.subject or "", f"{item.checker}: {item.observed}") for item in counted))


def asked(question: Callable[[], object]) -> Look:
    """Look at something that answers, or raises a typed error that says why not."""

    def look() -> Seen:
        try:
            question()
        except CountermarkError as error:
            return Seen(error.exit, ((error.code, "", error.message),))
        return Seen(ExitCode.YES)

    return look


def all_of(*looks: Look) -> Look:
    """Several looks that must all say the same: the first answer, or that they differ."""

    def look() -> Seen:
        answers = [each() for each in looks]
        words = {(answer.exit, tuple(code for code, _, _ in answer.findings)) for answer in answers}
        return answers[0] if len(words) == 1 else Seen(ExitCode.INTERNAL, tuple((Code.OK, "", str(word)) for word in words))

    return look


def _without(options: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key != name}


def spoilt(box: Box, *statements: str, values: tuple[object, ...] = ()) -> Look:
    """Change a ledger past its guards, and audit it."""
    box.edit(*statements, values=values)
    return audited(box)


def loosened(box: Box, table: str) -> Box:
    """Make a table again without STRICT and keys, as a migration in batch mode would; its guards stand."""
    db = raw(box.path)
    triggers = db.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?", (table,)).fetchall()
    db.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    db.execute(f"CREATE TABLE {table} AS SELECT * FROM old_{table}")
    db.execute(f"DROP TABLE old_{table}")
    for (sql,) in triggers:
        db.execute(sql)
    db.close()
    return box


def refused(*asked_and_said: tuple[Callable[[], object], str]) -> Look:
    """Several questions, each of which must be refused in the words beside it: the first answer, or those that were given otherwise."""

    def look() -> Seen:
        answers = [(asked(question)(), said) for question, said in asked_and_said]
        other = [f"{said!r} expected: {seen}" for seen, said in answers if not any(said in text for _, _, text in seen.findings)]
        codes = {(seen.exit, *(code for code, _, _ in seen.findings)) for seen, _ in answers}
        return answers[0][0] if not other and len(codes) == 1 else Seen(ExitCode.INTERNAL, tuple((Code.OK, "", text) for text in other))

    return look
