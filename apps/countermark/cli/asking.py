"""What a question to the gate is put with: options that mean the same in every command that asks, and what they say together."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from countermark.actions.gate import Asked
    from countermark.actions.queries.view import When
    from countermark.attestations.times import Instant

PolicyOption: TypeAlias = Annotated[Path | None, typer.Option("--policy", metavar="FILE", help="A release policy.", show_default=False)]
ProfileOption: TypeAlias = Annotated[Path | None, typer.Option("--profile", metavar="FILE", help="The profile that the policy refers to.")]
ProfileMapOption: TypeAlias = Annotated[
    Path | None, typer.Option("--profile-map", metavar="FILE", help="Where your own profile has its fields.")
]
TimeOption: TypeAlias = Annotated[str | None, typer.Option("--effective-time", metavar="TIME", help="Judge for this time; default: now.")]
AtOption: TypeAlias = Annotated[str | None, typer.Option("--at", metavar="TIME", help="Ask of the ledger's head then.")]


def asked(
    subjects: Sequence[str] = (),
    policy: Path | None = None,
    require: Sequence[str] = (),
    *,
    profile: Path | None = None,
    profile_map: Path | None = None,
    mode: str = "enforce",
    effective_time: str | None = None,
    at: str | None = None,
) -> "Asked":
    """The question; one about whatever the ledger knows names no image. `InputError` or `UsageError` for words that mean nothing."""
    from countermark.actions.gate import Asked, mode_of

    judged_for, then = instant(effective_time, "--effective-time"), instant(at, "--at")
    return Asked(tuple(subjects), policy, tuple(require), profile, profile_map, mode_of(mode), judged_for, then)


def when(effective_time: str | None, at: str | None) -> "When":
    """The times of `--effective-time` and `--at`."""
    from countermark.actions.queries.view import When

    return When(instant(effective_time, "--effective-time"), instant(at, "--at"))


def instant(text: str | None, option: str) -> "Instant | None":
    """The time that an option gives, if it does; `InputError` BAD_TIME."""
    from countermark.attestations.errors import Location
    from countermark.attestations.times import Instant

    return Instant.parse(text, at=Location(option)) if text else None
