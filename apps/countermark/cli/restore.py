"""`countermark restore …`: write, inspect, restore and qualify persisted KV-cache snapshots."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countermark.cli.formats import FINDINGS
from countermark.cli.options import DEFAULT_LEDGER, FindingsOption, LedgerOption, OutputOption, SigningKeyOption, TrustOption
from countermark.cli.output import finish
from countermark.cli.report import Report

if TYPE_CHECKING:
    from countermark.actions.restore.write import ArraySource

app = typer.Typer(help="Restore KV-cache snapshots, and prove it.", no_args_is_help=True)

LayoutOption = Annotated[Path | None, typer.Option("--layout", metavar="FILE", help="The layout; default: the one of the store.")]
ChunksOption = Annotated[Path | None, typer.Option("--chunks", metavar="DIR", help="The folder of the objects; default: beside.")]


@app.command("write")
def write(
    root: Annotated[Path, typer.Argument(metavar="DIR", help="The store to publish in.")],
    oracle: Annotated[str | None, typer.Option(metavar="WORD", help="Write the bundled oracle's cache; it must answer this word.")] = None,
    ranks: Annotated[int, typer.Option(help="Ranks of the oracle.")] = 2,
    tokens: Annotated[int, typer.Option(help="Tokens of the context, a multiple of 256.")] = 2048,
    arrays: Annotated[Path | None, typer.Option(metavar="FILE.npz", help="Write one rank from arrays named GROUP/LAYER.")] = None,
    layout: Annotated[Path | None, typer.Option(metavar="FILE", help="The layout of the arrays.")] = None,
    identity: Annotated[Path | None, typer.Option(metavar="FILE", help="The identity of the cache.")] = None,
    context_digest: Annotated[str | None, typer.Option(metavar="HEX64", help="The digest of the context.")] = None,
    object_bytes: Annotated[int, typer.Option(help="Bytes of one object.")] = 64 * 1024 * 1024,
    plan: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a plan that qualifies it as well.")] = None,
    device: Annotated[str, typer.Option(help="The device in the plan.")] = "cpu",
    image: Annotated[str | None, typer.Option(metavar="DIGEST", help="The image in the plan.")] = None,
    output: OutputOption = [],
) -> None:
    """Publish a snapshot, from arrays or of the bundled oracle."""

    def act() -> Report:
        from countermark.actions.restore import write as actions
        from countermark.attestations.digests import Digest
        from countermark.cli.progress import byte_progress
        from countermark.cli.render_restore import written_report
        from countermark.cuda_restore.oracle_prompt import OracleShape

        about = Digest.parse(image) if image else None
        source = _array_source(oracle, arrays, layout, identity, tokens, context_digest)
        with byte_progress("writing") as told:
            if source:
                written = actions.write_arrays(root, source, object_bytes=object_bytes, progress=told)
            else:
                shape = OracleShape(ranks=ranks, tokens=tokens)
                written = actions.write_oracle(root, shape, str(oracle), object_bytes=object_bytes)
        if plan:
            actions.write_plan(plan, written, device=device, image=about)
        return written_report(written, plan)

    finish("restore write", output, act)


def _array_source(
    oracle: str | None, arrays: Path | None, layout: Path | None, identity: Path | None, tokens: int, context_digest: str | None
) -> "ArraySource | None":
    """The arrays to write; none for the oracle. `UsageError` unless it is exactly one of the two, with all that it needs."""
    from countermark.actions.restore.write import ArraySource
    from countermark.attestations.codes import Code
    from countermark.attestations.errors import UsageError

    if (oracle is None) == (arrays is None):
        raise UsageError(
            Code.UNKNOWN_NAME, "a snapshot is of the oracle or of arrays", fix="give either --oracle WORD or --arrays FILE.npz"
        )
    if arrays is None:
        return None
    if layout is None or identity is None or context_digest is None:
        raise UsageError(Code.UNKNOWN_NAME, "arrays do not say what they are", fix="give --layout, --identity, --tokens, --context-digest")
    return ArraySource(arrays, layout, identity, tokens, context_digest)


@app.command("inspect")
def inspect(
    manifest: Annotated[Path, typer.Argument(metavar="MANIFEST", help="A snapshot's manifest.")],
    layout: LayoutOption = None,
    output: OutputOption = [],
) -> None:
    """Show geometry, objects, arithmetic and identity of a manifest; reads no payload."""

    def act() -> Report:
        from countermark.actions.restore.inspect import arithmetic_findings, inspect_manifest
        from countermark.cli.render_restore import inspection_report

        found = inspect_manifest(manifest, layout)
        return inspection_report(found, arithmetic_findings(found, manifest))

    finish("restore inspect", output, act)


@app.command("run")
def run(
    manifests: Annotated[list[Path], typer.Argument(metavar="MANIFEST...", help="One manifest a rank.")],
    device: Annotated[list[str], typer.Option(help="cpu or cuda[:N], for all ranks or one each; repeatable.")] = ["cpu"],
    chunks: ChunksOption = None,
    layout: LayoutOption = None,
    readers: Annotated[int, typer.Option(help="Objects read at once.")] = 4,
    retained_bytes: Annotated[int, typer.Option(help="Bytes of objects held at once.")] = 256 * 1024 * 1024,
    batch: Annotated[bool, typer.Option("--batch-authenticate", help="Place nothing of a batch before all of it authenticates.")] = False,
    trace: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the trace, one event a line.")] = None,
    output: FindingsOption = [],
) -> None:
    """Authenticate and place a snapshot, and say where the time went; writes nothing to a ledger."""

    def act() -> Report:
        from countermark.actions.new_files import refuse_existing, write_new
        from countermark.actions.restore.run import Asked, run_restore
        from countermark.cli.progress import byte_progress
        from countermark.cli.render_restore import run_report
        from countermark.cuda_restore.request import Authenticate
        from countermark.cuda_restore.slabs import Bounds

        asked = Asked(
            manifests=tuple(manifests),
            devices=tuple(device),
            chunks=chunks,
            layout=layout,
            bounds=Bounds(readers, retained_bytes),
            authenticate=Authenticate.BATCH if batch else Authenticate.OBJECT,
        )
        if trace:
            refuse_existing(trace)
        with byte_progress("restoring") as told:
            ran = run_restore(asked, told)
        if trace:
            write_new(trace, ran.trace)
        return run_report(ran)

    finish("restore run", output, act, forms=FINDINGS)


@app.command("qualify")
def qualify(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="A RestorePlan.")],
    link: Annotated[Path | None, typer.Option(metavar="DIR", help="Write an in-toto link and its products there as well.")] = None,
    engine_commit: Annotated[str | None, typer.Option(metavar="COMMIT", help="The commit of this program, without a checkout.")] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    trust: TrustOption = None,
    key: SigningKeyOption = None,
    output: FindingsOption = [],
) -> None:
    """Restore under attestation: all rungs of the plan, the faults that must be caught, signed and appended."""

    def act() -> Report:
        from countermark.actions.restore.qualify import qualify as climb
        from countermark.actions.workspace import Workspace
        from countermark.cli.progress import byte_progress
        from countermark.cli.render_restore import qualified_report

        with byte_progress("qualifying") as told:
            done = climb(Workspace.at(ledger, trust), plan, key, engine_commit=engine_commit, link=link, progress=told)
        return qualified_report(done, link)

    finish("restore qualify", output, act, forms=FINDINGS)
