"""`countermark gate DIGEST…` and `countermark explain DIGEST`."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countermark.cli.asking import AtOption, PolicyOption, ProfileMapOption, ProfileOption, TimeOption, asked
from countermark.cli.decision_bundle import bundles_asked, packed, refuse_bundles
from countermark.cli.formats import FINDINGS
from countermark.cli.gate_images import demanded_report, with_totals
from countermark.cli.options import DEFAULT_LEDGER, ExplainOption, FindingsPageOption, LedgerOption, SigningKeyOption, TrustOption
from countermark.cli.output import PAGE, finish
from countermark.cli.pages import decisions_page, repeated_page
from countermark.cli.progress import count_progress
from countermark.cli.report import Report

if TYPE_CHECKING:
    from countermark.actions.decisions import RecordedDecision
    from countermark.actions.gate import Decided
    from countermark.actions.image_list import ListedImage

SubjectArgument = Annotated[
    list[str], typer.Argument(metavar="[DIGEST...]", help="Images: KIND:sha256:HEX64, or sha256:HEX64.", show_default=False)
]
RequireOption = Annotated[
    list[str], typer.Option("--require", metavar="CAPABILITY@k=v,…", help="Ask this alone; repeatable.", show_default=False)
]


def gate(
    subjects: SubjectArgument = [],
    images: Annotated[
        Path | None, typer.Option("--images", metavar="FILE", help="Images too: one digest a line, # comments; or a JSON list.")
    ] = None,
    policy: PolicyOption = None,
    require: RequireOption = [],
    profile: ProfileOption = None,
    profile_map: ProfileMapOption = None,
    mode: Annotated[str, typer.Option(help="enforce, or warn: tell a DENY and exit 0.")] = "enforce",
    require_decision: Annotated[
        Path | None,
        typer.Option("--require-decision", metavar="FILE", help="Demand this recorded decision, or its summary; decide nothing."),
    ] = None,
    max_age: Annotated[str, typer.Option("--max-age", metavar="N(d|h)", help="How old the demanded decision may be.")] = "24h",
    effective_time: TimeOption = None,
    record: Annotated[bool, typer.Option("--record", help="Append the decision, its inputs and its summary to the ledger.")] = False,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    key: SigningKeyOption = None,
    output: FindingsPageOption = [],
) -> None:
    """Decide whether an image may be released or served. Reaches no network."""

    def act() -> Report:
        from countermark.actions.gate import gate as decide_all
        from countermark.actions.workspace import Workspace

        workspace = Workspace.at(ledger, trust)
        listed = _listed(subjects, images)
        if require_decision:
            by = _only_demanded(policy, require=require, record=record, mode=mode, effective_time=effective_time)
            return demanded_report(workspace, require_decision, (*subjects, *(item.text for item in listed)), by, max_age, ledger)
        question = asked(subjects, policy, require, profile=profile, profile_map=profile_map, mode=mode, effective_time=effective_time)
        with count_progress("deciding") as told:
            decided = decide_all(workspace, replace(question, images=listed), told)
        recorded: list[RecordedDecision] = []
        if record:
            from countermark.actions.decisions import record_decisions

            recorded = record_decisions(workspace, decided.decisions, decided.documents.files, key)
        report = decision_report(decided, recorded, decisions_page("gate", output, workspace, decided, recorded))
        return with_totals(report, decided, len(listed)) if images or decided.failed else report

    finish("gate", output, act, forms=(*FINDINGS, PAGE, *(("vsa", "decision") if record else ())))


def _listed(subjects: list[str], images: Path | None) -> "tuple[ListedImage, ...]":
    """The images of the file; `UsageError` where no image is named at all."""
    from countermark.actions.image_list import read_images
    from countermark.attestations.codes import Code
    from countermark.attestations.errors import UsageError

    if not subjects and images is None:
        raise UsageError(Code.NOTHING_EVALUATED, "no image is named", fix="give a DIGEST, or --images FILE")
    return read_images(images) if images else ()


def _only_demanded(policy: Path | None, *, require: list[str], record: bool, mode: str, effective_time: str | None) -> Path:
    """`--require-decision` decides nothing, so that it takes no question; its policy it must have."""
    from countermark.attestations.codes import Code
    from countermark.attestations.errors import UsageError

    others = {"--require": bool(require), "--record": record, "--mode": mode != "enforce", "--effective-time": effective_time is not None}
    wrong = [name for name, given in others.items() if given]
    if wrong:
        raise UsageError(Code.UNKNOWN_NAME, f"--require-decision decides nothing and takes no {', '.join(wrong)}", fix="leave it away")
    if policy is None:
        raise UsageError(Code.NOTHING_EVALUATED, "a decision is demanded by a policy", fix="give --policy FILE")
    return policy


def explain_image(
    subjects: Annotated[list[str], typer.Argument(metavar="DIGEST|DECISION...", help="Images, or recorded decisions by id.")],
    policy: PolicyOption = None,
    require: RequireOption = [],
    profile: ProfileOption = None,
    profile_map: ProfileMapOption = None,
    effective_time: TimeOption = None,
    at: AtOption = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: ExplainOption = [],
) -> None:
    """Show why an image is allowed or denied, now or in the past, with what was weighed; exit 0 when the question was answered."""
    bundles, outputs = bundles_asked(output)

    def act() -> Report:
        from dataclasses import replace

        from countermark.actions.gate import gate as decide_all
        from countermark.actions.repeat import is_decision, repeat
        from countermark.actions.workspace import Workspace
        from countermark.attestations.codes import ExitCode
        from countermark.cli.render_repeated import repeated_report

        workspace = Workspace.at(ledger, trust)
        if all(is_decision(text) for text in subjects):
            repeated = [repeat(workspace, text) for text in subjects]
            page = repeated_page(outputs, workspace, repeated)
            return repeated_report(repeated, page, packed(workspace, repeated, bundles))
        refuse_bundles(bundles)
        question = asked(subjects, policy, require, profile=profile, profile_map=profile_map, effective_time=effective_time, at=at)
        decided = decide_all(workspace, question)
        return replace(decision_report(decided, [], decisions_page("explain", outputs, workspace, decided)), exit=ExitCode.YES)

    finish("explain", outputs, act, forms=(PAGE,))


def decision_report(decided: "Decided", recorded: "list[RecordedDecision]", pages: Mapping[str, str]) -> Report:
    """The decisions, and where they stand in the ledger if they were recorded."""
    from countermark.actions.clock import made_now
    from countermark.attestations.codes import ExitCode
    from countermark.cli.formats.checks import decision_checks
    from countermark.contracts.explain_text import explain

    decisions = decided.decisions
    made = made_now()
    policy = {"policy": decided.documents.files[0].decode()} if decided.documents.adhoc else {}
    entries = [receipt.to_json() for item in recorded for receipt in item.receipts]
    text = "\n".join(explain(decision) for decision in decisions)
    for item in recorded:
        decision, summary = item.receipts
        text += f"recorded as entry {decision.index}, its summary as entry {summary.index}: countermark explain {item.decision.id}\n"
    checks = tuple(check for decision in decisions for check in decision_checks(decision))
    return Report(
        exit=ExitCode.first_of(decision.exit for decision in decisions),
        evaluated=sum(decision.evaluated for decision in decisions),
        of=sum(len(decision.requirements) for decision in decisions),
        ledger=decisions[0].head.to_json(),
        effective_time=str(decisions[0].effective_time),
        text=text.rstrip(),
        verdict="ALLOW" if all(decision.verdict == "ALLOW" for decision in decisions) else "DENY",
        bare=True,
        findings=tuple(finding for check in checks for finding in check.findings),
        checks=checks,
        forms={
            "vsa": "\n".join(item.summary.to_json() for item in recorded),
            "decision": "\n".join(item.envelope.to_json() for item in recorded),
            **pages,
        },
        extra={
            "decisions": [{"id": item.id, "core": item.core(), "made": made} for item in decisions],
            **policy,
            **({"recorded": entries} if entries else {}),
        },
    )
