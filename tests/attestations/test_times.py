"""RFC 3339 instants."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countermark.attestations.errors import InputError
from countermark.attestations.times import Instant

MINUTES = st.integers(-23 * 60 - 59, 23 * 60 + 59)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(st.integers(10**14, 10**15 * 7), MINUTES)
def test_agrees_with_datetime(microseconds: int, minutes: int) -> None:
    moment = (EPOCH + timedelta(microseconds=microseconds)).astimezone(timezone(timedelta(minutes=minutes)))
    expected = microseconds * 1000
    assert Instant.parse(moment.isoformat()).ns == expected


@given(st.integers(0, 2**62))
def test_text_round_trip(ns: int) -> None:
    assert Instant.parse(str(Instant(ns))) == Instant(ns)


@pytest.mark.parametrize(
    "text",
    [
        "2026-12-01",
        "2026-12-01T00:00:00",
        "2026-02-30T00:00:00Z",
        "2026-12-01T24:00:00Z",
        "2026-12-01T00:00:60Z",
        "2026-12-01T00:00:00+24:00",
        "2026-12-01T00:00:00.1234567890Z",
        "2026-12-01T00:00:00Z\n",
        "２026-12-01T00:00:00Z",
    ],
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(InputError, match="BAD_TIME"):
        Instant.parse(text)


def test_the_fraction_can_be_cut_off() -> None:
    assert str(Instant.parse("2026-12-01T00:00:01.5Z").whole_seconds()) == "2026-12-01T00:00:01Z"
