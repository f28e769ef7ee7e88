"""What time it is, and how long ago something may have been."""

import re
import time
from typing import Final

from countermark.attestations.codes import Code
from countermark.attestations.errors import UsageError
from countermark.attestations.located import JsonValue
from countermark.attestations.release import __version__
from countermark.attestations.times import Instant

_DURATION: Final = re.compile(r"([1-9][0-9]{0,5})([dh])\Z", re.ASCII)
_HOUR_NS: Final = 3_600_000_000_000


def now() -> Instant:
    """The present instant, UTC."""
    return Instant(time.time_ns())


def made_now() -> dict[str, JsonValue]:
    """What is outside the promise of a decision: which tool made it, and when."""
    return {"tool": "countermark", "tool_version": __version__, "at": str(now().whole_seconds())}


def duration_ns(text: str) -> int:
    """Nanoseconds of `30d` or `12h`; `UsageError` for another form."""
    found = _DURATION.match(text)
    if not found:
        raise UsageError(Code.BAD_TIME, f"{text!r} is no number of days or hours", fix="write it like 30d or 12h")
    return int(found[1]) * (24 * _HOUR_NS if found[2] == "d" else _HOUR_NS)
