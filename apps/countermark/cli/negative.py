"""`countermark reject`, `retract`, `supersede`."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countermark.cli.options import DEFAULT_LEDGER, LedgerOption, OutputOption, SigningKeyOption, TrustOption
from countermark.cli.output import finish
from countermark.cli.report import Report

if TYPE_CHECKING:
    from countermark.actions.workspace import Workspace
    from countermark.recorders.recording import Recording

ReasonOption = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why.")]
RoleOption = Annotated[str, typer.Option("--role", help="The role whose key signs, without --key.")]


def reject(
    subject: Annotated[str, typer.Argument(metavar="DIGEST", help="An image, or a statement's payload digest or entry number.")],
    reason: ReasonOption,
    capability: Annotated[
        str | None, typer.Option(metavar="CAPABILITY@k=v,…", help="Reject this capability in this scope; default: image-wide.")
    ] = None,
    required: Annotated[str | None, typer.Option(metavar="TEXT", help="What should have been seen.")] = None,
    observed: Annotated[str | None, typer.Option(metavar="TEXT", help="What was seen.")] = None,
    rests_on: Annotated[list[str], typer.Option(metavar="PAYLOAD", help="A statement it rests on; repeatable.", show_default=False)] = [],
    observed_time: Annotated[str | None, typer.Option(metavar="TIME", help="When it was seen.")] = None,
    role: RoleOption = "qualifier",
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    key: SigningKeyOption = None,
    output: OutputOption = [],
) -> None:
    """Reject an image, one of its capabilities, or a statement. Only a retraction by another approver lifts it."""

    def make(workspace: "Workspace") -> "Recording":
        from countermark.actions.negative import Rejected, rejection

        return rejection(workspace, Rejected(subject, reason, capability, required, observed, tuple(rests_on), observed_time))

    _append("reject", make, role, ledger, trust, key, output)


def retract(
    statement: Annotated[str, typer.Argument(metavar="PAYLOAD", help="The statement to take back: payload digest or entry number.")],
    reason: ReasonOption,
    replacement: Annotated[str | None, typer.Option(metavar="PAYLOAD", help="The statement that stands in its place.")] = None,
    role: RoleOption = "approver",
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    key: SigningKeyOption = None,
    output: OutputOption = [],
) -> None:
    """Take back a statement, as an approver other than its signer; a single operator can lift no rejection."""

    def make(workspace: "Workspace") -> "Recording":
        from countermark.actions.negative import retraction

        return retraction(workspace, statement, reason, replacement)

    _append("retract", make, role, ledger, trust, key, output)


def supersede(
    older: Annotated[str, typer.Argument(metavar="PAYLOAD", help="The older statement: payload digest or entry number.")],
    by: Annotated[str, typer.Option("--by", metavar="PAYLOAD", help="The statement that replaces it.")],
    reason: ReasonOption,
    raw_measurements_changed: Annotated[
        bool, typer.Option("--raw-measurements-changed/--raw-measurements-unchanged", help="Whether what was measured differs.")
    ] = False,
    role: RoleOption = "qualifier",
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    key: SigningKeyOption = None,
    output: OutputOption = [],
) -> None:
    """Say that one statement replaces another."""

    def make(workspace: "Workspace") -> "Recording":
        from countermark.actions.negative import supersession

        return supersession(workspace, older, by, reason, raw_measurements_changed=raw_measurements_changed)

    _append("supersede", make, role, ledger, trust, key, output)


def _append(
    command: str,
    make: "Callable[[Workspace], Recording]",
    role: str,
    ledger: str,
    trust: Path | None,
    key: str | None,
    output: list[str],
) -> None:
    def act() -> Report:
        from countermark.actions.appending import record
        from countermark.actions.workspace import Workspace
        from countermark.cli.render_recorded import recorded_report

        workspace = Workspace.at(ledger, trust)
        return recorded_report(record(workspace, make(workspace), role, key))

    finish(command, output, act)
