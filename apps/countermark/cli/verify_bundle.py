"""`countermark verify bundle`; its options have the names that cosign gives them."""

from pathlib import Path
from typing import Annotated

import typer

from countermark.cli.decision_bundle import checked_report
from countermark.cli.options import DEFAULT_LEDGER, LedgerOption, OutputOption, TrustOption
from countermark.cli.output import finish
from countermark.cli.report import Report
from countermark.cli.verify import PublicKeyOption, SubjectOption, TypeOption

TrustedRootOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A trusted_root.json; default: the public sigstore instance's.", show_default=False)
]


def bundle(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Sigstore bundles, PEP 740 attestations, .jsonl; - for stdin.")],
    trusted_root: TrustedRootOption = None,
    certificate_identity: Annotated[str | None, typer.Option(metavar="SAN", help="Who must have signed, exactly.")] = None,
    certificate_oidc_issuer: Annotated[str | None, typer.Option(metavar="URL", help="Who vouched for the signer, exactly.")] = None,
    artifact: Annotated[
        str | None, typer.Option(metavar="FILE|sha256:HEX", help="The file that is signed, or that the statement is about.")
    ] = None,
    key: PublicKeyOption = [],
    trust: TrustOption = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    subject: SubjectOption = None,
    predicate_type: TypeOption = None,
    output: OutputOption = [],
) -> None:
    """Check sigstore bundles offline: certificate, log entry, timestamps, signer, statement.

    Or a decision bundle of `explain DECISION -o bundle=FILE`: its ledger is audited, and its decision is made again.
    """
    others = {
        "--trusted-root": trusted_root,
        "--certificate-identity": certificate_identity,
        "--certificate-oidc-issuer": certificate_oidc_issuer,
        "--artifact": artifact,
        "--key": key,
        "--subject": subject,
        "--type": predicate_type,
    }

    def act() -> Report:
        from countermark.actions.decision_bundle import is_decision_bundle

        if any(is_decision_bundle(Path(name)) for name in files):
            return checked_report(files, trust, [name for name, given in others.items() if given])
        from countermark.actions.clock import now
        from countermark.actions.verify_attestation import Expectation
        from countermark.actions.verify_bundle import Believed, check_bundles
        from countermark.attestations.signed_file import Artifact
        from countermark.cli.render_bundle import bundle_report

        believed = Believed(certificate_identity, certificate_oidc_issuer, tuple(key), trust, ledger, trusted_root)
        expected = Expectation.parse(subject, predicate_type)
        verifier = believed.verifier()
        file = Artifact.of(artifact) if artifact else None
        return bundle_report(check_bundles(files, verifier, now(), expected, file), verifier.root)

    finish("verify bundle", output, act)
