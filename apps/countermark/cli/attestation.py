"""`countermark attestation download`; the name is that of `gh attestation download`."""

from pathlib import Path
from typing import Annotated

import typer

from countermark.cli.options import DEFAULT_LEDGER, LedgerOption, OutputOption
from countermark.cli.output import finish
from countermark.cli.report import Report

app = typer.Typer(help="Statements of a ledger as files for other tools.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Statements of a ledger as files for other tools."""


@app.command("download")
def download(
    digest: Annotated[str, typer.Argument(metavar="DIGEST", help="A subject, or the payload digest of one statement.")],
    to: Annotated[Path, typer.Option("--to", metavar="PATH", help="The new .intoto.jsonl file, or the folder of .sigstore.json files.")],
    form: Annotated[str, typer.Option("--format", help="intoto (one file, an envelope a line) or sigstore (a bundle each).")] = "intoto",
    ledger: LedgerOption = DEFAULT_LEDGER,
    output: OutputOption = [],
) -> None:
    """Write every statement about a digest as in-toto envelopes or sigstore bundles."""

    def act() -> Report:
        from countermark.actions.download import download as write
        from countermark.actions.workspace import Workspace

        done = write(Workspace.at(ledger), digest, form, to)
        return Report(
            evaluated=len(done.entries),
            of=len(done.entries),
            ledger=done.head.to_json(),
            text="\n".join(str(path) for path in done.files),
            extra={"files": [str(path) for path in done.files], "entries": list(done.entries)},
        )

    finish("attestation download", output, act)
