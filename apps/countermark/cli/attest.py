"""`countermark attest`."""

from pathlib import Path
from typing import Annotated

import typer

from countermark.cli.options import DEFAULT_LEDGER, LedgerOption, OutputOption, SigningKeyOption, TrustOption
from countermark.cli.output import finish
from countermark.cli.report import Report


def attest(
    subject: Annotated[list[str], typer.Option(metavar="DIGEST", help="What the claim is about; repeatable.")],
    predicate_type: Annotated[str, typer.Option("--type", metavar="URI", help="The predicate type: a URI, or a name of ours.")],
    predicate: Annotated[Path, typer.Option(metavar="FILE", help="The predicate: a JSON object.")],
    role: Annotated[str, typer.Option(help="The role whose key signs, without --key.")] = "builder",
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    key: SigningKeyOption = None,
    output: OutputOption = [],
) -> None:
    """Sign and record any other statement."""

    def act() -> Report:
        from countermark.actions.appending import record
        from countermark.actions.attest import read_claim
        from countermark.actions.workspace import Workspace
        from countermark.cli.render_recorded import recorded_report

        return recorded_report(record(Workspace.at(ledger, trust), read_claim(subject, predicate_type, predicate), role, key))

    finish("attest", output, act)
