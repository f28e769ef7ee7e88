"""The program: global flags, and the commands in the order of a user's day."""

from collections.abc import Sequence
from typing import Annotated

import typer

from countermark.attestations.errors import CountermarkError
from countermark.attestations.release import __version__
from countermark.cli import (
    attest,
    db,
    demo,
    diff,
    evidence,
    gate,
    importing,
    init,
    key,
    ledger,
    legacy,
    negative,
    query,
    record,
    schema,
    search,
    verify,
    verify_bundle,
    verify_contract,
    verify_ledger,
    verify_vsa,
)
from countermark.cli.output import Settings, complain

app = typer.Typer(
    name="countermark",
    help="A provenance ledger and contract verifier for LLM-serving images.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("init")(init.init)
app.add_typer(key.app, name="key")
record.app.command("evidence")(evidence.record)
app.add_typer(record.app, name="record")
app.command("endorse")(evidence.endorse)
app.command("attest")(attest.attest)
app.command("reject")(negative.reject)
app.command("retract")(negative.retract)
app.command("supersede")(negative.supersede)
app.command("import")(importing.import_files)
verify.app.command("bundle")(verify_bundle.bundle)
verify.app.command("evidence")(evidence.verify)
verify.app.command("layout")(legacy.layout)
verify.app.command("contract")(verify_contract.contract)
verify.app.command("vsa")(verify_vsa.vsa)
verify.app.command("ledger")(verify_ledger.ledger_file)
app.add_typer(verify.app, name="verify")
app.command("gate")(gate.gate)
app.command("explain")(gate.explain_image)
app.command("search")(search.search)
app.add_typer(query.app, name="query")
app.command("diff")(diff.diff)
app.add_typer(ledger.app, name="ledger")
app.add_typer(db.app, name="db")
app.command("schema")(schema.schema)
app.command("demo")(demo.demo)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"countermark {__version__}")
        raise typer.Exit


@app.callback()
def settings(
    debug: Annotated[bool, typer.Option("--debug", help="Show stack traces.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no text report and no progress.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Print more of what was looked at.")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colour; so does NO_COLOR.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)] = False,
) -> None:
    """Flags that may stand anywhere on the command line."""
    del version
    Settings.debug, Settings.quiet, Settings.verbose, Settings.colour = debug, quiet, verbose, not no_color


def run(arguments: Sequence[str]) -> int:
    """Run one command line; the exit code of the table. A crash travels on."""
    try:
        app(args=list(arguments), prog_name="countermark")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except CountermarkError as error:
        if Settings.debug:
            import traceback

            traceback.print_exception(error)
        complain(error)
        return int(error.exit)
    return 0
