"""The one place where the program asks what time it is."""

import time

from countermark.attestations.times import Instant


def now() -> Instant:
    """The present instant, UTC."""
    return Instant(time.time_ns())
