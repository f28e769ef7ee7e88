"""Each check of the verifier is needed: without it a tamper case slips through."""

import struct
import time
from collections.abc import Iterator, Sequence

import pytest
from cryptography.exceptions import InvalidSignature

from . import (  # noqa: F401  # they enter their cases
    cases_admission,
    cases_derived,
    cases_entries,
    cases_history,
    cases_notes,
    cases_outside,
    cases_proofs,
    cases_tables,
    cases_times,
)
from .lab import CASES, Case, Lab, Look
from .mutants import Mutant, mutants

MUTANTS = list(mutants())
SAMPLE = [mutant for mutant in MUTANTS if mutant.module in ("audit_rows", "audit_schema")]
OF_SAMPLE = (18, 39, 40, 59)
"""The numbers of the cases that these checks are for: few enough to be made again in every run of the tests."""


class Bench:
    """Every case once made, the quickest first, to be looked at again under each mutant."""

    def __init__(self, lab: Lab, cases: Sequence[Case]) -> None:
        self._lab = lab
        timed = [(self._timed(case), case) for case in cases]
        self._looks: list[tuple[Case, Look]] = [(case, look) for (_, look), case in sorted(timed, key=lambda item: item[0][0])]

    def _timed(self, case: Case) -> tuple[float, Look]:
        look = case.make(self._lab)
        started = time.perf_counter()
        assert case.holds(look())
        return time.perf_counter() - started, look

    def slipping(self, mutant: Mutant) -> str | None:
        """A case that does not have its verdict any more; made anew, because what was let through may have changed it."""
        for number, (case, look) in enumerate(self._looks):
            if not _holds(case, look, mutant):
                self._looks[number] = (case, case.make(self._lab))
                return case.name
        return None


def _holds(case: Case, look: Look, mutant: Mutant) -> bool:
    """Whether the case still has its verdict; a program that stumbles over what it did not check has none."""
    try:
        with mutant.live():
            return case.holds(look())
    except (NameError, TypeError, ValueError, LookupError, AttributeError, InvalidSignature, struct.error):
        return False


def unnoticed(bench: Bench, chosen: Sequence[Mutant]) -> Iterator[str]:
    for mutant in chosen:
        if bench.slipping(mutant) is None:
            yield str(mutant)


def test_disabled_checks_of_rows_and_schema_are_noticed(lab: Lab) -> None:
    bench = Bench(lab, [case for case in CASES if case.number in OF_SAMPLE])
    assert "\n".join(unnoticed(bench, SAMPLE)) == ""


@pytest.mark.slow
def test_every_disabled_check_is_noticed(lab: Lab) -> None:
    bench = Bench(lab, CASES)
    assert len(MUTANTS) > 90
    assert "\n".join(unnoticed(bench, MUTANTS)) == ""
