"""Each check of the verifier is needed: without it a tamper case slips through."""

import signal
import sqlite3
import struct
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FrameType

import pytest
from cryptography.exceptions import InvalidSignature

from countermark.attestations.errors import CountermarkError

from .cases import CASES
from .lab import Case, Lab, Look
from .mutants import CHECKED, Mutant, mutants

MUTANTS = list(mutants())
SAMPLE = [mutant for mutant in MUTANTS if mutant.module in ("audit_rows", "audit_schema")]
OF_SAMPLE = (18, 39, 40, 59)
"""The numbers of the cases that these checks are for: few enough to be made again in every run of the tests."""

LIMIT_S = 60
_STUMBLES = (
    *(ArithmeticError, AttributeError, LookupError, NameError, OSError, RuntimeError, TypeError, ValueError),
    *(CountermarkError, InvalidSignature, sqlite3.Error, struct.error),
)


class Bench:
    """Every case once made, the quickest first, to be looked at again under each mutant of a function that it calls."""

    def __init__(self, lab: Lab, cases: Sequence[Case]) -> None:
        self._lab = lab
        self._tries = sorted((self._tried(case) for case in cases), key=lambda each: each.seconds)

    def _tried(self, case: Case) -> "_Try":
        look, called, started = case.make(self._lab), set[CodeType](), time.perf_counter()
        with _noting(called):
            assert case.holds(look()), case.name
        return _Try(case, look, called, time.perf_counter() - started)

    def slipping(self, mutant: Mutant) -> str | None:
        """A case that does not have its verdict any more; made anew, because what was let through may have changed it."""
        for each in self._tries:
            if mutant.whole in each.called and not _holds(each.case, each.look, mutant):
                each.look = each.case.make(self._lab)
                return each.case.name
        return None


@dataclass
class _Try:
    """A case, how to look at it, the functions that looking calls, and how long it takes."""

    case: Case
    look: Look
    called: set[CodeType]
    seconds: float


@contextmanager
def _noting(called: set[CodeType]) -> Iterator[None]:
    """Put down every function that is called, in threads too."""

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called.add(frame.f_code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _holds(case: Case, look: Look, mutant: Mutant) -> bool:
    """Whether the case still has its verdict; a program that stumbles over what it did not check, or does not end, has none."""
    try:
        with mutant.live(), _limit(LIMIT_S):
            return case.holds(look())
    except _STUMBLES:
        return False


@contextmanager
def _limit(seconds: int) -> Iterator[None]:
    """`TimeoutError` for a block that does not end."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def unnoticed(bench: Bench, chosen: Sequence[Mutant]) -> Iterator[str]:
    for mutant in chosen:
        if bench.slipping(mutant) is None:
            yield str(mutant)


def test_disabled_checks_of_rows_and_schema_are_noticed(lab: Lab) -> None:
    bench = Bench(lab, [case for case in CASES if case.number in OF_SAMPLE])
    assert "\n".join(unnoticed(bench, SAMPLE)) == ""


@pytest.fixture(scope="module")
def bench(lab: Lab) -> Bench:
    return Bench(lab, CASES)


@pytest.mark.slow
@pytest.mark.parametrize("module", CHECKED)
def test_every_disabled_check_is_noticed(bench: Bench, module: str) -> None:
    chosen = [mutant for mutant in MUTANTS if mutant.module == module]
    assert chosen
    assert "\n".join(unnoticed(bench, chosen)) == ""
