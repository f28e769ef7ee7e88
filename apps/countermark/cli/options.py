"""Options that mean the same in every command."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

LedgerOption: TypeAlias = Annotated[
    str, typer.Option("--ledger", envvar="COUNTERMARK_LEDGER", metavar="PATH", help="The ledger.", show_default=True)
]
TrustOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--trust", metavar="FILE", help="The trust policy; default: trust.yaml beside the ledger.", show_default=False),
]
SigningKeyOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--key",
        envvar="COUNTERMARK_KEY",
        metavar="URI",
        help="Signing key: PEM file or signer URI; default: keys/ROLE.pem beside the ledger.",
    ),
]
OutputOption: TypeAlias = Annotated[
    list[str], typer.Option("--output", "-o", metavar="FORMAT[=PATH]", help="text or json; repeatable.", show_default=False)
]
FindingsOption: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--output", "-o", metavar="FORMAT[=PATH]", help="text, json, markdown, sarif, junit or github; repeatable.", show_default=False
    ),
]
LogKeyOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--log-key", metavar="VKEY", help="The log's verifier key, NAME+HEX+BASE64, or a file with it.", show_default=False),
]
WitnessPolicyOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--policy", metavar="FILE", help="A C2SP tlog-policy: the witnesses that a checkpoint needs.", show_default=False),
]
HeldOption: TypeAlias = Annotated[
    list[Path], typer.Option("--checkpoint", metavar="NOTE", help="A checkpoint that you hold; repeatable.", show_default=False)
]
MaxAgeOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--max-age",
        metavar="N(d|h)",
        help="How old the checkpoint may be, by its witnesses or else by its newest entry; not judged without.",
        show_default=False,
    ),
]
StrictOption: TypeAlias = Annotated[bool, typer.Option("--strict", help="What only warns, such as a missing guard, is a failure too.")]
PageOption: TypeAlias = Annotated[
    list[str], typer.Option("--output", "-o", metavar="FORMAT[=PATH]", help="text, json or html=FILE; repeatable.", show_default=False)
]
ExplainOption: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--output",
        "-o",
        metavar="FORMAT[=PATH]",
        help="text, json, html=FILE, or of a decision bundle=FILE with all that it takes to make it again; repeatable.",
        show_default=False,
    ),
]
FindingsPageOption: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--output",
        "-o",
        metavar="FORMAT[=PATH]",
        help="text, json, markdown, sarif, junit, github or html=FILE; repeatable.",
        show_default=False,
    ),
]
DEFAULT_LEDGER = "countermark.db"
