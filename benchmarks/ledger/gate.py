"""The gate over a large ledger: process start to exit beside its bare imports in turn, and warm in one process."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.ledger.rows import Row, in_turn, whole
from benchmarks.ledger.world import BATCH, fill, image, reject_others
from countermark.actions.gate import Asked, gate
from countermark.actions.init import initialise
from countermark.actions.workspace import Workspace

_IMPORTS: Final = "import typer, yaml, jsonschema, sqlite3; from cryptography.hazmat.primitives.asymmetric import ed25519"
_CAPABILITY: Final = "service.startup"
_NOTICES: Final = 1000


def measure(folder: Path, workspace: Workspace, entries: int, rounds: int) -> list[Row]:
    """One decision about an image that has nothing but a test result; and one where many notices are about other images."""
    program = Path(sys.executable).with_name("countermark")
    ask = [str(program), "gate", str(image(7)), "--require", _CAPABILITY, "--ledger", str(workspace.ledger), "--quiet"]
    noticed = initialise(folder / "noticed").workspace
    fill(noticed, BATCH)
    reject_others(noticed, _NOTICES)
    started, bare, warm, walked = in_turn(
        rounds,
        lambda: _wall(ask),
        lambda: _wall([sys.executable, "-c", _IMPORTS]),
        lambda: _warm(workspace),
        lambda: _warm(noticed),
    )
    return [
        Row.of(f"gate at {entries:,}, start to exit", started, "bare imports", bare, goal=2.0),
        Row.of(f"gate at {entries:,}, warm", warm, "bare imports", bare),
        Row.of(f"gate with {_NOTICES:,} notices, warm", walked, "bare imports", bare),
    ]


def _warm(workspace: Workspace) -> float:
    return whole(lambda: gate(workspace, Asked((str(image(7)),), requires=(_CAPABILITY,))))


def _wall(command: Sequence[str]) -> float:
    return whole(lambda: subprocess.run(command, check=False, stdout=subprocess.DEVNULL))
