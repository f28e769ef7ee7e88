"""`countermark db …`: a ledger's schema."""

import typer

from countermark.cli.options import DEFAULT_LEDGER, LedgerOption, OutputOption
from countermark.cli.output import finish
from countermark.cli.report import Report

app = typer.Typer(help="Show and upgrade a ledger's schema.", no_args_is_help=True)


@app.command("current")
def current(ledger: LedgerOption = DEFAULT_LEDGER, output: OutputOption = []) -> None:
    """Print the schema revision of a ledger, and this program's."""

    def act() -> Report:
        from countermark.actions.workspace import Workspace
        from countermark.migrations.runner import current as revision_of
        from countermark.migrations.runner import newest

        found, wanted = revision_of(Workspace.at(ledger).ledger), newest()
        text = f"{ledger} is at schema {found or 'none'}; this version reads {wanted}"
        return Report(evaluated=1, of=1, text=text, extra={"schema_revision": found, "program_revision": wanted})

    finish("db current", output, act)


@app.command("upgrade")
def upgrade(ledger: LedgerOption = DEFAULT_LEDGER, output: OutputOption = []) -> None:
    """Bring a ledger to this program's schema, in one transaction; stored bytes are never rewritten."""

    def act() -> Report:
        from countermark.actions.workspace import Workspace
        from countermark.migrations.runner import current as revision_of
        from countermark.migrations.runner import upgrade as bring

        path = Workspace.at(ledger).ledger
        before = revision_of(path)
        bring(path)
        after = revision_of(path)
        text = f"{ledger} was at schema {before}, and is at {after}"
        return Report(evaluated=1, of=1, text=text, extra={"before": before, "after": after})

    finish("db upgrade", output, act)
