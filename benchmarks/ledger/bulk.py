"""Import of envelopes that others signed, each fully checked."""

import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pymerkle import SqliteTree

from benchmarks.ledger.rows import Row, portions, whole
from benchmarks.ledger.world import BATCH, envelopes, insert, plain_table
from countermark.actions.admission import default_workers
from countermark.actions.importing import import_files
from countermark.actions.init import initialise
from countermark.actions.workspace import Workspace
from countermark.attestations.envelope import Envelope


def measure(folder: Path, count: int) -> list[Row]:
    """One import of `count` envelopes, one time each: the floor is their signatures on all cores and their rows, nothing else."""
    workspace = initialise(folder / "import").workspace
    made = envelopes(workspace, 0, count)
    file = folder / "import.intoto.jsonl"
    with file.open("w") as out:
        out.writelines(f"{envelope.to_json()}\n" for envelope in made)
    ours = whole(lambda: import_files(workspace, [str(file)], _unwatched))
    floor = whole(lambda: _signatures(workspace, made)) + whole(lambda: _rows(folder, made))
    peer = whole(lambda: SqliteTree(str(folder / "import-pymerkle.db")).append_entries([item.payload for item in made]))
    file.unlink()
    shutil.rmtree(folder / "import")
    work = f"import of {count:,}"
    return [
        Row.of(work, [ours], "signatures on all cores, rows", [floor], goal=1.7),
        Row.of(work, [ours], "pymerkle, no signatures", [peer]),
    ]


def _signatures(workspace: Workspace, made: Sequence[Envelope]) -> None:
    key = workspace.signer("builder", None).public
    with ThreadPoolExecutor(default_workers()) as pool:
        list(pool.map(lambda batch: [key.verify(item.pae(), item.signatures[0].sig) for item in batch], portions(made, BATCH)))


def _rows(folder: Path, made: Sequence[Envelope]) -> None:
    add = insert(plain_table(folder / "import-raw.db"))
    for batch in portions(made, BATCH):
        add([item.payload for item in batch])


def _unwatched(_done: int) -> None:
    """Nobody looks."""
