"""`countermark init [DIR]`."""

from pathlib import Path
from typing import Annotated

import typer

from countermark.cli.options import OutputOption
from countermark.cli.output import finish
from countermark.cli.report import Report


def init(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="Where to make it.")] = Path(),
    origin: Annotated[str | None, typer.Option(metavar="NAME", help="The log's name; default: countermark.local/DIR/RANDOM.")] = None,
    encrypt: Annotated[bool, typer.Option("--encrypt", help="Encrypt the private keys with a password.")] = False,
    output: OutputOption = [],
) -> None:
    """Make a ledger with its keys, trust policy, sample contract and sample policy."""

    def act() -> Report:
        from countermark.actions.init import initialise
        from countermark.cli.password import new_password

        made = initialise(folder, origin=origin, password=new_password() if encrypt else None)
        ledger = made.workspace.ledger
        lines = [
            f"made {ledger}, the log {made.head.origin}",
            f"  keys in {ledger.parent / 'keys'}: keep the .pem files to yourself",
            f"  trust in {made.workspace.trust_file}: one operator for all roles, until you name others",
            "next",
            f"  export COUNTERMARK_LEDGER={ledger.resolve()}",
            "  countermark contract infer . --write contract.yaml    in your repository; then commit it",
            "  countermark verify contract . --record",
            "  countermark record image IMAGE --component PIN=COMMIT",
            f"  countermark gate DIGEST --policy {ledger.parent / 'policy.yaml'}    after you put the contract's id into it",
        ]
        files = [str(path) for path in made.files]
        return Report(evaluated=1, of=1, ledger=made.head.to_json(), text="\n".join(lines), extra={"files": files})

    finish("init", output, act)
