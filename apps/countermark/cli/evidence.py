"""`countermark record evidence`, `verify evidence`, `endorse`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countermark.attestations.located import JsonValue, as_object
from countermark.cli.formats import FINDINGS
from countermark.cli.options import DEFAULT_LEDGER, FindingsOption, LedgerOption, OutputOption, SigningKeyOption, TrustOption
from countermark.cli.output import finish
from countermark.cli.report import Report

if TYPE_CHECKING:
    from countermark.actions.evidence_records import EvidenceRecorded
    from countermark.attestations.findings import Finding
    from countermark.contracts.adapters.reading import EvidenceReading

FilesArgument = Annotated[list[Path], typer.Argument(metavar="FILE...", help="Documents, and the files that they refer to.")]
AdapterOption = Annotated[str | None, typer.Option(metavar="NAME|FILE", help="An adapter of ours, or an EvidenceMapping of yours.")]
BindOption = Annotated[
    list[str],
    typer.Option("--bind", metavar="FIELD=VALUE[ because WHY]", help="What a record does not say; repeatable.", show_default=False),
]


def record(
    files: FilesArgument,
    adapter: AdapterOption = None,
    bind: BindOption = [],
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    key: SigningKeyOption = None,
    output: OutputOption = [],
) -> None:
    """Record what outside evidence documents claim: their bytes, the claims, and what was refused."""

    def act() -> Report:
        from countermark.actions.evidence_records import record as append
        from countermark.actions.workspace import Workspace

        return recorded_report(append(Workspace.at(ledger, trust), files, adapter, bind, key))

    finish("record evidence", output, act)


def verify(files: FilesArgument, adapter: AdapterOption = None, bind: BindOption = [], output: FindingsOption = []) -> None:
    """Judge outside evidence documents by themselves. Needs no ledger, key or network."""

    def act() -> Report:
        from countermark.actions.evidence_records import read_evidence
        from countermark.attestations.codes import ExitCode
        from countermark.cli.formats.checks import reading_check

        readings = read_evidence(files, adapter, bind)
        found = [_at_paths(reading, files) for reading in readings]
        return Report(
            exit=ExitCode.first_of(reading.exit for reading in readings),
            evaluated=sum(1 for reading in readings if reading.claims),
            of=len(readings),
            findings=tuple(finding for findings in found for finding in findings),
            text="\n".join(_reading_text(reading) for reading in readings),
            checks=tuple(map(reading_check, readings, found)),
            extra={"documents": [reading.predicate() for reading in readings]},
        )

    finish("verify evidence", output, act, forms=FINDINGS)


def endorse(
    entries: Annotated[list[str], typer.Argument(metavar="ENTRY...", help="Recorded documents: entry numbers or payload digests.")],
    only: Annotated[list[str], typer.Option(metavar="CAPABILITY", help="These capabilities alone; repeatable.", show_default=False)] = [],
    adapter: AdapterOption = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    key: SigningKeyOption = None,
    output: OutputOption = [],
) -> None:
    """Turn the claims of recorded documents into receipts and rejections, computed anew from their bytes."""

    def act() -> Report:
        from countermark.actions.evidence_records import endorse as append
        from countermark.actions.workspace import Workspace

        return recorded_report(append(Workspace.at(ledger, trust), entries, only, key, adapter))

    finish("endorse", output, act)


def recorded_report(done: "EvidenceRecorded") -> Report:
    """Each statement that was appended, and what was read from the documents."""
    from countermark.attestations.predicate_types import PredicateName

    lines = [_reading_text(reading) for reading in done.readings]
    for item in done.appended:
        name = PredicateName.from_uri(item.statement.predicate_type)
        again = ", where it stood before" if item.receipt.duplicate else ""
        lines.append(f"entry {item.receipt.index}  {name}  {_said(item.statement.predicate)}{again}")
    recorded = [item.receipt.to_json() for item in done.appended]
    return Report(
        evaluated=len(done.appended),
        of=len(done.appended),
        findings=tuple(finding for reading in done.readings for finding in reading.findings),
        ledger=done.head.to_json(),
        text="\n".join(lines),
        extra={"recorded": recorded, "statements": [item.statement.predicate for item in done.appended]},
    )


def _at_paths(reading: "EvidenceReading", files: list[Path]) -> "tuple[Finding, ...]":
    """The findings of a document under the paths that were given, where a reading names each file from the folder of its document."""
    from dataclasses import replace

    given = {path.name: path for path in files}
    folder = given.get(reading.root.name, Path()).parent

    def placed(finding: "Finding") -> "Finding":
        at = finding.location
        return replace(finding, location=replace(at, file=str(given.get(at.file, folder / at.file)))) if at else finding

    return tuple(map(placed, reading.findings))


def _said(predicate: JsonValue) -> str:
    """One line about a receipt, a rejection or a document."""
    fields = as_object(predicate)
    if "outcome" in fields:
        claim = f" ({fields['claim']})" if fields.get("claim") else ""
        return f"{fields['capability']}: {fields['outcome']}{claim}, {fields['basis']}"
    return str(fields.get("reason") or fields.get("schema") or fields.get("level") or "")


def _reading_text(reading: "EvidenceReading") -> str:
    name, version = reading.adapter
    lines = [f"{reading.root.name}  {reading.schema}  read by {name}@{version}"]
    lines.extend(f"  {claim['outcome']!s:<13} {claim['capability']}  {claim['source']}" for claim in reading.claims)
    lines.extend(f"  refused       {item.pointer}: {item.why}" for item in reading.refused)
    lines.extend(f"  not here      {item.pointer}: {item.sha256}" for item in reading.not_here)
    return "\n".join(lines)
