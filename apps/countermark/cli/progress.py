"""Progress bars: on a terminal only, on stderr, and only for work that lasts."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias

from countermark.cli.output import Settings

Told: TypeAlias = Callable[[int, int], None]


def byte_progress(label: str) -> AbstractContextManager[Told]:
    """A callback `(done_bytes, total_bytes)` behind a bar; a silent one where nobody watches."""
    return _bar(label, of_bytes=True)


def count_progress(label: str) -> AbstractContextManager[Told]:
    """A callback `(done, total)` behind a bar of counted things; a total of 0 means that it is not known."""
    return _bar(label, of_bytes=False)


@contextmanager
def _bar(label: str, *, of_bytes: bool) -> Iterator[Told]:
    if Settings.quiet or not sys.stderr.isatty():
        yield _unwatched
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    done_of_total = DownloadColumn() if of_bytes else MofNCompleteColumn()
    columns = (TextColumn(label), BarColumn(), done_of_total, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total or None)


def _unwatched(_done: int, _total: int) -> None:
    """Nobody looks."""
