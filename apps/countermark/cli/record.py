"""`countermark record …`: read the world, sign what was read, append it."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countermark.cli.options import DEFAULT_LEDGER, LedgerOption, OutputOption, SigningKeyOption, TrustOption
from countermark.cli.output import finish
from countermark.cli.report import Report

if TYPE_CHECKING:
    from countermark.recorders.recording import Recording

app = typer.Typer(help="Record a commit, an image, a model or a test run as a signed statement.", no_args_is_help=True)


@app.command("source")
def source(
    repository: Annotated[Path, typer.Argument(metavar="[REPO]", help="A git repository.")] = Path(),
    rev: Annotated[str, typer.Option(help="The revision.")] = "HEAD",
    include: Annotated[Path | None, typer.Option(metavar="FILE", help="The paths of the source set, one a line.")] = None,
    source_tree: Annotated[
        list[str],
        typer.Option(
            metavar="ALGORITHM[:ROOT]", help="countermark-source-tree/v1 or sparkcache-source-tree/v1; repeatable.", show_default=False
        ),
    ] = [],
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    key: SigningKeyOption = None,
    output: OutputOption = [],
) -> None:
    """Record a commit and its tree from git objects."""

    def read() -> "Recording":
        from countermark.recorders.source import record_source

        return record_source(repository, rev=rev, include=include, source_trees=source_tree)

    _record("record source", read, ledger, trust, key, output)


@app.command("image")
def image(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="OCI layout or archive, docker archive, or `docker image inspect` JSON.")],
    digest: Annotated[str | None, typer.Option(metavar="DIGEST", help="Which image, where there are several.")] = None,
    platform: Annotated[str | None, typer.Option(metavar="OS/ARCH", help="Which platform of an index.")] = None,
    component: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=COMMIT[,tree=…,source_sha256=…,repository=…]", help="A source it was built from; repeatable.", show_default=False
        ),
    ] = [],
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    key: SigningKeyOption = None,
    output: OutputOption = [],
) -> None:
    """Record an image: index, manifest and config digests, each alias proven from bytes."""

    def read() -> "Recording":
        from countermark.cli.progress import byte_progress
        from countermark.recorders.image import record_image

        with byte_progress("hashing") as told:
            return record_image(path, digest=digest, platform=platform, components=component, progress=told)

    _record("record image", read, ledger, trust, key, output)


@app.command("model")
def model(
    path: Annotated[Path, typer.Argument(metavar="DIR|FILE", help="A Hugging Face snapshot folder, or a manifest of files.")],
    role: Annotated[str, typer.Option(help="target or draft.")],
    repository: Annotated[str | None, typer.Option(metavar="ORG/NAME", help="The model's repository, where the path does not say.")] = None,
    revision: Annotated[str | None, typer.Option(metavar="HEX", help="The model's revision, where the path does not say.")] = None,
    drafts_for: Annotated[str | None, typer.Option(metavar="ORG/NAME@HEX", help="The target that a draft belongs to.")] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    key: SigningKeyOption = None,
    output: OutputOption = [],
) -> None:
    """Record a model's files by digest."""

    def read() -> "Recording":
        from countermark.cli.progress import byte_progress
        from countermark.recorders.model import record_model

        with byte_progress("hashing") as told:
            return record_model(path, role=role, repository=repository, revision=revision, drafts_for=drafts_for, progress=told)

    _record("record model", read, ledger, trust, key, output)


@app.command("tests")
def junit(
    path: Annotated[Path, typer.Argument(metavar="JUNIT.xml", help="A JUnit report.")],
    subject: Annotated[str, typer.Option(metavar="DIGEST", help="What was tested.")],
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    key: SigningKeyOption = None,
    output: OutputOption = [],
) -> None:
    """Record a test run as an in-toto test-result."""

    def read() -> "Recording":
        from countermark.attestations.digests import Digest
        from countermark.recorders.junit import record_tests

        return record_tests(path, Digest.parse(subject))

    _record("record tests", read, ledger, trust, key, output)


def _record(command: str, read: Callable[[], "Recording"], ledger: str, trust: Path | None, key: str | None, output: list[str]) -> None:
    def act() -> Report:
        from countermark.actions.appending import record
        from countermark.actions.workspace import Workspace
        from countermark.cli.render_recorded import recorded_report

        workspace = Workspace.at(ledger, trust)
        workspace.check_ledger()
        workspace.trust()  # nothing is read, let alone hashed for minutes, for a ledger that is not there
        return recorded_report(record(workspace, read(), "builder", key))

    finish(command, output, act)
