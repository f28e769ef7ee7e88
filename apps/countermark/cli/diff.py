"""`countermark diff A B`."""

from typing import Annotated

import typer

from countermark.cli.asking import AtOption, PolicyOption, TimeOption, asked
from countermark.cli.options import DEFAULT_LEDGER, LedgerOption, OutputOption, TrustOption
from countermark.cli.output import finish
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
        from countermark.cli.render_listing import listing_report

        question = asked(policy=policy, effective_time=effective_time, at=at)
        return listing_report("diff", diff_listing(Workspace.at(ledger, trust), question, a, b))

    finish("diff", output, act)
