"""`countermark verify claims FILE…`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countermark.cli.formats import FINDINGS
from countermark.cli.options import DEFAULT_LEDGER, FindingsOption, LedgerOption, TrustOption
from countermark.cli.output import finish
from countermark.cli.report import Check, Report

if TYPE_CHECKING:
    from countermark.actions.verify_claims import JudgedClaims, JudgedText


def claims(
    paths: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Texts and records, or folders with Markdown, plain text, JSON and YAML.")
    ],
    policy: Annotated[Path | None, typer.Option("--policy", metavar="FILE", help="A release policy: its rules of evidence count.")] = None,
    effective_time: Annotated[
        str | None, typer.Option("--effective-time", metavar="TIME", help="Judge for this time; default: now.")
    ] = None,
    at: Annotated[str | None, typer.Option("--at", metavar="TIME", help="As of the ledger's head then.")] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: FindingsOption = [],
) -> None:
    """Hold status words, numbers and image digests in texts against what the ledger derives. Reaches no network."""

    def act() -> Report:
        from countermark.actions.gate import Asked
        from countermark.actions.verify_claims import verify_claims
        from countermark.actions.workspace import Workspace
        from countermark.attestations.errors import Location
        from countermark.attestations.times import Instant

        instant = Instant.parse(effective_time, at=Location("--effective-time")) if effective_time else None
        then = Instant.parse(at, at=Location("--at")) if at else None
        asked = Asked((), policy, effective_time=instant, at=then)
        return claims_report(verify_claims(Workspace.at(ledger, trust), paths, asked))

    finish("verify claims", output, act, forms=FINDINGS)


def claims_report(judged: "JudgedClaims") -> Report:
    """Each text with what it says, and every finding."""
    return Report(
        exit=judged.exit,
        evaluated=sum(text.evaluated for text in judged.texts),
        of=sum(text.of for text in judged.texts),
        findings=tuple(finding for text in judged.texts for finding in text.findings),
        not_evaluated=tuple(f"{name}, which no record names" for text in judged.texts for name in text.unknown),
        ledger=judged.head.to_json(),
        effective_time=judged.effective_time,
        text="\n".join([*map(_line, judged.texts), *judged.notes]),
        extra={"texts": [_json(text) for text in judged.texts], "notes": list(judged.notes)},
        checks=tuple(Check("claims", text.reading.path, text.outcome, text.findings) for text in judged.texts),
    )


def _line(text: "JudgedText") -> str:
    counts = ", ".join(f"{count} {name}" for name, count in _counts(text).items() if count) or "nothing about an image"
    return f"{text.reading.path}  {counts}  {text.outcome}"


def _counts(text: "JudgedText") -> dict[str, int]:
    reading = text.reading
    return {"claims": len(reading.claims), "numbers": len(reading.numbers), "images": len(reading.mentions)}


def _json(text: "JudgedText") -> dict[str, object]:
    return {"file": text.reading.path, "outcome": str(text.outcome), **_counts(text)}
