"""The tamper table: each case of the study against a real ledger, each with its verdict."""

import pytest

from . import (  # noqa: F401  # they enter their cases
    cases_admission,
    cases_backups,
    cases_derived,
    cases_entries,
    cases_exports,
    cases_forms,
    cases_history,
    cases_keys,
    cases_notes,
    cases_outside,
    cases_proofs,
    cases_tables,
    cases_times,
    cases_witness,
)
from .lab import CASES, Case, Lab


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case, lab: Lab) -> None:
    seen = case.make(lab)()
    assert case.holds(seen), seen


def test_every_number_of_the_study_has_its_case() -> None:
    assert {case.number for case in CASES} == set(range(1, 65))
    assert len({case.name for case in CASES}) == len(CASES)
