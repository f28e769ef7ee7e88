"""`countermark gate DIGEST…` and `countermark explain DIGEST`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countermark.cli.options import DEFAULT_LEDGER, LedgerOption, OutputOption, TrustOption
from countermark.cli.output import finish
from countermark.cli.report import Report

if TYPE_CHECKING:
    from countermark.actions.gate import Decided

SubjectArgument = Annotated[list[str], typer.Argument(metavar="DIGEST...", help="Images: KIND:sha256:HEX64, or sha256:HEX64.")]
PolicyOption = Annotated[Path | None, typer.Option("--policy", metavar="FILE", help="The release policy.", show_default=False)]
RequireOption = Annotated[
    list[str], typer.Option("--require", metavar="CAPABILITY@k=v,…", help="Ask this alone; repeatable.", show_default=False)
]
ProfileOption = Annotated[Path | None, typer.Option("--profile", metavar="FILE", help="The profile about to be served.")]
ProfileMapOption = Annotated[Path | None, typer.Option("--profile-map", metavar="FILE", help="Where your own profile has its fields.")]
TimeOption = Annotated[str | None, typer.Option("--effective-time", metavar="TIME", help="Judge for this time; the decision says so.")]


def gate(
    subjects: SubjectArgument,
    policy: PolicyOption = None,
    require: RequireOption = [],
    profile: ProfileOption = None,
    profile_map: ProfileMapOption = None,
    mode: Annotated[str, typer.Option(help="enforce, or warn: tell a DENY and exit 0.")] = "enforce",
    effective_time: TimeOption = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: OutputOption = [],
) -> None:
    """Decide whether an image may be released or served. Reaches no network."""
    _ask("gate", subjects, policy, require, profile, profile_map, mode, effective_time, ledger, trust, output)


def explain_image(
    subjects: SubjectArgument,
    policy: PolicyOption = None,
    require: RequireOption = [],
    profile: ProfileOption = None,
    profile_map: ProfileMapOption = None,
    effective_time: TimeOption = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: OutputOption = [],
) -> None:
    """Show why an image is allowed or denied, with all evidence that was weighed; exit 0 when the question was answered."""
    _ask("explain", subjects, policy, require, profile, profile_map, "enforce", effective_time, ledger, trust, output)


def _ask(
    command: str,
    subjects: list[str],
    policy: Path | None,
    require: list[str],
    profile: Path | None,
    profile_map: Path | None,
    mode: str,
    effective_time: str | None,
    ledger: str,
    trust: Path | None,
    output: list[str],
) -> None:
    def act() -> Report:
        from countermark.actions.gate import Asked, mode_of
        from countermark.actions.gate import gate as decide_all
        from countermark.actions.workspace import Workspace
        from countermark.attestations.errors import Location
        from countermark.attestations.times import Instant

        instant = Instant.parse(effective_time, at=Location("--effective-time")) if effective_time else None
        asked = Asked(tuple(subjects), policy, tuple(require), profile, profile_map, mode_of(mode), instant)
        return decision_report(decide_all(Workspace.at(ledger, trust), asked), explained=command == "explain")

    finish(command, output, act)


def decision_report(decided: "Decided", *, explained: bool) -> Report:
    """The decisions; `explain` answers with exit 0 whatever the answer is."""
    from countermark.actions.clock import now
    from countermark.attestations.codes import ExitCode
    from countermark.contracts.explain_text import explain

    decisions = decided.decisions
    code = ExitCode.YES if explained else ExitCode.first_of(decision.exit for decision in decisions)
    allowed = all(decision.verdict == "ALLOW" for decision in decisions)
    made = {"tool": "countermark", "at": str(now().whole_seconds())}
    head = decisions[0].head
    text = "\n".join(explain(decision) for decision in decisions).rstrip()
    policy = {"policy": decided.adhoc.decode()} if decided.adhoc else {}
    return Report(
        exit=code,
        evaluated=sum(decision.evaluated for decision in decisions),
        of=sum(len(decision.requirements) for decision in decisions),
        ledger=head.to_json(),
        effective_time=str(decisions[0].effective_time),
        text=text,
        verdict="ALLOW" if allowed else "DENY",
        bare=True,
        extra={"decisions": [{"id": item.id, "core": item.core(), "made": made} for item in decisions], **policy},
    )
