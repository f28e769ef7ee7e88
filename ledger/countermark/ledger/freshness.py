"""How old a checkpoint may be. It is judged only for somebody who says so and brings a clock: a proof does not age by itself.

What counts is the newest time that is vouched for. Where the policy asks for witnesses, that is when a whole quorum of them had cosigned
the checkpoint (C2SP tlog-cosignature), and the log's own word does not count; elsewhere it is when the log says it admitted the newest
entry that is known to be in it. An old time does not say that the log has grown since, only that nothing shows that it has not.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from countermark.attestations.codes import Code
from countermark.attestations.errors import CannotTellError, RefusedError
from countermark.attestations.times import Instant
from countermark.ledger.cosignature import Cosignature
from countermark.ledger.witness_policy import WitnessPolicy

FAR_MS: Final = 3_600_000
"""How far two clocks may be apart before one of them is said to be wrong: an hour, since witnesses may be people with files."""

_MAX_MS: Final = 253_402_300_799_000
"""The last second of the year 9999, the last that can be written down."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """What time it is (milliseconds since 1970 UTC), and how old a checkpoint may be (milliseconds)."""

    now_ms: int
    max_age_ms: int

    def check(self, policy: WitnessPolicy | None, found: Iterable[Cosignature], admitted_ms: int | None) -> None:
        """Judge a checkpoint with these cosignatures of the policy's witnesses, over an entry that was admitted at `admitted_ms`.

        `CannotTellError` STALE for one that is too old, INCOMPLETE where nothing tells its age, CLOCK where the log names a time to
        come; `RefusedError` UNTRUSTED for a witness that does.
        """
        cosignatures = tuple(found)
        if message := yet_to_come(cosignatures, self.now_ms):
            raise RefusedError(Code.UNTRUSTED, message, fix="set this machine's clock right, or do without that witness")
        if policy is None or policy.quorum is None:
            self._check_time(admitted_ms, "the log")
        else:
            quorum_s = policy.vouched_s(cosignatures)
            self._check_time(None if quorum_s is None else quorum_s * 1000, "a quorum of witnesses")

    def _check_time(self, time_ms: int | None, by: str) -> None:
        if time_ms is None:
            fix = "have the checkpoint cosigned, and say with --policy by whom"
            raise CannotTellError(Code.INCOMPLETE, f"nothing by {by} says when the checkpoint was made", fix=fix)
        if time_ms > self.now_ms + FAR_MS:
            message = f"the newest time given by {by} is {_written(time_ms)}, which is yet to come"
            raise CannotTellError(Code.CLOCK, message, fix="set this machine's clock right, or ask who set the log's")
        if time_ms < self.now_ms - self.max_age_ms:
            message = f"the newest time given by {by} is {_written(time_ms)}, longer ago than is allowed"
            raise CannotTellError(Code.STALE, message, fix="get the newest checkpoint, and ask others which one they hold")


def yet_to_come(found: Iterable[Cosignature], now_ms: int) -> str | None:
    """What to say of a cosignature whose time is far after now."""
    for item in found:
        if item.time_s * 1000 > now_ms + FAR_MS:
            return f"the cosignature of {item.key.name} is of {_written(item.time_s * 1000)}, which is yet to come"
    return None


def ahead_of(found: Iterable[Cosignature], admitted_ms: int) -> str | None:
    """What to say of an entry whose time is far after a cosignature over it: it was there when the witness signed."""
    for item in found:
        if admitted_ms > item.time_s * 1000 + FAR_MS:
            return f"the entry claims {_written(admitted_ms)}, and {item.key.name} cosigned it at {_written(item.time_s * 1000)}"
    return None


def _written(ms: int) -> str:
    return str(Instant.from_ms(ms)) if ms <= _MAX_MS else f"{ms // 1000} s after 1970"
