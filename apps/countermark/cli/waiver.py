"""`countermark waiver new|approve|list|check`: bounded exceptions."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from countermark.cli.asking import AtOption, ProfileMapOption, ProfileOption, TimeOption, asked, when
from countermark.cli.options import DEFAULT_LEDGER, LedgerOption, OutputOption, SigningKeyOption, TrustOption
from countermark.cli.output import finish
from countermark.cli.report import Report

if TYPE_CHECKING:
    from countermark.actions.waivers import Checked

app = typer.Typer(help="Bounded exceptions: one image, one requirement, named codes, an end, another's approval.", no_args_is_help=True)

FileArgument: TypeAlias = Annotated[Path, typer.Argument(metavar="FILE", help="A Waiver document, as `waiver new` writes it.")]
PolicyOption: TypeAlias = Annotated[Path, typer.Option("--policy", metavar="FILE", help="The release policy.")]
MaybePolicyOption: TypeAlias = Annotated[Path | None, typer.Option("--policy", metavar="FILE", help="Hold it to this release policy.")]


@app.command("new")
def new(
    image: Annotated[str, typer.Argument(metavar="DIGEST", help="The image, exactly.")],
    policy: PolicyOption,
    requirement: Annotated[str, typer.Option(metavar="ID", help="The requirement of the policy.")],
    code: Annotated[list[str], typer.Option("--code", metavar="CODE", help="A result code that it covers; repeatable.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why it is needed.")],
    ticket: Annotated[str, typer.Option(metavar="TEXT", help="Where it is tracked.")],
    requested_by: Annotated[str, typer.Option(metavar="PRINCIPAL", help="Who asks.")],
    approver: Annotated[list[str], typer.Option("--approver", metavar="PRINCIPAL", help="Who shall approve; repeatable.")],
    expires: Annotated[str, typer.Option(metavar="TIME", help="Its last moment, with an offset.")],
    write: Annotated[Path, typer.Option("--write", metavar="FILE", help="The new file.")],
    not_before: Annotated[str | None, typer.Option(metavar="TIME", help="Its first moment; default: now.")] = None,
    compensating: Annotated[str | None, typer.Option(metavar="TEXT", help="What reduces the risk meanwhile.")] = None,
    waiver_id: Annotated[str | None, typer.Option("--id", metavar="ID", help="Its id; default: from image and requirement.")] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: OutputOption = [],
) -> None:
    """Draft a waiver. It waives nothing before everybody it names has approved it."""

    def act() -> Report:
        from countermark.actions.waivers import Wanted, draft
        from countermark.actions.workspace import Workspace

        wanted = Wanted(
            image,
            policy,
            requirement,
            tuple(code),
            reason,
            ticket,
            requested_by,
            tuple(approver),
            expires,
            not_before,
            compensating,
            waiver_id,
        )
        made = draft(Workspace.at(ledger, trust), wanted, write)
        text = f"{write}: {made.name} for {made.subject}, {made.requirement} of {made.policy}, until {made.expires}\n"
        text += f"  to be approved by {', '.join(made.approved_by)}: countermark waiver approve {write} --key KEY"
        return Report(evaluated=1, of=1, text=text, extra={"subjects": [str(made.subject)], "written": str(write)})

    finish("waiver new", output, act)


@app.command("approve")
def approve(
    file: FileArgument,
    policy: MaybePolicyOption = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    key: SigningKeyOption = None,
    output: OutputOption = [],
) -> None:
    """Sign a waiver as one of the approvers it names, and append it to the ledger."""

    def act() -> Report:
        from countermark.actions.waivers import approve as sign
        from countermark.actions.workspace import Workspace
        from countermark.cli.render_recorded import recorded_report

        return recorded_report(sign(Workspace.at(ledger, trust), file, policy, key))

    finish("waiver approve", output, act)


@app.command("list")
def listing(
    every: Annotated[bool, typer.Option("--all", help="Those too that are expired, taken back, orphaned or invalid.")] = False,
    policy: MaybePolicyOption = None,
    effective_time: TimeOption = None,
    at: AtOption = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: OutputOption = [],
) -> None:
    """Which waivers exist, who asked, who approved, when they end, which are orphaned."""

    def act() -> Report:
        from countermark.actions.queries.waivers import waivers_listing
        from countermark.actions.workspace import Workspace
        from countermark.cli.render_listing import listing_report

        return listing_report("waiver list", waivers_listing(Workspace.at(ledger, trust), when(effective_time, at), policy, every=every))

    finish("waiver list", output, act)


@app.command("check")
def check(
    file: FileArgument,
    policy: PolicyOption,
    profile: ProfileOption = None,
    profile_map: ProfileMapOption = None,
    effective_time: TimeOption = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: OutputOption = [],
) -> None:
    """Say whether a waiver waives anything now, and if not every reason why."""

    def act() -> Report:
        from countermark.actions.waivers import check as weigh
        from countermark.actions.workspace import Workspace

        question = asked(policy=policy, profile=profile, profile_map=profile_map, effective_time=effective_time)
        return _checked(file, weigh(Workspace.at(ledger, trust), file, question))

    finish("waiver check", output, act)


def _checked(file: Path, done: "Checked") -> Report:
    from countermark.attestations.codes import ExitCode, Outcome
    from countermark.attestations.errors import Location
    from countermark.attestations.findings import Finding

    weighed, decision = done.weighed, done.decision
    fix = "mend what it says, or draft another; an approval covers every word"
    where, about = Location(str(file)), str(decision.subject)
    found = tuple(Finding(item.code, Outcome.FAIL, fix, location=where, subject=about, observed=item) for item in weighed.why)
    name = weighed.waiver.name if weighed.waiver else str(weighed.payload)
    approved = ", ".join(weighed.approved_by) or "nobody"
    effect = f"it waives {weighed.waiver.requirement}" if weighed.waiver and weighed.used else "it changes nothing"
    return Report(
        exit=ExitCode.YES if weighed.used else ExitCode.NO,
        evaluated=1,
        of=1,
        findings=found,
        ledger=decision.head.to_json(),
        effective_time=str(decision.effective_time),
        text=f"{name}: {effect}; approved by {approved}; the decision about {decision.subject} is {decision.verdict}",
        extra={"waiver": weighed.to_json(), "decision": str(decision.verdict)},
    )
