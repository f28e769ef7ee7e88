"""`countermark schema [KIND]`: the JSON Schemas, for editors."""

from typing import Annotated

import typer

from countermark.cli.output import finish
from countermark.cli.report import Report


def schema(
    kind: Annotated[str | None, typer.Argument(metavar="[KIND]", help="A document kind or predicate name; without it, the list.")] = None,
) -> None:
    """Print the JSON Schema of a document or predicate."""

    def act() -> Report:
        from countermark.attestations.schema import kinds, schema_text

        return Report(text=schema_text(kind).rstrip() if kind else "\n".join(kinds()), bare=True)

    finish("schema", (), act)
