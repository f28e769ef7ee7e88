"""What takes part in a measurement: a way to read the data set, opened once and run once a round."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeAlias

from benchmarks.restore.dataset import DataSet

Detail: TypeAlias = Mapping[str, int]
"""What a run says of itself beside its time; `bytes` always, which must be all of them."""

Run: TypeAlias = Callable[[], Callable[[], Detail]]
"""The first call is timed and keeps what it loaded; the second, untimed, tells of it and lets go."""

Open: TypeAlias = Callable[[DataSet], AbstractContextManager[Run]]


@dataclass(frozen=True, slots=True)
class Contender:
    """One row of the table. `open` prepares outside the time; it raises `CannotTellError` where the peer is not installed."""

    name: str
    open: Open
    authenticates: bool = False
    places: bool = False
