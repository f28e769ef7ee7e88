"""Import of envelopes that others signed, each fully checked."""

import shutil
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from pymerkle import SqliteTree

from benchmarks.ledger.rows import Row, portions, whole
from benchmarks.ledger.world import BATCH, envelopes
from countermark.actions.cores import cores
from countermark.actions.importing import import_files
from countermark.actions.init import initialise
from countermark.actions.workspace import Workspace
from countermark.attestations.envelope import Envelope


def measure(folder: Path, count: int) -> list[Row]:
    """One import of `count` envelopes, one time each: the floor is their signatures on all cores and the same rows in the same tables."""
    workspace = initialise(folder / "import").workspace
    made = envelopes(workspace, 0, count)
    file = folder / "import.intoto.jsonl"
    with file.open("w") as out:
        out.writelines(f"{envelope.to_json()}\n" for envelope in made)
    ours = whole(lambda: import_files(workspace, [str(file)], _unwatched))
    floor = whole(lambda: _signatures(workspace, made)) + whole(lambda: _rows(workspace.ledger, folder / "import-rows.db"))
    peer = whole(lambda: SqliteTree(str(folder / "import-pymerkle.db")).append_entries([item.payload for item in made]))
    file.unlink()
    shutil.rmtree(folder / "import")
    work = f"import of {count:,}"
    return [
        Row.of(work, [ours], "signatures on all cores, same rows", [floor], goal=1.7),
        Row.of(work, [ours], "pymerkle, no signatures", [peer]),
    ]


def _signatures(workspace: Workspace, made: Sequence[Envelope]) -> None:
    key = workspace.signer("builder", None).public
    with ThreadPoolExecutor(cores()) as pool:
        list(pool.map(lambda batch: [key.verify(item.pae(), item.signatures[0].sig) for item in batch], portions(made, BATCH)))


def _rows(ledger: Path, copy: Path) -> None:
    """Everything that the import wrote, written again without looking at it, in as many transactions."""
    with closing(sqlite3.connect(ledger)) as source, closing(sqlite3.connect(copy, isolation_level=None)) as target:
        for pragma in ("page_size = 8192", "journal_mode = WAL", "synchronous = FULL"):
            target.execute(f"PRAGMA {pragma}")
        made = source.execute(
            "SELECT name, type, sql FROM sqlite_master WHERE sql IS NOT NULL AND type IN ('table', 'index') ORDER BY type DESC"
        )
        tables = []
        for name, kind, sql in made.fetchall():
            target.execute(sql)
            tables += [name] * (kind == "table")
        for name in tables:
            rows = source.execute(f"SELECT * FROM {name}")  # noqa: S608  # a table of the ledger just made
            while batch := rows.fetchmany(BATCH):
                target.execute("BEGIN IMMEDIATE")
                target.executemany(f"INSERT INTO {name} VALUES ({','.join('?' * len(batch[0]))})", batch)  # noqa: S608  # as above
                target.execute("COMMIT")


def _unwatched(_done: int) -> None:
    """Nobody looks."""
