"""`countermark key …`: make, show and import keys, and take them away again."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from countermark.cli.options import DEFAULT_LEDGER, LedgerOption, OutputOption, TrustOption
from countermark.cli.output import finish
from countermark.cli.report import Report

if TYPE_CHECKING:
    from countermark.actions.key_events import TakenKey

TakenKeyArgument: TypeAlias = Annotated[str, typer.Argument(metavar="KEY", help="The public key: its file or its fingerprint.")]
ReasonOption: TypeAlias = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why.")]
SignersOption: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--key",
        envvar="COUNTERMARK_KEY",
        metavar="URI",
        help="Who says so: PEM file or signer URI, one for each who must sign; default: keys/builder.pem beside the ledger.",
        show_default=False,
    ),
]

app = typer.Typer(help="Make, show, import, retire and revoke keys.", no_args_is_help=True)


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
    path: Annotated[str, typer.Argument(metavar="KEY", help="A public or private key file, or a signer URI.")],
    output: OutputOption = [],
) -> None:
    """Print a key's fingerprint and its public half."""

    def act() -> Report:
        from countermark.actions.workspace import public_key

        key = public_key(path)
        return _shown(path, str(key.fingerprint), key.algorithm.name, key.to_pem().decode().rstrip())

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


@app.command("retire")
def retire(
    key: TakenKeyArgument,
    reason: ReasonOption,
    signers: SignersOption = [],
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: OutputOption = [],
) -> None:
    """End a key: what the ledger has of it stays good, nothing that it signs is taken any more. For ever."""

    def act() -> Report:
        from countermark.actions.key_events import Asked
        from countermark.actions.key_events import retire as take
        from countermark.actions.workspace import Workspace

        return _taken(take(Workspace.at(ledger, trust), Asked(key, reason, tuple(signers))), "retired")

    finish("key retire", output, act)


@app.command("revoke")
def revoke(
    key: TakenKeyArgument,
    reason: ReasonOption,
    since_entry: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="The first entry that a thief may have signed; default: all are suspect.")
    ] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="When it was lost, for the record.")] = None,
    signers: SignersOption = [],
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: OutputOption = [],
) -> None:
    """Tell that a key was stolen or lost: what it signed is suspect and satisfies nothing any more. For ever."""

    def act() -> Report:
        from countermark.actions.key_events import Asked
        from countermark.actions.key_events import revoke as take
        from countermark.actions.workspace import Workspace
        from countermark.cli.asking import instant

        workspace, asked = Workspace.at(ledger, trust), Asked(key, reason, tuple(signers))
        return _taken(take(workspace, asked, since_entry=since_entry, since=instant(since, "--since")), "revoked")

    finish("key revoke", output, act)


def _taken(done: "TakenKey", verb: str) -> Report:
    """What the event does to the entries that the key signed, and what to do next."""
    from countermark.ledger.audit_report import name_entries

    told = f"{done.key} of {done.event.principal} is {verb} by entry {done.index}"
    lines = [told if done.counts else f"entry {done.index} waits: more must sign the same event before the key is {verb}"]
    lines += [f"  signed by it and good: {name_entries(done.kept)}"] if done.kept else []
    lines += [f"  signed by it and suspect: {name_entries(done.suspect)}"] if done.suspect else []
    lines += [f"next: countermark query impact --key {done.key}"] if done.suspect else []
    fields = {
        "key": str(done.key),
        "principal": done.event.principal,
        "index": done.index,
        "duplicate": done.duplicate,
        "in_effect": done.counts,
        "kept": list(done.kept),
        "suspect": list(done.suspect),
    }
    return Report(evaluated=1, of=1, text="\n".join(lines), extra=fields)


def _shown(path: str, fingerprint: str, algorithm: str, pem: str | None = None) -> Report:
    text = f"{path}\n  {algorithm.lower().replace('_', '-')}  {fingerprint}" + (f"\n{pem}" if pem else "")
    return Report(evaluated=1, of=1, text=text, extra={"file": path, "algorithm": algorithm, "key": fingerprint, "pem": pem})
