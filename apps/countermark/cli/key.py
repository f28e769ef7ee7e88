"""`countermark key …`: make, show and import keys."""

from pathlib import Path
from typing import Annotated

import typer

from countermark.cli.options import DEFAULT_LEDGER, LedgerOption, OutputOption
from countermark.cli.output import finish
from countermark.cli.report import Report

app = typer.Typer(help="Make, show and import keys.", no_args_is_help=True)


@app.command("generate")
def generate(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Where the private key goes; the public one beside it as .pub.")],
    algorithm: Annotated[str, typer.Option("--type", help="ed25519, p256, p384 or ml-dsa-65.")] = "ed25519",
    encrypt: Annotated[bool, typer.Option("--encrypt", help="Ask for a password (or take COUNTERMARK_PASSWORD).")] = False,
    output: OutputOption = [],
) -> None:
    """Make a key pair."""

    def act() -> Report:
        from countermark.actions.keyring import generate as make
        from countermark.cli.password import new_password

        public = make(path, algorithm, new_password() if encrypt else None)
        return _shown(str(path), str(public.fingerprint), public.algorithm.name)

    finish("key generate", output, act)


@app.command("show")
def show(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A public or private key file.")],
    output: OutputOption = [],
) -> None:
    """Print a key's fingerprint and its public half."""

    def act() -> Report:
        from countermark.actions.workspace import public_key

        key = public_key(str(path))
        return _shown(str(path), str(key.fingerprint), key.algorithm.name, key.to_pem().decode().rstrip())

    finish("key show", output, act)


@app.command("import")
def import_key(
    path: Annotated[Path, typer.Argument(metavar="KEY.pub", help="The public key.")],
    role: Annotated[str, typer.Option(help="builder, qualifier, approver or gate, or another that the trust policy has.")],
    name: Annotated[str | None, typer.Option(help="The owner's name; default: the file's.")] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    output: OutputOption = [],
) -> None:
    """Make the owner of a key a principal of the ledger's trust policy, with a role."""

    def act() -> Report:
        from countermark.actions.keyring import import_key as take
        from countermark.actions.workspace import Workspace

        done = take(Workspace.at(ledger), path, role, name)
        text = f"{done.principal} has the role {done.role} with {done.key.fingerprint}; entry {done.index}"
        if done.single_operator:
            text += "\nnext: set single_operator: false in the trust policy, and name roles to keep apart under separate"
        fields = {"principal": done.principal, "role": done.role, "key": str(done.key.fingerprint), "index": done.index}
        return Report(evaluated=1, of=1, text=text, extra=fields)

    finish("key import", output, act)


def _shown(path: str, fingerprint: str, algorithm: str, pem: str | None = None) -> Report:
    text = f"{path}\n  {algorithm.lower().replace('_', '-')}  {fingerprint}" + (f"\n{pem}" if pem else "")
    return Report(evaluated=1, of=1, text=text, extra={"file": path, "algorithm": algorithm, "key": fingerprint, "pem": pem})
