"""The closed list of metric definitions: how a value follows from raw operands (documents page, section 10).

Words are no definition. Two decode rates differ by one token, so a value that recomputes under one of them only has that one, whatever
its document calls it. Operands are counts, and durations in seconds; any exact or floating type will do, and the value is of that type.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

_TOLERANCE: Final = Fraction(1, 10**9)
"""Relative; published values carry all digits of a double."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One way to a value: the operands by name, what is done with them, the same in words, and the unit of what comes of it."""

    operands: tuple[str, ...]
    compute: Callable[..., Any]
    formula: str
    unit: str

    @property
    def over_window(self) -> bool:
        """Whether one value stands for all that happened within a window of time, not for one request."""
        return "window" in self.operands


DEFINITIONS: Final[Mapping[str, Definition]] = {
    "decode.excl-first": Definition(
        ("completion", "wall", "ttft"),
        lambda completion, wall, ttft: (completion - 1) / (wall - ttft),
        "(completion - 1) / (wall - TTFT)",
        "tokens/s",
    ),
    "decode.all": Definition(
        ("completion", "wall", "ttft"), lambda completion, wall, ttft: completion / (wall - ttft), "completion / (wall - TTFT)", "tokens/s"
    ),
    "e2e.request": Definition(("completion", "wall"), lambda completion, wall: completion / wall, "completion / wall", "tokens/s"),
    "prefill.ttft": Definition(("prompt", "ttft"), lambda prompt, ttft: prompt / ttft, "prompt / TTFT", "tokens/s"),
    "output.aggregate": Definition(
        ("completion", "window"), lambda total, window: total / window, "sum of completion / window", "tokens/s"
    ),
    "latency.wall": Definition(("wall",), lambda wall: wall, "wall", "s"),
    "latency.ttft": Definition(("ttft",), lambda ttft: ttft, "TTFT", "s"),
    "restore.bytes": Definition(("bytes", "seconds"), lambda size, seconds: size / seconds, "bytes / restore time", "bytes/s"),
    "server.counter": Definition(("delta", "window"), lambda delta, window: delta / window, "counter delta / window", "1/s"),
}


def close(value: Fraction | float, wanted: Fraction | float) -> bool:
    """Whether a recorded value is the computed one, within a relative 1e-9."""
    return abs(Fraction(value) - Fraction(wanted)) <= _TOLERANCE * abs(Fraction(wanted))
