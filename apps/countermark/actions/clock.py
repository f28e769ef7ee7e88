"""The one place where the program asks what time it is."""

import time

from countermark.attestations.located import JsonValue
from countermark.attestations.release import __version__
from countermark.attestations.times import Instant


def now() -> Instant:
    """The present instant, UTC."""
    return Instant(time.time_ns())


def made_now() -> dict[str, JsonValue]:
    """What is outside the promise of a decision: which tool made it, and when."""
    return {"tool": "countermark", "tool_version": __version__, "at": str(now().whole_seconds())}
