"""The tamper table: each case of the study against a real ledger, each with its verdict."""

import pytest

from . import cases_admission, cases_derived, cases_entries, cases_history, cases_notes, cases_proofs, cases_tables  # noqa: F401  # they enter their cases
from .lab import CASES, Case, Lab


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case, lab: Lab) -> None:
    seen = case.make(lab)()
    assert case.holds(seen), seen


ELSEWHERE: dict[int, str] = {
    31: "one witness counted twice: the witness policy of `ledger prove` and `verify proof`",
    32: "a signature of another type as a cosignature: cosignatures",
    33: "the time of a cosignature: cosignatures",
    37: "a bundle about another payload than its log entry: sigstore bundles and proof files",
    53: "an export whose checkpoint is newer than its tiles: `verify export`",
    54: "an export of which a file was changed: `verify export`",
    55: "an entry bundle with trailing bytes: `verify export`",
    56: "a checkpoint that is too old: the witness policy",
}


def test_every_number_of_the_study_has_its_case() -> None:
    assert {case.number for case in CASES} | ELSEWHERE.keys() == set(range(1, 65))
    assert len({case.name for case in CASES}) == len(CASES)
