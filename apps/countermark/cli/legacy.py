"""`countermark verify layout`: supply chains that were signed before attestations."""

from pathlib import Path
from typing import Annotated

import typer

from countermark.cli.options import OutputOption
from countermark.cli.output import finish
from countermark.cli.report import Report


def layout(
    file: Annotated[Path, typer.Argument(metavar="LAYOUT", help="A signed in-toto layout.")],
    links: Annotated[Path, typer.Option(metavar="DIR", help="The folder of its link files.")],
    layout_key: Annotated[
        list[str], typer.Option(metavar="FILE", help="An owner's public key; repeatable, each must have signed.", show_default=False)
    ] = [],
    artifacts: Annotated[Path | None, typer.Option(metavar="DIR", help="The folder of the final products, to compare them.")] = None,
    run_inspections: Annotated[bool, typer.Option("--run-inspections", help="Run the layout's commands there.")] = False,
    output: OutputOption = [],
) -> None:
    """Check an in-toto layout, its links, and the files that its last step made."""

    def act() -> Report:
        from countermark.actions.legacy import check_layout
        from countermark.cli.render_layout import layout_report

        return layout_report(str(file), check_layout(file, links, layout_key, artifacts, run_inspections=run_inspections))

    finish("verify layout", output, act)
