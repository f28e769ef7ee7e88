"""`countermark compare`."""

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from countermark.cli.formats import FINDINGS
from countermark.cli.options import DEFAULT_LEDGER, FindingsOption, LedgerOption, TrustOption
from countermark.cli.output import finish
from countermark.cli.report import Report

if TYPE_CHECKING:
    from countermark.actions.compare import Compared
    from countermark.contracts.measurements.difference import Difference


def compare(
    base: Annotated[str, typer.Argument(metavar="BASE", help="A benchmark run: a file, an entry number or a payload digest.")],
    candidate: Annotated[str, typer.Argument(metavar="CANDIDATE", help="The other run.")],
    variable: Annotated[
        list[str],
        typer.Option(metavar="POINTER", help="A field that is meant to differ, like /tuple/draft; repeatable.", show_default=False),
    ] = [],
    max_regression: Annotated[
        str | None, typer.Option(metavar="PERCENT", help="Exit 1 when the candidate is worse by more than this.")
    ] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: FindingsOption = [],
) -> None:
    """Say whether two benchmark runs may be compared, and then by how much they differ."""

    def act() -> Report:
        from countermark.actions.compare import compare as act_on
        from countermark.actions.workspace import Workspace

        return compared_report(act_on(Workspace.at(ledger, trust), base, candidate, variable, max_regression))

    finish("compare", output, act, forms=FINDINGS)


def compared_report(done: "Compared") -> Report:
    """Comparability first, then the difference."""
    if done.refused:
        fields = ", ".join(str(item.location.pointer) for item in done.refused if item.location)
        text = f"not comparable: {fields}"
        return Report(exit=done.exit, evaluated=1, of=1, findings=done.refused, text=text, extra={"comparable": False})
    found = done.difference
    lines = ["comparable: both were measured alike as far as they record it, but for the image and what was declared"]
    lines += ["inconclusive: the runs have no pair in common"] if found is None else _lines(found)
    return Report(
        exit=done.exit,
        evaluated=1 if found and found.conclusive else 0,
        of=1,
        findings=done.notes,
        text="\n".join(lines),
        extra={"comparable": True, "difference": _json(found) if found else None},
    )


def _lines(found: "Difference") -> list[str]:
    lines = [f"difference of the candidate: {_percent(found.value)} (median of {found.pairs} pairs)"]
    if found.interval:
        lines.append(f"  interval {_percent(found.interval.low)} to {_percent(found.interval.high)} at 95 %, p = {float(found.p):.4f}")
    else:
        lines.append(f"inconclusive: {found.pairs} pairs reach p = {float(found.attainable):.3f} at best, 0.05 is needed")
    if found.unequal:
        lines.append(f"inconclusive: outputs are not of one length, so a ratio of rates is no speed-up: {', '.join(found.unequal)}")
    if found.conclusive:
        lines.append("the difference is significant" if found.shown else "no difference is shown; that is not proof that there is none")
    return lines


def _json(found: "Difference") -> dict[str, object]:
    from countermark.contracts.measurements.run import decimal

    ends = {"low": decimal(found.interval.low), "high": decimal(found.interval.high), "level": "0.95"} if found.interval else None
    return {
        "pairs": found.pairs,
        "value": decimal(found.value),
        "interval": ends,
        "p": decimal(found.p),
        "attainable_p": decimal(found.attainable),
        "conclusive": found.conclusive,
        "significant": found.shown,
        "unequal_outputs": list(found.unequal),
    }


def _percent(share: Fraction) -> str:
    return f"{float(share) * 100:+.2f} %"
