"""`countermark demo [DIR]`."""

from pathlib import Path
from typing import Annotated

import typer

from countermark.cli.options import OutputOption
from countermark.cli.output import finish, say
from countermark.cli.report import Report

_PAGE = "report.html"


def demo(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="A new folder.")] = Path("demo"),
    output: OutputOption = [],
) -> None:
    """Run the main job end to end on an example made on the spot; no network, no GPU, no keys."""
    quiet = any(target.partition("=")[0] == "json" and "=" not in target for target in output)

    def act() -> Report:
        from countermark.actions.demo.story import Story
        from countermark.attestations.codes import ExitCode

        story = Story(folder, (lambda _line: None) if quiet else say)
        story.run()
        ledger = folder / "countermark.db"
        lines = [
            f"a page of all this, for a browser: {_page(folder)}",
            "look around",
            f"  countermark explain sha256:… --policy {folder}/policies/release.yaml --ledger {ledger}",
            f"  countermark verify contract {folder}/release",
            f"  countermark ledger stats --ledger {ledger}",
        ]
        lines += [f"not as the story says: {surprise}" for surprise in story.surprises]
        return Report(
            exit=ExitCode.INTERNAL if story.surprises else ExitCode.YES,
            evaluated=1,
            of=1,
            text="\n".join(lines),
            verdict="FAIL" if story.surprises else "OK",
            extra={"folder": str(folder), "report": str(folder / _PAGE), "surprises": story.surprises},
        )

    finish("demo", output, act)


def _page(folder: Path) -> Path:
    """Write the page of the demo's ledger, judged as the laboratory that published the records would judge."""
    from countermark.actions.clock import made_now
    from countermark.actions.gate import Asked
    from countermark.actions.ledger_report import ledger_overview
    from countermark.actions.new_files import write_whole
    from countermark.actions.workspace import Workspace
    from countermark.web.overview import overview_page

    policy = folder / "policies" / "lab-as-published.yaml"
    overview = ledger_overview(Workspace.at(str(folder / "countermark.db")), Asked((), policy if policy.exists() else None))
    write_whole(folder / _PAGE, overview_page(overview, made_now()).encode())
    return folder / _PAGE
