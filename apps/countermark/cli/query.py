"""`countermark query …`: what an auditor asks. Exit 0 when the question was answered, also with no rows."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from countermark.cli.options import DEFAULT_LEDGER, LedgerOption, OutputOption, TrustOption
from countermark.cli.output import finish
from countermark.cli.report import Report

if TYPE_CHECKING:
    from countermark.actions.gate import Asked
    from countermark.actions.queries.impact import What
    from countermark.actions.queries.listing import Listing
    from countermark.actions.queries.view import When
    from countermark.actions.workspace import Workspace
    from countermark.attestations.times import Instant

app = typer.Typer(help="Ask a ledger; every answer is proven, and says what was not found.", no_args_is_help=True)

DigestArgument: TypeAlias = Annotated[str, typer.Argument(metavar="DIGEST", help="KIND:sha256:HEX64, or sha256:HEX64.")]
PolicyOption: TypeAlias = Annotated[Path | None, typer.Option("--policy", metavar="FILE", help="A release policy.", show_default=False)]
ProfileOption: TypeAlias = Annotated[Path | None, typer.Option("--profile", metavar="FILE", help="The profile that the policy refers to.")]
ProfileMapOption: TypeAlias = Annotated[
    Path | None, typer.Option("--profile-map", metavar="FILE", help="Where your own profile has its fields.")
]
AtOption: TypeAlias = Annotated[str | None, typer.Option("--at", metavar="TIME", help="Ask of the ledger's head then.")]
TimeOption: TypeAlias = Annotated[str | None, typer.Option("--effective-time", metavar="TIME", help="Judge for this time; default: now.")]


@app.command("capability")
def capability(
    capability: Annotated[str, typer.Argument(metavar="CAPABILITY", help="Like restore.correctness.")],
    scope: Annotated[str | None, typer.Option(metavar="k=v,…", help="Like tp=4,dcp=1,context_tokens=131072.")] = None,
    status: Annotated[str | None, typer.Option(help="Only images of this status, like qualified.")] = None,
    policy: PolicyOption = None,
    profile: ProfileOption = None,
    profile_map: ProfileMapOption = None,
    effective_time: TimeOption = None,
    at: AtOption = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: OutputOption = [],
) -> None:
    """Which images have a capability in a scope, as the gate judges it."""

    def ask(workspace: "Workspace") -> "Listing":
        from countermark.actions.queries.capability import capability_listing

        asked = asked_by(policy, effective_time, at, profile, profile_map)
        return capability_listing(workspace, asked, capability, scope, status)

    _answer("query capability", ask, ledger, trust, output)


@app.command("receipts")
def receipts(
    digest: DigestArgument,
    effective_time: TimeOption = None,
    at: AtOption = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: OutputOption = [],
) -> None:
    """What qualifies or rejects an image, each outcome and basis computed anew."""

    def ask(workspace: "Workspace") -> "Listing":
        from countermark.actions.queries.receipts import receipts_listing

        return receipts_listing(workspace, digest, when(effective_time, at))

    _answer("query receipts", ask, ledger, trust, output)


@app.command("history")
def history(
    digest: DigestArgument,
    effective_time: TimeOption = None,
    at: AtOption = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: OutputOption = [],
) -> None:
    """Every entry that names a digest of any kind, in order, and what was said of those entries."""

    def ask(workspace: "Workspace") -> "Listing":
        from countermark.actions.queries.history import history_listing

        return history_listing(workspace, digest, when(effective_time, at))

    _answer("query history", ask, ledger, trust, output)


@app.command("impact")
def impact(
    commit: Annotated[str | None, typer.Option(metavar="HEX", help="A source commit.")] = None,
    model_revision: Annotated[str | None, typer.Option(metavar="HEX", help="A model's revision.")] = None,
    key: Annotated[str | None, typer.Option(metavar="SPKI", help="A signing key's fingerprint.")] = None,
    checker: Annotated[str | None, typer.Option(metavar="NAME@V", help="A checker, or an adapter, and its version.")] = None,
    payload: Annotated[str | None, typer.Option(metavar="P", help="A statement's payload digest.")] = None,
    policy: PolicyOption = None,
    profile: ProfileOption = None,
    profile_map: ProfileMapOption = None,
    effective_time: TimeOption = None,
    at: AtOption = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: OutputOption = [],
) -> None:
    """What rests on something that turned out bad, and whether decisions would change without it."""

    def ask(workspace: "Workspace") -> "Listing":
        from countermark.actions.queries.impact import impact_listing

        given: dict[What, str | None] = {
            "commit": commit,
            "model-revision": model_revision,
            "key": key,
            "checker": checker,
            "payload": payload,
        }
        what, value = _one_of(given)
        return impact_listing(workspace, asked_by(policy, effective_time, at, profile, profile_map), what, value)

    _answer("query impact", ask, ledger, trust, output)


@app.command("decisions")
def decisions(
    channel: Annotated[str | None, typer.Option(help="Of this channel only.")] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="Admitted at this time or later.")] = None,
    subject: Annotated[str | None, typer.Option(metavar="DIGEST", help="About this image only.")] = None,
    effective_time: TimeOption = None,
    at: AtOption = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: OutputOption = [],
) -> None:
    """Every recorded decision, and whether it may be believed."""

    def ask(workspace: "Workspace") -> "Listing":
        from countermark.actions.queries.decisions import Wanted, decisions_listing

        wanted = Wanted(channel, _instant(since, "--since"), subject)
        return decisions_listing(workspace, wanted, when(effective_time, at))

    _answer("query decisions", ask, ledger, trust, output)


@app.command("signers")
def signers(
    conflicts: Annotated[bool, typer.Option("--conflicts", help="Only who signed on both sides: their own build, say.")] = False,
    effective_time: TimeOption = None,
    at: AtOption = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: OutputOption = [],
) -> None:
    """Who signed what, or who qualified their own build. Reads every entry."""

    def ask(workspace: "Workspace") -> "Listing":
        from countermark.actions.queries.signers import conflicts_listing, signers_listing

        question = conflicts_listing if conflicts else signers_listing
        return question(workspace, when(effective_time, at))

    _answer("query signers", ask, ledger, trust, output)


@app.command("expiring")
def expiring(
    within: Annotated[str, typer.Option(metavar="N(d|h)", help="How far ahead, like 30d.")],
    policy: Annotated[Path, typer.Option("--policy", metavar="FILE", help="The release policy.")],
    profile: ProfileOption = None,
    profile_map: ProfileMapOption = None,
    effective_time: TimeOption = None,
    at: AtOption = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: OutputOption = [],
) -> None:
    """Which requirement of which image stops holding, and when."""

    def ask(workspace: "Workspace") -> "Listing":
        from countermark.actions.queries.expiring import expiring_listing

        return expiring_listing(workspace, asked_by(policy, effective_time, at, profile, profile_map), within)

    _answer("query expiring", ask, ledger, trust, output)


@app.command("views")
def views() -> None:
    """Print SQL that makes temporary, read-only views; see docs/sql-views.md."""
    from countermark.actions.queries.views import views_sql

    typer.echo(views_sql(), nl=False)


def _answer(command: str, ask: "Callable[[Workspace], Listing]", ledger: str, trust: Path | None, output: list[str]) -> None:
    def act() -> Report:
        from countermark.actions.workspace import Workspace
        from countermark.cli.render_listing import listing_report

        return listing_report(command, ask(Workspace.at(ledger, trust)))

    finish(command, output, act)


def asked_by(
    policy: Path | None, effective_time: str | None, at: str | None, profile: Path | None = None, profile_map: Path | None = None
) -> "Asked":
    """What a question is judged by; it names no image, for the ledger does."""
    from countermark.actions.gate import Asked

    asked = when(effective_time, at)
    return Asked((), policy, profile=profile, profile_map=profile_map, effective_time=asked.effective_time, at=asked.at)


def when(effective_time: str | None, at: str | None) -> "When":
    """The times of `--effective-time` and `--at`."""
    from countermark.actions.queries.view import When

    return When(_instant(effective_time, "--effective-time"), _instant(at, "--at"))


def _instant(text: str | None, option: str) -> "Instant | None":
    from countermark.attestations.errors import Location
    from countermark.attestations.times import Instant

    return Instant.parse(text, at=Location(option)) if text else None


def _one_of(given: "dict[What, str | None]") -> "tuple[What, str]":
    from countermark.attestations.codes import Code
    from countermark.attestations.errors import UsageError

    named = [(what, value) for what, value in given.items() if value is not None]
    if len(named) != 1:
        options = ", ".join(f"--{what}" for what in given)
        raise UsageError(Code.UNKNOWN_NAME, f"{len(named)} things are named", fix=f"give exactly one of {options}")
    return named[0]
