"""`countermark verify vsa`; its options have the names that slsa-verifier gives them."""

from typing import Annotated

import typer

from countermark.cli.options import DEFAULT_LEDGER, LedgerOption, OutputOption, TrustOption
from countermark.cli.output import finish
from countermark.cli.report import Report


def vsa(
    attestation_path: Annotated[str, typer.Option("--attestation-path", metavar="FILE", help="The summary's envelope.")],
    subject_digest: Annotated[str, typer.Option("--subject-digest", metavar="sha256:HEX", help="The artifact.")],
    verifier_id: Annotated[str, typer.Option("--verifier-id", metavar="ID", help="Who must have verified: the ledger's origin.")],
    resource_uri: Annotated[str, typer.Option("--resource-uri", metavar="URI", help="What was verified: DIGEST#CHANNEL.")],
    verified_level: Annotated[
        list[str], typer.Option("--verified-level", metavar="LEVEL", help="A level that it must state; repeatable.", show_default=False)
    ] = [],
    public_key_path: Annotated[str | None, typer.Option("--public-key-path", metavar="FILE", help="The verifier's public key.")] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    output: OutputOption = [],
) -> None:
    """Check a verification summary: its signature, its subject, its verifier, and that it says PASSED."""

    def act() -> Report:
        from countermark.actions.clock import now
        from countermark.actions.verify_vsa import ExpectedSummary, check_summary
        from countermark.actions.workspace import trust_in
        from countermark.attestations.digests import Digest, DigestKind

        known = trust_in([public_key_path] if public_key_path else [], ledger, trust)
        digest = Digest(DigestKind.FILE, subject_digest.rpartition(":")[2])
        done = check_summary(attestation_path, ExpectedSummary(digest.hex, verifier_id, resource_uri, tuple(verified_level)), known, now())
        return Report(evaluated=1, of=1, text=f"PASSED  {resource_uri}  {done.digest}", extra={"statement": done.statement.predicate})

    finish("verify vsa", output, act)
