"""A contract over records that maintainers published: every known mistake in them is told with file and line, and nothing else.

`fixtures/published/contract.yaml` is the contract, `expected.yaml` says what is right. `docs/coverage.md` is written by this test when
`COUNTERMARK_WRITE_DOCS` is set, and compared with what it would write otherwise.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from countermark.attestations import yamltext
from countermark.attestations.findings import Finding
from countermark.contracts.contract import Contract
from countermark.contracts.verdict import ContractVerdict, evaluate
from countermark.recorders.file_trees import FolderTree

ROOT = Path(__file__).parents[2]
RECORDS = ROOT.parent / "shared" / "fixtures"
OWN = Path(__file__).parent / "fixtures" / "published"
PAGE = ROOT / "docs" / "coverage.md"
CATALOG = "contracts/keys.yaml"

pytestmark = pytest.mark.skipif(not RECORDS.exists(), reason="../shared fixtures, the published records, are not beside this checkout")


@dataclass(frozen=True, slots=True)
class RecordsTree:
    """The published records, and the one file that is ours."""

    inner: FolderTree

    def read(self, path: str) -> bytes:
        return (OWN / "keys.yaml").read_bytes() if path == CATALOG else self.inner.read(path)

    def glob(self, pattern: str) -> Sequence[str]:
        return self.inner.glob(pattern)


@pytest.fixture(scope="module")
def verdict() -> ContractVerdict:
    contract = Contract.load((OWN / "contract.yaml").read_bytes(), "contract.yaml")
    return evaluate(contract, RecordsTree(FolderTree(RECORDS)))


def expected() -> dict[str, Any]:
    value = yamltext.loads_located((OWN / "expected.yaml").read_bytes(), "expected.yaml").value
    assert isinstance(value, dict)
    return value


def spot(finding: Finding) -> str:
    at = finding.location
    return f"{at.file}:{at.line}" if at else ""


def places(entry: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Checker and place of everything that an entry explains."""
    return {(checker, at) for checker in entry["checkers"] for at in (*entry["at"], *entry.get("also", ()))}


def missed(entry: Mapping[str, Any], found: set[tuple[str, str]]) -> list[str]:
    return [at for at in entry["at"] if not any((checker, at) in found for checker in entry["checkers"])]


def false_alarms(verdict: ContractVerdict) -> list[Finding]:
    truth = expected()
    explained = {place for entry in (*truth["rows"], *truth["further"]) for place in places(entry)}
    return [finding for finding in verdict.findings if (finding.checker or "", spot(finding)) not in explained]


def told(verdict: ContractVerdict) -> set[tuple[str, str]]:
    return {(finding.checker or "", spot(finding)) for finding in verdict.findings}


def coverage_page(verdict: ContractVerdict) -> str:
    """The whole of `docs/coverage.md`."""
    return "\n".join(_page(verdict, expected())) + "\n"


def _page(verdict: ContractVerdict, truth: Mapping[str, Any]) -> Iterator[str]:
    found, alarms = told(verdict), false_alarms(verdict)
    count = sum(not missed(row, found) for row in truth["rows"])
    yield "# Coverage of known mistakes"
    yield ""
    yield "Written by `tests/contracts/test_published_records.py`; do not edit. One contract over records that maintainers of serving"
    yield "images published, held against a list of the mistakes that are known to be in them. The records are not in this repository."
    yield ""
    rows = len(truth["rows"])
    yield f"{rows} known mistakes stand in files that are here: {count} found, {rows - count} missed."
    yield f"{len(truth['controls'])} controls, which look wrong and are right; {len(alarms)} false alarms."
    silent = ", ".join(verdict.not_evaluated) or "none"
    yield f"Invariants evaluated: {verdict.evaluated} of {verdict.of}; not evaluated: {silent}."
    yield ""
    yield "| row | mistake | found by | at | result |"
    yield "|---|---|---|---|---|"
    for row in truth["rows"]:
        result = "missed at " + ", ".join(missed(row, found)) if missed(row, found) else "found"
        checkers = [checker for checker in row["checkers"] if any((checker, at) in found for at in row["at"])]
        yield f"| {row['row']} | {row['what']} | {_code(checkers)} | {_code(row['at'])} | {result} |"
    yield ""
    yield "Told as well, and right:"
    yield ""
    yield "| finding | by | at |"
    yield "|---|---|---|"
    for entry in truth["further"]:
        yield f"| {entry['what']} | {_code(entry['checkers'])} | {_code(entry['at'])} |"
    yield ""
    yield "Controls:"
    yield ""
    yield "| what looks wrong | checker | at | result |"
    yield "|---|---|---|---|"
    for control in truth["controls"]:
        flagged = [at for at in control["at"] if (control["checker"], at) in found]
        result = "flagged at " + ", ".join(flagged) if flagged else "left alone"
        yield f"| {control['what']} | `{control['checker']}` | {_code(control['at'])} | {result} |"
    yield ""
    yield "False alarms: " + (", ".join(f"`{finding.checker}` at `{spot(finding)}`" for finding in alarms) or "none") + "."
    yield ""
    yield f"Known mistakes whose files are not here, and so not tried: {', '.join(truth['not_here'])}."


def _code(texts: Sequence[str]) -> str:
    return ", ".join(f"`{text}`" for text in texts)


def test_every_known_mistake_is_found_at_its_file_and_line(verdict: ContractVerdict) -> None:
    found = told(verdict)
    assert {row["row"]: missed(row, found) for row in expected()["rows"] if missed(row, found)} == {}


def test_nothing_else_is_told(verdict: ContractVerdict) -> None:
    assert [(finding.checker, spot(finding), finding.observed) for finding in false_alarms(verdict)] == []


def test_what_looks_wrong_and_is_right_is_left_alone(verdict: ContractVerdict) -> None:
    found = told(verdict)
    used = {it.invariant.checker.name for it in verdict.judgements}
    for control in expected()["controls"]:
        assert control["checker"] in used
        assert [at for at in control["at"] if (control["checker"], at) in found] == []


def test_only_what_points_at_absent_files_is_not_evaluated(verdict: ContractVerdict) -> None:
    assert verdict.not_evaluated == ("launcher-here (evidence.refs-resolve): not-run",)


def test_every_row_of_the_list_of_mistakes_is_answered_for() -> None:
    page = RECORDS.parent / "reference" / "real-world-inconsistencies.md"
    mistakes = page.read_text(encoding="utf-8").split("\n## 3 ")[1]
    listed = re.findall(r"^\| (?:\*\*)?((?:[A-Z][0-9]{2}(?:[,–] ?)?)+)(?:\*\*)? \|", mistakes, re.MULTILINE)
    rows = {row for cell in listed for row in _rows(cell)}
    truth = expected()
    assert {entry["row"] for entry in truth["rows"]} | set(truth["not_here"]) == rows


def _rows(cell: str) -> list[str]:
    named = re.findall(r"[A-Z][0-9]{2}", cell)
    if "–" not in cell:
        return named
    return [f"{named[0][0]}{number:02}" for number in range(int(named[0][1:]), int(named[-1][1:]) + 1)]


def test_the_page_is_what_this_test_writes(verdict: ContractVerdict) -> None:
    page = coverage_page(verdict)
    if "COUNTERMARK_WRITE_DOCS" in os.environ:
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page
