"""`countermark query …`: what an auditor asks. Exit 0 when the question was answered, also with no rows."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from countermark.cli.asking import AtOption, PolicyOption, ProfileMapOption, ProfileOption, TimeOption, asked, instant, when
from countermark.cli.options import DEFAULT_LEDGER, LedgerOption, OutputOption, TrustOption
from countermark.cli.output import finish
from countermark.cli.report import Report

if TYPE_CHECKING:
    from countermark.actions.queries.impact import What
    from countermark.actions.queries.listing import Listing
    from countermark.actions.workspace import Workspace

app = typer.Typer(help="Ask a ledger; every answer is proven, and says what was not found.", no_args_is_help=True)

DigestArgument: TypeAlias = Annotated[str, typer.Argument(metavar="DIGEST", help="KIND:sha256:HEX64, or sha256:HEX64.")]


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

        question = asked(policy=policy, profile=profile, profile_map=profile_map, effective_time=effective_time, at=at)
        return capability_listing(workspace, question, capability, scope, status)

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


@app.command("attestation")
def attestation(
    digest: Annotated[str, typer.Argument(metavar="DIGEST", help="Of a subject, material, model file or payload.")],
    predicate_type: Annotated[str | None, typer.Option("--type", metavar="URI", help="Only statements of this predicate type.")] = None,
    effective_time: TimeOption = None,
    at: AtOption = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: OutputOption = [],
) -> None:
    """Statements that name a digest, and what they say: builder and materials, verifier and result, tests, model files."""

    def ask(workspace: "Workspace") -> "Listing":
        from countermark.actions.queries.attestations import attestation_listing

        return attestation_listing(workspace, digest, predicate_type, when(effective_time, at))

    _answer("query attestation", ask, ledger, trust, output)


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
        question = asked(policy=policy, profile=profile, profile_map=profile_map, effective_time=effective_time, at=at)
        return impact_listing(workspace, question, what, value)

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

        wanted = Wanted(channel, instant(since, "--since"), subject)
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

        question = asked(policy=policy, profile=profile, profile_map=profile_map, effective_time=effective_time, at=at)
        return expiring_listing(workspace, question, within)

    _answer("query expiring", ask, ledger, trust, output)


@app.command("waivers")
def waivers(
    every: Annotated[bool, typer.Option("--all", help="Those too that are expired, taken back, orphaned or invalid.")] = False,
    policy: PolicyOption = None,
    effective_time: TimeOption = None,
    at: AtOption = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: OutputOption = [],
) -> None:
    """Which waivers exist, who asked, who approved, when they end, which are orphaned."""

    def ask(workspace: "Workspace") -> "Listing":
        from countermark.actions.queries.waivers import waivers_listing

        return waivers_listing(workspace, when(effective_time, at), policy, every=every)

    _answer("query waivers", ask, ledger, trust, output)


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


def _one_of(given: "dict[What, str | None]") -> "tuple[What, str]":
    from countermark.attestations.codes import Code
    from countermark.attestations.errors import UsageError

    named = [(what, value) for what, value in given.items() if value is not None]
    if len(named) != 1:
        options = ", ".join(f"--{what}" for what in given)
        raise UsageError(Code.UNKNOWN_NAME, f"{len(named)} things are named", fix=f"give exactly one of {options}")
    return named[0]
