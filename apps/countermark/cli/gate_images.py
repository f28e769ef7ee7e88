"""What `gate` tells beside its decisions: the totals of many images, and whether a decision that is demanded is there."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from countermark.cli.report import Report

if TYPE_CHECKING:
    from countermark.actions.gate import Decided
    from countermark.actions.workspace import Workspace
    from countermark.contracts.decision import Decision


def with_totals(report: Report, decided: "Decided", listed: int) -> Report:
    """The report of many images: one line each, worst first, and the totals; the exit code is the worst of the table."""
    from countermark.attestations.codes import ExitCode

    decisions, failed = decided.decisions, decided.failed
    codes = Counter(str(result.code) for decision in decisions for result in decision.denied)
    totals = {
        "named": listed,
        "images": len(decisions) + len(failed),
        "allowed": sum(decision.verdict == "ALLOW" for decision in decisions),
        "waived": sum(bool(decision.waived) and decision.verdict == "ALLOW" for decision in decisions),
        "denied": sum(decision.verdict == "DENY" for decision in decisions),
        "not_decided": len(failed),
        "codes": dict(sorted(codes.items())),
    }
    lines = sorted(map(_line, decisions), key=lambda line: not line.startswith("DENY"))
    lines += [f"?      {digest}  {error.message} [{error.code}]" for digest, error in failed]
    first = decisions[0]
    exits = [report.exit, *(error.exit for _, error in failed)]
    exit_code = ExitCode.first_of(exits)
    policy = first.inputs.policy
    tail = f"verdict {report.verdict} · {_told(totals)} · policy {policy.id}@{policy.version} · exit {int(exit_code)}"
    tail += f" · ledger {first.head.origin} size {first.head.size} · at {first.effective_time}"
    warned = ["mode warn: a DENY is told, not enforced"] if first.mode == "warn" else []
    return replace(
        report,
        exit=exit_code,
        verdict="DENY" if failed else report.verdict,
        text="\n".join([*lines, *warned, tail]),
        not_evaluated=tuple(f"{digest}: {error.message} [{error.code}]" for digest, error in failed),
        extra={**report.extra, "totals": totals},
    )


def _line(decision: "Decision") -> str:
    from countermark.contracts.explain_text import plain

    problems = [*(f"{item.id} [{', '.join(item.every_code)}]" for item in decision.denied)]
    problems += [f"{item.id} waived by {item.waived_by}" for item in decision.waived]
    counted = f"{decision.satisfied} of {decision.evaluated} hold"
    return plain(f"{decision.verdict:<5}  {decision.subject}  {counted}" + (f"  {'; '.join(problems)}" if problems else ""))


def _told(totals: dict[str, object]) -> str:
    parts = [f"{totals['images']} images: {totals['allowed']} allowed"]
    parts += [f"{totals['waived']} of them with waivers"] if totals["waived"] else []
    parts += [f"{totals['denied']} denied"]
    parts += [f"{totals['not_decided']} not decided"] if totals["not_decided"] else []
    codes = totals["codes"]
    parts += [", ".join(f"{code} {count}" for code, count in codes.items())] if isinstance(codes, dict) and codes else []
    return ", ".join(parts)


def demanded_report(workspace: "Workspace", file: Path, subjects: tuple[str, ...], policy: Path, max_age: str, ledger: str) -> Report:
    """Whether the decision that is demanded is there for each image."""
    from countermark.actions.clock import duration_ns, now
    from countermark.actions.required_decision import Demand, required_decisions
    from countermark.attestations.codes import ExitCode
    from countermark.cli.options import DEFAULT_LEDGER

    found = required_decisions(workspace, file, subjects, Demand(policy, duration_ns(max_age), ledger != DEFAULT_LEDGER))
    findings = tuple(finding for item in found for finding in item.findings)
    held = [item for item in found if item.payload]
    return Report(
        exit=ExitCode.YES if len(held) == len(found) else ExitCode.NO,
        verdict="ALLOW" if len(held) == len(found) else "DENY",
        evaluated=len(found),
        of=len(found),
        findings=findings,
        effective_time=str(now().whole_seconds()),
        text="\n".join(_held(item.subject, item.payload) for item in found),
        extra={"subjects": [str(item.subject) for item in found], "required": [str(item.payload) for item in held]},
    )


def _held(subject: object, payload: object) -> str:
    return f"{subject}: allowed by {payload}" if payload else f"{subject}: no decision in the file allows it"
