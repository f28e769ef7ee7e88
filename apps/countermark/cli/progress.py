"""Progress bars: on a terminal only, on stderr, and only for work that lasts."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from countermark.cli.output import Settings


@contextmanager
def byte_progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """A callback `(done_bytes, total_bytes)` behind a bar; a silent one where nobody watches."""
    if Settings.quiet or not sys.stderr.isatty():
        yield _unwatched
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(label), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _unwatched(_done: int, _total: int) -> None:
    """Nobody looks."""


@contextmanager
def count_progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """A callback `(done, total)` behind a bar of counted things; a total of 0 means that it is not known."""
    if Settings.quiet or not sys.stderr.isatty():
        yield _unwatched
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total or None)
