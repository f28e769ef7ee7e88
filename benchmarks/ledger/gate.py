"""The gate over a large ledger: process start to exit beside its bare imports in turn, and warm in one process."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.ledger.rows import Row, in_turn, whole
from benchmarks.ledger.world import image
from countermark.actions.gate import Asked, gate
from countermark.actions.workspace import Workspace

_IMPORTS: Final = "import typer, yaml, jsonschema, sqlite3; from cryptography.hazmat.primitives.asymmetric import ed25519"
_CAPABILITY: Final = "service.startup"


def measure(workspace: Workspace, entries: int, rounds: int) -> list[Row]:
    """One decision about an image that has nothing but a test result."""
    program = Path(sys.executable).with_name("countermark")
    ask = [str(program), "gate", str(image(7)), "--require", _CAPABILITY, "--ledger", str(workspace.ledger), "--quiet"]
    started, bare, warm = in_turn(
        rounds,
        lambda: _wall(ask),
        lambda: _wall([sys.executable, "-c", _IMPORTS]),
        lambda: whole(lambda: gate(workspace, Asked((str(image(7)),), requires=(_CAPABILITY,)))),
    )
    return [
        Row.of(f"gate at {entries:,}, start to exit", started, "bare imports", bare, goal=2.0),
        Row.of(f"gate at {entries:,}, warm", warm, "bare imports", bare),
    ]


def _wall(command: Sequence[str]) -> float:
    return whole(lambda: subprocess.run(command, check=False, stdout=subprocess.DEVNULL))
