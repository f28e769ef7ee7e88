"""The program: global flags, and the commands in the order of a user's day."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any

import typer

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.errors import CountermarkError, InputError, Location
from countermark.attestations.release import __version__
from countermark.cli import (
    attest,
    attestation,
    benchmark,
    compare,
    contract,
    db,
    demo,
    diff,
    evidence,
    gate,
    importing,
    init,
    key,
    ledger,
    ledger_files,
    legacy,
    negative,
    quality,
    query,
    record,
    restore,
    schema,
    search,
    snapshot,
    verify,
    verify_bundle,
    verify_claims,
    verify_contract,
    verify_export,
    verify_ledger,
    verify_vsa,
    waiver,
    witness,
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
record.app.command("benchmark")(benchmark.record)
record.app.command("quality")(quality.record)
record.app.command("evidence")(evidence.record)
record.app.command("snapshot")(snapshot.record)
app.add_typer(record.app, name="record")
app.command("endorse")(evidence.endorse)
app.command("attest")(attest.attest)
app.command("reject")(negative.reject)
app.command("retract")(negative.retract)
app.command("supersede")(negative.supersede)
app.command("import")(importing.import_files)
app.add_typer(attestation.app, name="attestation")
verify.app.command("bundle")(verify_bundle.bundle)
verify.app.command("evidence")(evidence.verify)
verify.app.command("layout")(legacy.layout)
verify.app.command("contract")(verify_contract.contract)
verify.app.command("claims")(verify_claims.claims)
verify.app.command("vsa")(verify_vsa.vsa)
verify.app.command("ledger")(verify_ledger.ledger_file)
verify.app.command("snapshot")(snapshot.verify)
verify.app.command("receipt")(snapshot.verify_receipt)
verify.app.command("proof")(verify_export.proof)
verify.app.command("export")(verify_export.export)
app.add_typer(verify.app, name="verify")
app.add_typer(contract.app, name="contract")
app.add_typer(restore.app, name="restore")
app.add_typer(quality.app, name="quality")
app.command("gate")(gate.gate)
app.command("explain")(gate.explain_image)
app.add_typer(waiver.app, name="waiver")
app.command("search")(search.search)
app.add_typer(query.app, name="query")
app.command("diff")(diff.diff)
app.command("compare")(compare.compare)
ledger.app.command("prove")(ledger_files.prove)
ledger.app.command("export")(ledger_files.export)
ledger.app.command("backup")(ledger_files.backup)
ledger.app.command("restore")(ledger_files.restore)
ledger.app.command("reindex")(ledger_files.reindex)
ledger.app.add_typer(witness.app, name="witness")
app.add_typer(ledger.app, name="ledger")
app.add_typer(db.app, name="db")
app.command("schema")(schema.schema)
app.command("demo")(demo.demo)

_PIPE_CLOSED = 141
_USAGE: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
"""The class of all usage errors. It is caught here, not left to click, which would exit 1 when a pipe is closed under it."""


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
        code = app(args=list(arguments), prog_name="countermark", standalone_mode=False)
    except typer.Exit as end:
        return end.exit_code
    except SystemExit as end:
        # The only 1 that click itself exits with, when it is not standalone, is that of a closed pipe.
        return _PIPE_CLOSED if end.code == 1 else _code(end.code)
    except BrokenPipeError:
        return _PIPE_CLOSED
    except OSError as error:
        why = f"nothing can be printed: {error.strerror}"
        complain(InputError(Code.UNREADABLE, why, at=Location("standard output"), fix="give it room"))
        return int(ExitCode.INVALID)
    except _USAGE as error:
        with suppress(OSError):
            error.show()
        return int(ExitCode.USAGE)
    except CountermarkError as error:
        if Settings.debug:
            import traceback

            traceback.print_exception(error)
        complain(error)
        return int(error.exit)
    return _code(code)


def _code(value: object) -> int:
    return value if isinstance(value, int) else 0
