"""The static export of a ledger, beside the writing of the same bytes into files of the same number."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.ledger.rows import Row, whole
from countermark.actions.exporting import export_ledger
from countermark.actions.workspace import Workspace


def measure(folder: Path, workspace: Workspace, entries: int) -> list[Row]:
    """One export with its payloads, and one after it that has nothing new to write."""
    target = folder / "export"
    first = whole(lambda: export_ledger(workspace, target, _unwatched, payloads=True))
    again = whole(lambda: export_ledger(workspace, target, _unwatched, payloads=True))
    contents = [path.read_bytes() for path in sorted(target.rglob("*")) if path.is_file()]
    floor = whole(lambda: _write(folder / "copies", contents))
    beside = f"writing its {len(contents):,} files"
    return [
        Row.of(f"export of {entries:,}", [first], beside, [floor], goal=2.5),
        Row.of(f"export of {entries:,}, nothing new", [again], beside, [floor]),
    ]


def _write(folder: Path, contents: Sequence[bytes]) -> None:
    folder.mkdir()
    for number, data in enumerate(contents):
        (folder / str(number)).write_bytes(data)


def _unwatched(_done: int, _total: int) -> None:
    """Nobody looks."""
