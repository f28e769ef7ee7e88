"""How much of a restore is done, for one who watches: the engine says how many bytes more, a progress bar wants how many of how many."""

from countermark.recorders.recording import Progress


class Tally:
    """Adds up what every part of a piece of work has done, and tells it beside the total."""

    def __init__(self, progress: Progress, total_bytes: int) -> None:
        self._progress, self._total_bytes, self._done_bytes = progress, total_bytes, 0
        progress(0, total_bytes)

    def advance(self, more_bytes: int) -> None:
        """Add to what is done."""
        self._done_bytes += more_bytes
        self._progress(self._done_bytes, max(self._done_bytes, self._total_bytes))
