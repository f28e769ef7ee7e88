"""Printing: results on stdout, everything else on stderr, JSON alone on stdout when JSON is asked for."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import typer

from countermark.actions.new_files import write_whole
from countermark.attestations.codes import Code, Outcome, Severity
from countermark.attestations.errors import CannotTellError, CountermarkError, InputError, Location, UsageError
from countermark.attestations.findings import Finding
from countermark.cli.formats import FINDINGS, render
from countermark.cli.report import Report

_PIPE_CLOSED = 141
_MARKS = {Outcome.PASS: "✓", Outcome.FAIL: "✗", Outcome.ERROR: "✗"}
_COLOURS = {"OK": "green", "ALLOW": "green", "FAIL": "red", "DENY": "red", "TAMPERED": "red", "INVALID": "red"}


PAGE = "html"
"""The format of pages, which are always written to a file."""


class Settings:
    """What the global flags said; set once, by the program's callback."""

    debug = False
    quiet = False
    verbose = False
    colour = True


def finish(command: str, outputs: Sequence[str], act: Callable[[], Report], *, forms: Sequence[str] = ()) -> None:
    """Run a command's action, print its report in each format that was asked for, and leave with its exit code.

    `forms` are the formats that this command offers beside text and JSON. A command that cannot answer says so in all of them but those
    that only it can write.
    """
    targets = [_target(text, forms) for text in outputs] or [("text", None)]
    try:
        report = _acted(act)
    except CountermarkError as error:
        if Settings.debug:
            raise
        report = Report.of_error(error)
        complain(error)
        targets = [target for target in targets if target[0] in ("json", *FINDINGS)]
    for form, path in targets:
        _emit(_render(form, command, report), form, path)
        if form == "github":
            _add_step_summary(command, report)
    raise typer.Exit(int(report.exit))


def wants_page(outputs: Sequence[str]) -> bool:
    """Whether a page is asked for, so that what it alone shows is gathered only then."""
    return any(text.partition("=")[0] == PAGE for text in outputs)


def _acted(act: Callable[[], Report]) -> Report:
    """What the action reports. What the system refuses and no reader has put into words yet is told here; it is no crash."""
    try:
        return act()
    except BrokenPipeError:
        raise
    except OSError as error:
        at = Location(str(error.filename)) if error.filename else None
        why = error.strerror or str(error)
        raise CannotTellError(Code.UNREADABLE, why, at=at, fix="check the path, the rights and the disk") from error


def _target(text: str, forms: Sequence[str]) -> tuple[str, Path | None]:
    form, _, path = text.partition("=")
    known = ("text", "json", *forms)
    if form not in known:
        raise UsageError(Code.UNKNOWN_NAME, f"-o {form}: this command prints {', '.join(known)}", fix="write -o FORMAT or -o FORMAT=FILE")
    if form == PAGE and not path:
        raise UsageError(Code.UNREADABLE, "a page is a file of its own, and none is named", fix=f"write -o {PAGE}=FILE.html")
    return form, Path(path) if path else None


def complain(error: CountermarkError) -> None:
    """One line a mistake on stderr: where, what, its code, and the fix. Where nobody can be told, the exit code still says it."""
    with suppress(OSError):
        for line in str(error).splitlines():
            sys.stderr.write(f"countermark: {line}\n")
        sys.stderr.flush()


def _render(form: str, command: str, report: Report) -> str:
    if form == "json":
        return json.dumps(report.to_json(command), indent=2, ensure_ascii=False)
    if form in FINDINGS:
        return render(form, command, report)
    if form != "text":
        return report.forms[form]
    return render_text(command, report)


def _add_step_summary(command: str, report: Report) -> None:
    """Append the report to the page of a GitHub job, where one is asked for by the environment that GitHub gives to a step."""
    page = os.environ.get("GITHUB_STEP_SUMMARY")
    if not page:
        return
    from countermark.cli.formats.github import step_summary

    try:
        with Path(page).open("a", encoding="utf-8") as out:
            out.write(step_summary(command, report))
    except OSError as error:
        raise _unwritable(page, error) from None


def _unwritable(path: str, error: OSError) -> InputError:
    why = error.strerror or "it cannot be written"
    return InputError(Code.UNREADABLE, why, at=Location(path), fix="give a path that can be written")


def _emit(text: str, form: str, path: Path | None) -> None:
    if path is None:
        if not (form == "text" and Settings.quiet):
            _print(_coloured(text) if form == "text" else text)
        return
    try:
        if form == PAGE:
            write_whole(path, (text + "\n").encode())
        else:
            path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise _unwritable(str(path), error) from None


def say(line: str) -> None:
    """A line of a story that is told while it happens; not with --quiet."""
    if not Settings.quiet:
        _print(_coloured(line))


def _print(text: str) -> None:
    """Print, and leave as a shell would when the reader of the pipe has gone."""
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise SystemExit(_PIPE_CLOSED) from None
    except OSError as error:
        why = f"the report cannot be written: {error.strerror}"
        raise InputError(Code.UNREADABLE, why, at=Location("standard output"), fix="give it room, or -o FORMAT=FILE") from None


def render_text(command: str, report: Report) -> str:
    """The report for people: the command's own text, then every finding, then the verdict line."""
    if report.bare:
        return report.text
    parts = [report.text] if report.text else []
    parts.extend(finding_text(finding) for finding in report.findings)
    parts.extend(f"- not evaluated: {name}" for name in report.not_evaluated)
    if Settings.verbose and report.extra:
        parts.append(json.dumps(dict(report.extra), indent=2, ensure_ascii=False))
    parts.append(report.verdict_line(command))
    return "\n".join(parts)


def finding_text(finding: Finding) -> str:
    """A finding as an aligned block of lines. What a file says is shown without control characters, since a terminal obeys those."""
    from countermark.contracts.explain_text import plain

    mark = "!" if finding.severity is not Severity.BLOCK else _MARKS.get(finding.outcome, "?")
    where = str(finding.location) if finding.location else (finding.subject or "")
    first = "  ".join(part for part in (f"{mark} {where}".rstrip(), finding.checker or "", f"[{finding.code}]") if part)
    rows = (("required", finding.required), ("observed", finding.observed), ("evidence", ", ".join(finding.evidence)), ("fix", finding.fix))
    return "\n".join([plain(first), *(f"    {name:<9} {plain(text)}" for name, text in rows if text)])


def _coloured(text: str) -> str:
    if not Settings.colour or not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return text
    return "\n".join(_colour_line(line) for line in text.splitlines())


def _colour_line(line: str) -> str:
    word = line.split(" ", 1)[0]
    if word in _COLOURS:
        return typer.style(word, fg=_COLOURS[word], bold=True) + line[len(word) :]
    if word in ("✗", "✓", "!"):
        return typer.style(word, fg={"✗": "red", "✓": "green", "!": "yellow"}[word]) + line[1:]
    return line
