"""`countermark verify export DIR` and `verify proof FILE`: what an outsider checks, without a ledger."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countermark.cli.options import HeldOption, LogKeyOption, MaxAgeOption, OutputOption, StrictOption, TrustOption, WitnessPolicyOption
from countermark.cli.output import finish
from countermark.cli.report import Report
from countermark.cli.verify import PublicKeyOption

if TYPE_CHECKING:
    from countermark.actions.proofs import ProofResult


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder that `ledger export` wrote.")],
    log_key: LogKeyOption = None,
    policy: WitnessPolicyOption = None,
    checkpoint: HeldOption = [],
    key: PublicKeyOption = [],
    trust: TrustOption = None,
    hash_only: Annotated[bool, typer.Option("--hash-only", help="Check leaves, tiles and root alone.")] = False,
    max_age: MaxAgeOption = None,
    strict: StrictOption = False,
    output: OutputOption = [],
) -> None:
    """Check a static export against the log's key: checkpoint, tiles, leaves, payloads and signatures."""

    def act() -> Report:
        from countermark.actions.believed_logs import believed, no_older_than
        from countermark.actions.exporting import check_export, signers_of
        from countermark.cli.progress import count_progress
        from countermark.cli.verify_ledger import audit_report

        policies, signers, fresh = believed(log_key, policy, trust), signers_of(key, trust), no_older_than(max_age)
        with count_progress("checking") as told:
            return audit_report(check_export(folder, policies, signers, checkpoint, told, hash_only=hash_only, fresh=fresh, strict=strict))

    finish("verify export", output, act)


def proof(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .tlog-proof, or a proof of growth; `ledger prove` writes both.")],
    log_key: LogKeyOption = None,
    policy: WitnessPolicyOption = None,
    trust: TrustOption = None,
    payload: Annotated[Path | None, typer.Option(metavar="FILE", help="The payload, or its envelope, that it must be about.")] = None,
    leaf: Annotated[Path | None, typer.Option(metavar="FILE", help="The entry's bytes, where the proof does not hold them.")] = None,
    checkpoint: Annotated[Path | None, typer.Option(metavar="NOTE", help="The older checkpoint that a proof of growth begins at.")] = None,
    max_age: MaxAgeOption = None,
    output: OutputOption = [],
) -> None:
    """Check, without a ledger, that an entry is in a log, or that a log only grew since a checkpoint."""

    def act() -> Report:
        from countermark.actions.believed_logs import believed, no_older_than
        from countermark.actions.proofs import check_proof

        policies, fresh = believed(log_key, policy, trust), no_older_than(max_age)
        return proof_report(check_proof(file, policies, leaf=leaf, payload=payload, held=checkpoint, fresh=fresh))

    finish("verify proof", output, act)


def proof_report(result: "ProofResult") -> Report:
    """What the proof is about, and who vouches for the checkpoint that it leads to."""
    head, leaf = result.witnessed.checkpoint, result.leaf
    about = f"the log of {result.old} entries is the beginning of" if result.index is None else f"entry {result.index} is in"
    payload = f"payload:sha256:{leaf.payload_sha256.hex()}" if leaf else None
    named = f"\nit names {payload}, {leaf.payload_len} bytes of {leaf.payload_type}" if leaf else ""
    held = f"\nheld by {', '.join(result.witnessed.names)}" if result.witnessed.names else ""
    return Report(
        evaluated=1,
        of=1,
        ledger={"origin": head.origin, "size": head.size, "root": head.root.hex()},
        text=f"{about} {head.origin} at {head.size}{named}{held}",
        extra={"proof": {"index": result.index, "old": result.old, "payload": payload, "witnesses": list(result.witnessed.names)}},
    )
