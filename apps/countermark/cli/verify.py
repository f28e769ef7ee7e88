"""`countermark verify …`: the commands of a CI job. None of them reaches a network."""

from pathlib import Path
from typing import Annotated

import typer

from countermark.cli.options import DEFAULT_LEDGER, LedgerOption, OutputOption, TrustOption
from countermark.cli.output import finish
from countermark.cli.report import Report

app = typer.Typer(help="Check attestations, ledgers, contracts and artifacts; no network.", no_args_is_help=True)

PublicKeyOption = Annotated[list[str], typer.Option("--key", metavar="FILE", help="A signer's public key; repeatable.", show_default=False)]


@app.command("attestation")
def attestation(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Envelopes, bundles or .jsonl files; - for standard input.")],
    key: PublicKeyOption = [],
    trust: TrustOption = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    subject: Annotated[str | None, typer.Option(metavar="DIGEST", help="The artifact that it must be about.")] = None,
    predicate_type: Annotated[str | None, typer.Option("--type", metavar="URI", help="The predicate type that it must have.")] = None,
    output: OutputOption = [],
) -> None:
    """Check that attestations are signed by somebody trusted."""

    def act() -> Report:
        from countermark.actions.clock import now
        from countermark.actions.verify_attestation import Expectation, check_files
        from countermark.actions.workspace import Workspace, public_key
        from countermark.attestations.digests import Digest
        from countermark.attestations.verifier import KeyTrust, PolicyTrust
        from countermark.cli.render_attestation import attestation_report

        known = KeyTrust(tuple(public_key(name) for name in key)) if key else PolicyTrust(Workspace.at(ledger, trust).trust())
        expected = Expectation(Digest.parse(subject) if subject else None, predicate_type)
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
