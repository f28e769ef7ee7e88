"""`countermark diff A B`."""

from typing import Annotated

import typer

from countermark.cli.options import DEFAULT_LEDGER, LedgerOption, OutputOption, TrustOption
from countermark.cli.output import finish
from countermark.cli.query import AtOption, PolicyOption, TimeOption
from countermark.cli.report import Report


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="An image: KIND:sha256:HEX64, or sha256:HEX64.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another.")],
    policy: PolicyOption = None,
    effective_time: TimeOption = None,
    at: AtOption = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: OutputOption = [],
) -> None:
    """Show what differs between two images: components, contracts, qualified scopes, layers, tests. Exit 0 when that is answered."""

    def act() -> Report:
        from countermark.actions.image_diff import diff_listing
        from countermark.actions.workspace import Workspace
        from countermark.cli.query import asked_by
        from countermark.cli.render_listing import listing_report

        asked = asked_by(policy, effective_time, at)
        return listing_report("diff", diff_listing(Workspace.at(ledger, trust), asked, a, b))

    finish("diff", output, act)
