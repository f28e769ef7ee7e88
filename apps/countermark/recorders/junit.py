"""Record a JUnit report as an in-toto test-result.

Source: in-toto attestation predicate test-result v0.1, and the JUnit XML that pytest, Surefire, gtest and others write. Expat calls
back element by element; a DOCTYPE ends the reading at once, so that no entity is ever declared, let alone expanded or fetched.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, Location, NothingError
from countermark.attestations.located import JsonValue
from countermark.attestations.predicate_types import TEST_RESULT
from countermark.attestations.statement import Subject
from countermark.recorders.files import read_bytes
from countermark.recorders.recording import Recording

MAX_REPORT_BYTES = 64 << 20
MAX_DEPTH = 64
MAX_REASON_CHARACTERS = 300

_COUNT = re.compile(r"[0-9]{1,15}\Z")
_SUITES = ("testsuites", "testsuite")
_FAILURES = {"failure": "failures", "error": "errors"}
_NOT_RUN = frozenset({"notrun", "disabled", "skipped", "ignored", "suppressed"})


@dataclass(slots=True)
class Case:
    """One `testcase`: its name with its class before it, and what stands inside it."""

    name: str
    not_run: bool
    inside: set[str] = field(default_factory=set)
    reason: str = ""

    @property
    def failed(self) -> bool:
        """Whether it failed, or broke before or after."""
        return not self.inside.isdisjoint(_FAILURES)

    @property
    def skipped(self) -> bool:
        """Whether it was not run, or its outcome was not counted."""
        return (self.not_run or "skipped" in self.inside) and not self.failed


@dataclass(frozen=True, slots=True)
class Suite:
    """What a `testsuite` or `testsuites` element declares, the line it stands on, and the cases below it."""

    element: str
    line: int
    declared: Mapping[str, str]
    cases: list[Case] = field(default_factory=list)


def record_tests(path: Path, subject: Digest) -> Recording:
    """The test-result of the report at `path` about `subject`.

    A report without a test is a `NothingError`; a suite whose counts contradict its cases is an `InputError`. A test is listed once:
    as failed if it failed in any of its runs, else as warned if it was skipped in any.
    """
    data = read_bytes(path, MAX_REPORT_BYTES)
    cases = read_report(data, str(path))
    failed = _unique(case.name for case in cases if case.failed)
    warned = _unique(
        f"{case.name} (skipped: {case.reason or 'no reason given'})" for case in cases if case.skipped and case.name not in failed
    )
    told = set(failed) | {case.name for case in cases if case.skipped}
    passed = _unique(case.name for case in cases if case.name not in told)
    report = Subject.of(Digest.of(DigestKind.FILE, data), name=path.name)
    predicate: dict[str, JsonValue] = {
        "result": "FAILED" if failed else "WARNED" if warned else "PASSED",
        "configuration": [report.to_json()],
        "passedTests": [*passed],
        "warnedTests": [*warned],
        "failedTests": [*failed],
    }
    notes = () if passed or failed else ("every test was skipped; nothing was shown to work",)
    return Recording(TEST_RESULT, (Subject.of(subject),), predicate, notes)


def read_report(data: bytes, source: str) -> list[Case]:
    """The cases of a report, in its order."""
    reader = _Reader(source)
    reader.read(data)
    for suite in reader.suites:
        for message in _contradictions(suite):
            raise InputError(
                Code.RECORD_CONTRADICTED, message, at=Location(source, suite.line), fix="write the report again, with the run's own tool"
            )
    if not reader.cases:
        raise NothingError(Code.NOTHING_EVALUATED, "the report holds no test", at=Location(source), fix="give the report of a run")
    return reader.cases


class _Reader:
    """Builds suites and cases from what expat finds."""

    def __init__(self, source: str) -> None:
        self.cases: list[Case] = []
        self.suites: list[Suite] = []
        self._source = source
        self._open: list[Suite | Case | str] = []
        self._text: list[str] = []
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters

    def read(self, data: bytes) -> None:
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as error:
            what = expat.ErrorString(error.code)
            raise InputError(
                Code.UNREADABLE, f"not XML: {what}", at=Location(self._source, error.lineno, error.offset + 1), fix="run the tests again"
            ) from None
        except (ValueError, LookupError) as error:  # an encoding that is not known
            raise self._error(f"not XML: {error}", "write the report as UTF-8") from None

    def _doctype(self, *_declaration: object) -> None:
        raise self._error("a DOCTYPE, which could declare entities, is not read", "remove it; no test tool writes one")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise self._error(f"nested deeper than {MAX_DEPTH}", "give a JUnit report", Code.TOO_LARGE)
        if not self._open and name not in _SUITES:
            raise self._error(f"<{name}> is not the root of a JUnit report", "give a file with <testsuites> or <testsuite>")
        above = self._open[-1] if self._open else None
        self._open.append(self._opened(name, attributes, above))

    def _opened(self, name: str, attributes: dict[str, str], above: Suite | Case | str | None) -> Suite | Case | str:
        line = self._parser.CurrentLineNumber
        if name in _SUITES and not isinstance(above, Case | str):
            suite = Suite(name, line, attributes)
            self.suites.append(suite)
            return suite
        if name == "testcase" and isinstance(above, Suite):
            said = {attributes.get("status", "").lower(), attributes.get("result", "").lower()}
            name = "::".join(part for part in (attributes.get("classname"), attributes.get("name")) if part)
            if not name:
                raise self._error("a testcase without a name", "write the report again, with the run's own tool", Code.SCHEMA_INVALID)
            case = Case(name, not_run=not _NOT_RUN.isdisjoint(said))
            self.cases.append(case)
            for around in self._open:
                if isinstance(around, Suite):
                    around.cases.append(case)
            return case
        if isinstance(above, Case):
            above.inside.add(name)
            above.reason = attributes.get("message", above.reason) if name == "skipped" else above.reason
        self._text = []
        return name

    def _characters(self, text: str) -> None:
        if self._open and self._open[-1] == "skipped":
            self._text.append(text)

    def _end(self, _name: str) -> None:
        closed = self._open.pop()
        above = self._open[-1] if self._open else None
        if closed == "skipped" and isinstance(above, Case):
            above.reason = " ".join((above.reason or "".join(self._text)).split())[:MAX_REASON_CHARACTERS]

    def _error(self, message: str, fix: str, code: Code = Code.UNREADABLE) -> InputError:
        return InputError(code, message, at=Location(self._source, self._parser.CurrentLineNumber), fix=fix)


def _contradictions(suite: Suite) -> Iterator[str]:
    """Declared counts that the cases below the suite cannot explain; a count that is not declared is not compared.

    Tools count a test that ran twice once or twice, and one that was disabled as skipped or as `disabled`.
    """
    ranges = {"tests": (len({case.name for case in suite.cases}), len(suite.cases))}
    for child, attribute in _FAILURES.items():
        found = [case.name for case in suite.cases if child in case.inside]
        ranges[attribute] = (len(set(found)), len(found))
    skipped = sum("skipped" in case.inside and not case.failed for case in suite.cases)
    ranges["skipped"] = (skipped, sum("skipped" in case.inside or case.not_run for case in suite.cases))
    for attribute, (least, most) in ranges.items():
        text = suite.declared.get(attribute)
        if text is not None and not (_COUNT.match(text) and least <= int(text) <= most):
            yield f"<{suite.element}> declares {attribute}={text[:20]!r}; {most} of them stand(s) below it"


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
