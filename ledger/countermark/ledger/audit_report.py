"""What an audit says: findings of a closed vocabulary, each with the entries it concerns, and one exit code."""

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from countermark.attestations.codes import Code, ExitCode, Outcome, Severity
from countermark.attestations.errors import CannotTellError, CountermarkError, Location, RefusedError
from countermark.attestations.findings import Finding
from countermark.attestations.times import Instant

EXITS: Final = {
    Code.TAMPERED: ExitCode.TAMPERED,
    Code.SPLIT_VIEW: ExitCode.TAMPERED,
    Code.ROLLBACK: ExitCode.TAMPERED,
    Code.MALFORMED: ExitCode.INVALID,
    Code.UNTRUSTED: ExitCode.NO,
    Code.SUSPECT: ExitCode.NO,
}
"""The exit code of a blocking finding; those not named here leave something unknown, which is exit 4."""

VOCABULARY: Final = frozenset(
    {
        *(Code.TAMPERED, Code.SPLIT_VIEW, Code.ROLLBACK, Code.UNTRUSTED, Code.INCOMPLETE, Code.MALFORMED, Code.STALE, Code.UNSUPPORTED),
        *(Code.SUSPECT, Code.WITHHELD, Code.GUARD_MISSING, Code.CLOCK, Code.DUPLICATE),
    }
)
"""What a finding about a ledger may be called."""

_CALLED: Final = {
    ExitCode.TAMPERED: Code.TAMPERED,
    ExitCode.INVALID: Code.MALFORMED,
    ExitCode.NO: Code.UNTRUSTED,
    ExitCode.CANNOT_TELL: Code.INCOMPLETE,
}

_FIXES: Final = {
    Code.TAMPERED: "restore a backup and compare it with a checkpoint that somebody else holds; keep this file as evidence",
    Code.SPLIT_VIEW: "keep both notes: together they prove that the log showed two histories",
    Code.ROLLBACK: "put the newest copy back; an older one stands in its place",
    Code.MALFORMED: "find out which program wrote this; the log should never have admitted it",
    Code.UNSUPPORTED: "verify with a newer countermark",
    Code.UNTRUSTED: "add the signer's key to the trust policy, or distrust these entries",
    Code.SUSPECT: "have what is true of it said again under another key; `countermark query impact --key` lists what rests on it",
    Code.INCOMPLETE: "restore the missing rows from a backup",
    Code.GUARD_MISSING: "run `countermark db upgrade` on a copy and find out who changed the schema",
    Code.CLOCK: "compare the clocks of the log and its witnesses; believe no time that only the wrong one gives",
    Code.STALE: "get the newest checkpoint, and ask others which one they hold",
    Code.DUPLICATE: "find out which program admitted it twice",
    Code.WITHHELD: "nothing; the erasure is on record and the proof still holds",
}


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The result of one audit. `evaluated` of `of` entries were checked in full; `left_out` says what was not to be checked, and
    `withheld` of how many entries the payload was erased with a signed notice, so that the leaf alone remains to be checked.

    `protected_to` is the size of the newest checkpoint that somebody outside holds and that this ledger continues, and `held_by` are
    those who hold it; none when the audit was shown none.
    """

    origin: str | None
    size: int
    root: bytes
    evaluated: int
    of: int
    notices: int
    findings: tuple[Finding, ...]
    anchored: int | None
    protected_to: int | None
    held_by: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    withheld: int = 0

    @property
    def exit(self) -> ExitCode:
        """YES only if something was evaluated, all of it that is to be had, and no finding blocks."""
        blocking = [EXITS.get(finding.code, ExitCode.CANNOT_TELL) for finding in self.findings if finding.severity is Severity.BLOCK]
        if blocking:
            return ExitCode.first_of(blocking)
        if not self.of:
            return ExitCode.NOTHING
        return ExitCode.YES if self.evaluated + self.withheld == self.of else ExitCode.CANNOT_TELL


def write_record(report: AuditReport, ledger: Path, by: str, audited_ms: int) -> Path:
    """Write `NAME.audit` beside the ledger: that `by` audited it to this size at `audited_ms` (since 1970 UTC) and found it whole.

    `RefusedError` for a report that is not a yes; `CannotTellError` UNREADABLE when the file cannot be written.
    """
    if report.exit is not ExitCode.YES or report.left_out:
        raise RefusedError(Code.INCOMPLETE, "only a complete audit without a blocking finding is put on record", fix="settle its findings")
    path = ledger.with_suffix(".audit")
    fields = {
        "origin": report.origin,
        "size": report.size,
        "root": report.root.hex(),
        "audited": str(Instant.from_ms(audited_ms)),
        "by": by,
    }
    waiting = path.with_name(f"{path.name}.tmp")
    try:
        waiting.write_bytes(json.dumps(fields, indent=1).encode() + b"\n")
        waiting.replace(path)
    except OSError as error:
        with suppress(OSError):
            waiting.unlink()
        message = f"the record of the audit cannot be written: {error.strerror}"
        raise CannotTellError(Code.UNREADABLE, message, at=Location(str(path)), fix="make the folder writable") from None
    return path


@dataclass(frozen=True, slots=True)
class _What:
    code: Code
    checker: str
    observed: str
    required: str | None
    severity: Severity


class Findings:
    """Collects what an audit sees. The same thing seen at several entries is one finding that names them all.

    A `strict` audit is blocked by what otherwise only warns.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict
        self._seen: dict[_What, list[range]] = {}

    def error(self, error: CountermarkError, checker: str, what: str, *, entry: int | None = None) -> None:
        """Record what a check met, in the words of an audit."""
        code = error.code if error.code in VOCABULARY else _CALLED.get(error.exit, Code.INCOMPLETE)
        self.add(code, checker, f"{what}{error.message}", entry=entry)

    def add(
        self,
        code: Code,
        checker: str,
        observed: str,
        *,
        entry: int | None = None,
        required: str | None = None,
        severity: Severity = Severity.BLOCK,
    ) -> None:
        """Record one observation of the check `checker`, at an entry or at the ledger as a whole."""
        entries = self._at(_What(code, checker, observed, required, severity))
        if entry is not None:
            entries.append(range(entry, entry + 1))

    def extend(self, code: Code, checker: str, observed: str, entries: Iterable[int], *, required: str | None = None) -> None:
        """Record one observation at each of `entries`; nothing when there are none."""
        spans = [entries] if isinstance(entries, range) else [range(entry, entry + 1) for entry in entries]
        if any(spans):
            self.add(code, checker, observed, required=required)
            self._seen[_What(code, checker, observed, required, Severity.BLOCK)] += filter(None, spans)

    def spans(self) -> Iterable[tuple[_What, list[range]]]:
        """What was seen, and where."""
        return self._seen.items()

    def merge(self, other: "Findings") -> None:
        """Record all that `other` holds."""
        for what, entries in other.spans():
            self._at(what).extend(entries)

    def _at(self, what: _What) -> list[range]:
        blocks = self._strict and what.severity is Severity.WARN
        return self._seen.setdefault(replace(what, severity=Severity.BLOCK) if blocks else what, [])

    def result(self) -> tuple[Finding, ...]:
        """All findings, in the order in which the first of each was seen."""
        return tuple(_finding(what, entries) for what, entries in self._seen.items())


def _finding(what: _What, entries: list[range]) -> Finding:
    return Finding(
        what.code,
        Outcome.FAIL if what.severity is Severity.BLOCK else Outcome.INCONCLUSIVE,
        fix=_FIXES.get(what.code, "look into it before you rely on this ledger"),
        severity=what.severity,
        checker=f"ledger.{what.checker}",
        subject=_name_spans(entries) if entries else None,
        required=what.required,
        observed=what.observed,
    )


def name_entries(indices: Iterable[int]) -> str:
    """`entry 17`, or `entries 3, 5-9`."""
    return _name_spans(range(index, index + 1) for index in indices)


def _name_spans(spans: Iterable[range]) -> str:
    merged: list[range] = []
    for span in sorted(spans, key=lambda span: span.start):
        if merged and span.start <= merged[-1].stop:
            merged[-1] = range(merged[-1].start, max(merged[-1].stop, span.stop))
        else:
            merged.append(span)
    text = ", ".join(str(span.start) if len(span) == 1 else f"{span.start}-{span.stop - 1}" for span in merged)
    return f"entry {text}" if sum(map(len, merged)) == 1 else f"entries {text}"
