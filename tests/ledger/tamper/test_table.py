"""The tamper table: each case of the study against a real ledger, each with its verdict."""

import pytest

from .cases import CASES
from .lab import Case, Lab


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case, lab: Lab) -> None:
    seen = case.make(lab)()
    assert case.holds(seen), seen


def test_every_number_of_the_study_has_its_case() -> None:
    assert {case.number for case in CASES} == set(range(1, 65))
    assert len({case.name for case in CASES}) == len(CASES)
