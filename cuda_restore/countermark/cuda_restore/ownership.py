"""Who gives what back: device memory, streams and events, released last in first out whatever happens on the way."""

from collections.abc import Callable
from types import TracebackType
from typing import Self

from countermark.attestations.codes import Code
from countermark.attestations.errors import CountermarkError, InputError


class Ownership:
    """Everything that a device gave out and how to give it back, last in first out.

    `close` releases all of it even when some releases fail, then raises the first failure.
    """

    def __init__(self) -> None:
        self._releases: dict[object, Callable[[], object]] = {}

    def add(self, key: object, release: Callable[[], object]) -> None:
        """Own `key` until it is released."""
        self._releases[key] = release

    def release(self, key: object) -> None:
        """Give back one thing; an `InputError` if this device does not own it."""
        if key not in self._releases:
            raise InputError(Code.UNKNOWN_NAME, "this device did not make that, or has released it", fix="release a thing once")
        self._releases.pop(key)()

    def __contains__(self, key: object) -> bool:
        return key in self._releases

    def close(self) -> None:
        """Give everything back."""
        first: CountermarkError | None = None
        while self._releases:
            _, release = self._releases.popitem()
            try:
                release()
            except CountermarkError as error:
                first = first or error
        if first:
            raise first

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close; while another error is on its way, a failed release becomes a note on it."""
        try:
            self.close()
        except CountermarkError as failure:
            if error is None:
                raise
            error.add_note(f"while releasing: {failure}")
