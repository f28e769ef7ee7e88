"""Portions of entries checked in other processes, when there are enough of them.

An audit is work of the interpreter for the most part, strict JSON above all, and threads would wait for each other.
"""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import ClassVar

from countermark.attestations.codes import Code
from countermark.attestations.errors import CannotTellError
from countermark.ledger.audit_entries import Portion, PortionAudit, Scope


def audit_portions(portions: Iterator[Portion], scope: Scope, workers: int) -> Iterator[tuple[Portion, PortionAudit]]:
    """Each portion in order, with what came of it; in this process unless there are two `workers` or more.

    No more portions are read than the processes have in hand, so that memory does not grow with the ledger. `CannotTellError` when such
    a process dies.
    """
    if workers > 1:
        yield from _shared(portions, scope, workers)
        return
    for portion in portions:
        yield portion, PortionAudit.of(portion, scope)


class _Worker:
    """What a process of the pool keeps between portions."""

    scope: ClassVar[Scope]


def _start(scope: Scope) -> None:
    _Worker.scope = scope


def _audit(portion: Portion) -> PortionAudit:
    return PortionAudit.of(portion, _Worker.scope)


def _shared(portions: Iterator[Portion], scope: Scope, workers: int) -> Iterator[tuple[Portion, PortionAudit]]:
    """The processes are started anew, not forked: this one may have threads, and it has an open database."""
    waiting: deque[tuple[Portion, Future[PortionAudit]]] = deque()
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_start, initargs=(scope,))
    try:
        for portion in portions:
            waiting.append((portion, pool.submit(_audit, portion)))
            if len(waiting) > 2 * workers:
                yield _first(waiting)
        while waiting:
            yield _first(waiting)
    except BrokenProcessPool:
        message = "a process that checked entries ended unexpectedly"
        raise CannotTellError(Code.INCOMPLETE, message, fix="audit again, with --workers 1 if it happens again") from None
    finally:
        pool.shutdown(cancel_futures=True)


def _first(waiting: deque[tuple[Portion, Future[PortionAudit]]]) -> tuple[Portion, PortionAudit]:
    portion, future = waiting.popleft()
    return portion, future.result()
