"""`countermark contract …`: make contracts and their baselines."""

from pathlib import Path
from typing import Annotated

import typer

from countermark.cli.options import OutputOption
from countermark.cli.output import finish
from countermark.cli.report import Report

app = typer.Typer(help="Draft contracts, and write the baselines that they compare with.", no_args_is_help=True)


@app.command("lock")
def lock_facts(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A contract.")],
    root: Annotated[Path | None, typer.Option(metavar="DIR", help="The repository; default: the nearest folder with .git.")] = None,
    folder: Annotated[
        Path | None, typer.Option("--to", metavar="DIR", help="Where the baseline goes; default: beside the contract.")
    ] = None,
    output: OutputOption = [],
) -> None:
    """Write a contract's facts as ID@VERSION.lock.json, which compat.fields-unchanged compares with."""

    def act() -> Report:
        from countermark.actions.contract_tools import lock

        done = lock(path, root, folder)
        what = "wrote" if done.written else "unchanged:"
        text = f"{what} {done.path}  {done.facts} facts\n  next: name it as `baseline` of an invariant that checks compat.fields-unchanged"
        return Report(evaluated=done.facts, of=done.facts, text=text, extra={"lock": str(done.path), "written": done.written})

    finish("contract lock", output, act)


@app.command("infer")
def infer_contract(
    repository: Annotated[Path, typer.Argument(metavar="REPO", help="The folder of a repository.")] = Path(),
    file: Annotated[Path | None, typer.Option("--write", metavar="FILE", help="Write the contract here; default: print it.")] = None,
    output: OutputOption = [],
) -> None:
    """Draft a contract: what recurs in a repository is pinned, and each place where it stands is located."""

    def act() -> Report:
        from countermark.actions.contract_tools import draft, write_draft
        from countermark.contracts.infer import DIFFERS

        text = draft(repository)
        if file is None:
            return Report(text=text.rstrip("\n"), bare=True, extra={"contract": text})
        write_draft(file, text)
        differing = [line.removeprefix("# ") for line in text.splitlines() if line.startswith(DIFFERS)]
        told = "\n".join([f"wrote {file}", *differing, f"  next: countermark verify contract {file}"])
        return Report(text=told, extra={"contract": text, "file": str(file)})

    finish("contract infer", output, act)
