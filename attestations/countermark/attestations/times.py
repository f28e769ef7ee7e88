"""Instants, read and written as RFC 3339 with an offset; no clock is asked here."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Self

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location

_FORM = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)\Z",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """A point in time: nanoseconds since 1970-01-01T00:00:00Z, without leap seconds."""

    ns: int

    @classmethod
    def parse(cls, text: str, *, at: Location | None = None) -> Self:
        """Read RFC 3339 with an offset and 0 to 9 fractional digits; `InputError` BAD_TIME otherwise."""
        found = _FORM.match(text)
        if not found:
            raise InputError(
                Code.BAD_TIME, f"{text!r} is not an RFC 3339 time with an offset", at=at, fix="write it like 2026-12-01T00:00:00Z"
            )
        year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
        fraction, offset = found.group(7), found.group(8)
        try:
            moment = datetime(year, month, day, hour, minute, second, tzinfo=_zone(offset))
        except ValueError as error:
            raise InputError(Code.BAD_TIME, f"{text!r}: {error}", at=at, fix="give a time that exists") from None
        return cls(cls.of(moment).ns + int((fraction or "0").ljust(9, "0")))

    @classmethod
    def of(cls, moment: datetime) -> Self:
        """The instant of a datetime that has a zone, to its microsecond."""
        return cls((moment - _EPOCH) // timedelta(microseconds=1) * 1000)

    @classmethod
    def from_ms(cls, ms: int) -> Self:
        """The instant `ms` milliseconds after 1970-01-01T00:00:00Z."""
        return cls(ms * 1_000_000)

    @property
    def ms(self) -> int:
        """Whole milliseconds since 1970-01-01T00:00:00Z."""
        return self.ns // 1_000_000

    def whole_seconds(self) -> Self:
        """The instant with its fraction of a second cut off."""
        return type(self)(self.ns - self.ns % _SECOND)

    def __str__(self) -> str:
        seconds, rest = divmod(self.ns, _SECOND)
        text = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
        return f"{text}.{rest:09d}".rstrip("0") + "Z" if rest else f"{text}Z"


def _zone(offset: str) -> timezone:
    if offset in "Zz":
        return UTC
    hours, minutes = int(offset[1:3]), int(offset[4:6])
    if hours > 23 or minutes > 59:
        raise ValueError("the offset does not exist")
    delta = timedelta(hours=hours, minutes=minutes)
    return timezone(-delta if offset[0] == "-" else delta)
