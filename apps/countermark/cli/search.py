"""`countermark search PREFIX`."""

from typing import Annotated

import typer

from countermark.cli.options import DEFAULT_LEDGER, LedgerOption, OutputOption
from countermark.cli.output import finish
from countermark.cli.report import Report


def search(
    prefix: Annotated[str, typer.Argument(metavar="PREFIX", help="Five or more hex digits of any digest, with or without its kind.")],
    ledger: LedgerOption = DEFAULT_LEDGER,
    output: OutputOption = [],
) -> None:
    """Find entries by a digest prefix. A prefix is a search term, never an identity."""

    def act() -> Report:
        from countermark.actions.search import search_ledger
        from countermark.actions.workspace import Workspace
        from countermark.attestations.codes import ExitCode

        found = search_ledger(Workspace.at(ledger), prefix)
        lines = [f"{hit.digest}  entry {hit.index}  {hit.role}  {hit.predicate_type}" for hit in found.hits]
        return Report(
            exit=ExitCode.YES if found.hits else ExitCode.NOTHING,
            evaluated=len(found.hits),
            of=len(found.hits),
            ledger=found.head.to_json(),
            text="\n".join(lines) or f"nothing in {found.head.size} entries begins with {prefix}",
            extra={"rows": [hit.to_json() for hit in found.hits]},
        )

    finish("search", output, act)
