"""`countermark ledger witness …`: cosigning by files that are carried from the log to a witness and back."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from countermark.cli.options import DEFAULT_LEDGER, LedgerOption, OutputOption, WitnessPolicyOption
from countermark.cli.output import finish
from countermark.cli.report import Report

if TYPE_CHECKING:
    from countermark.actions.witnessing import Added, WitnessState

FolderArgument: TypeAlias = Annotated[Path, typer.Argument(metavar="DIR", help="The witness's own folder.")]

app = typer.Typer(help="Cosign checkpoints as a witness, and take cosignatures into a ledger.", no_args_is_help=True)


@app.command("new")
def new(
    folder: FolderArgument,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="What the witness is called, such as witness.example/w1.")],
    log_key: Annotated[
        list[str], typer.Option("--log-key", metavar="VKEY", help="A log that it witnesses; repeatable.", show_default=False)
    ],
    key_type: Annotated[str, typer.Option("--type", help="ed25519 or ml-dsa-44.")] = "ed25519",
    encrypt: Annotated[bool, typer.Option("--encrypt", help="Ask for a password (or take COUNTERMARK_PASSWORD).")] = False,
    output: OutputOption = [],
) -> None:
    """Make a witness in an empty folder. Who runs the log must not be able to write to it."""

    def act() -> Report:
        from countermark.actions.witnessing import new_witness
        from countermark.cli.password import new_password

        return state_report(new_witness(folder, name, log_key, key_type, new_password() if encrypt else None))

    finish("ledger witness new", output, act)


@app.command("cosign")
def cosign(
    folder: FolderArgument,
    request: Annotated[Path, typer.Argument(metavar="REQUEST", help="What `ledger prove --from N` printed.")],
    output: OutputOption = [],
) -> None:
    """Print the checkpoint of a request, cosigned, if it continues all that this witness has cosigned of the log."""

    def act() -> Report:
        from countermark.actions.witnessing import cosign as sign

        note = sign(folder, request)
        return Report(evaluated=1, of=1, text=note.rstrip("\n"), bare=True, extra={"checkpoint": note})

    finish("ledger witness cosign", output, act)


@app.command("show")
def show(folder: FolderArgument, output: OutputOption = []) -> None:
    """Print a witness's verifier key, and what it has cosigned last of each log."""

    def act() -> Report:
        from countermark.actions.witnessing import witness_state

        return state_report(witness_state(folder))

    finish("ledger witness show", output, act)


@app.command("add")
def add(
    notes: Annotated[list[Path], typer.Argument(metavar="NOTE...", help="Checkpoints that a witness has cosigned.")],
    policy: WitnessPolicyOption = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    output: OutputOption = [],
) -> None:
    """Take the cosignatures of the policy's witnesses into the ledger (policy: witnesses.policy beside it, unless given)."""

    def act() -> Report:
        from countermark.actions.witnessing import add_cosignatures
        from countermark.actions.workspace import Workspace

        return added_report(add_cosignatures(Workspace.at(ledger), notes, policy))

    finish("ledger witness add", output, act)


def state_report(state: "WitnessState") -> Report:
    """The witness's key, and its newest head of each log."""
    seen = [{"origin": item.checkpoint.origin, "size": item.checkpoint.size, "root": item.checkpoint.root.hex()} for item in state.seen]
    lines = [str(state.vkey), *(f"{item.checkpoint.origin} at {item.checkpoint.size}" for item in state.seen)]
    return Report(evaluated=1, of=1, text="\n".join(lines), extra={"vkey": str(state.vkey), "seen": seen})


def added_report(added: "Added") -> Report:
    """Who holds which head now."""
    held = "\n".join(f"{name} holds {size} entries" for name, size in added.held)
    return Report(
        evaluated=len(added.held),
        of=len(added.held),
        ledger=added.head.to_json(),
        text=f"{held}\n{added.new} cosignatures are new",
        extra={"new": added.new, "held": [{"witness": name, "size": size} for name, size in added.held]},
    )
