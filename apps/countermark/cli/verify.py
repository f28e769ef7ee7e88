"""`countermark verify …`: the commands of a CI job. None of them reaches a network."""

from pathlib import Path
from typing import Annotated

import typer

from countermark.cli.options import DEFAULT_LEDGER, LedgerOption, OutputOption, TrustOption
from countermark.cli.output import finish
from countermark.cli.report import Report

app = typer.Typer(help="Check attestations, ledgers, contracts and artifacts; no network.", no_args_is_help=True)

PublicKeyOption = Annotated[list[str], typer.Option("--key", metavar="FILE", help="A signer's public key; repeatable.", show_default=False)]
SubjectOption = Annotated[str | None, typer.Option("--subject", metavar="DIGEST", help="The artifact that it must be about.")]
TypeOption = Annotated[str | None, typer.Option("--type", metavar="URI", help="The predicate type that it must have.")]


@app.command("attestation")
def attestation(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Envelopes, bundles or .jsonl files; - for standard input.")],
    key: PublicKeyOption = [],
    trust: TrustOption = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    subject: SubjectOption = None,
    predicate_type: TypeOption = None,
    output: OutputOption = [],
) -> None:
    """Check that attestations are signed by somebody trusted."""

    def act() -> Report:
        from countermark.actions.clock import now
        from countermark.actions.verify_attestation import Expectation, check_files
        from countermark.actions.workspace import trust_in
        from countermark.cli.render_attestation import attestation_report

        known, expected = trust_in(key, ledger, trust), Expectation.parse(subject, predicate_type)
        return attestation_report(check_files(files, known, now(), expected))

    finish("verify attestation", output, act)


@app.command("trust")
def trust_file(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A trust.yaml.")] = Path("trust.yaml"),
    output: OutputOption = [],
) -> None:
    """Check a trust policy and the keys it names."""

    def act() -> Report:
        from countermark.attestations.trust import TrustPolicy
        from countermark.cli.render_trust import trust_report

        return trust_report(TrustPolicy.load(path))

    finish("verify trust", output, act)


@app.command("source")
def source(
    repository: Annotated[Path, typer.Argument(metavar="[REPO]", help="A git repository.")] = Path(),
    rev: Annotated[str, typer.Option(help="The revision.")] = "HEAD",
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: OutputOption = [],
) -> None:
    """Compare what is recorded of a commit with the repository's objects."""

    def act() -> Report:
        from countermark.actions.verify_recorded import verify_source
        from countermark.actions.workspace import Workspace
        from countermark.cli.render_comparison import comparison_report

        return comparison_report(verify_source(Workspace.at(ledger, trust), repository, rev))

    finish("verify source", output, act)


@app.command("image")
def image(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="OCI layout or archive, docker archive, or inspect JSON.")],
    digest: Annotated[str | None, typer.Option(metavar="DIGEST", help="Which image, where there are several.")] = None,
    platform: Annotated[str | None, typer.Option(metavar="OS/ARCH", help="Which platform of an index.")] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: OutputOption = [],
) -> None:
    """Compare what is recorded of an image with its bytes."""

    def act() -> Report:
        from countermark.actions.verify_recorded import verify_image
        from countermark.actions.workspace import Workspace
        from countermark.cli.progress import byte_progress
        from countermark.cli.render_comparison import comparison_report

        with byte_progress("hashing") as told:
            return comparison_report(verify_image(Workspace.at(ledger, trust), path, digest, platform, told))

    finish("verify image", output, act)


@app.command("model")
def model(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The model's folder.")],
    revision: Annotated[str | None, typer.Option(metavar="HEX", help="The model's revision, where the path does not say.")] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: OutputOption = [],
) -> None:
    """Compare what is recorded of a model with the files of a folder."""

    def act() -> Report:
        from countermark.actions.verify_recorded import verify_model
        from countermark.actions.workspace import Workspace
        from countermark.cli.progress import byte_progress
        from countermark.cli.render_comparison import comparison_report

        with byte_progress("hashing") as told:
            return comparison_report(verify_model(Workspace.at(ledger, trust), folder, revision, told))

    finish("verify model", output, act)
