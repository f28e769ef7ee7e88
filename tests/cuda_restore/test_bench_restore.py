"""`make bench-restore` on a few megabytes: everybody has a row, one that is not installed says so in it, and ours adds up."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SMALL = ["--bytes", "4000000", "--rounds", "1", "--patience", "1", "--cold-rounds", "0"]
MODULES = {
    "safetensors.numpy": "safetensors",
    "runai-model-streamer": "runai_model_streamer",
    "fastsafetensors nogds": "fastsafetensors",
}


def measure(*options: str) -> str:
    command = [sys.executable, "-m", "benchmarks.restore", *SMALL, *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("objects", ["chunk", pytest.param("macro", marks=pytest.mark.slow)])
def test_every_contender_has_a_row_and_ours_adds_up(objects: str, tmp_path: Path) -> None:
    (found,) = json.loads(measure("--json", "--sets", objects, "--folder", str(tmp_path)))["sets"]
    rows: dict[str, Any] = {row["name"]: row for row in found["rows"]}
    assert list(rows) == ["countermark", "np.fromfile + hashlib", "the same, 4 threads", "readinto kept memory", "np.fromfile", *MODULES]
    for name, row in rows.items():
        installed = name not in MODULES or find_spec(MODULES[name]) is not None
        assert (row["skipped"] is None, row["ms"] > 0) == (installed, installed), row
    timing = found["decomposition"]["timing_us"]
    assert timing["unattributed"] <= timing["total"] // 20
    assert found["decomposition"]["readers_max"] <= 4
    assert found["limit_ratio"] > 0
    assert len(found["goals"]) == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_peer_that_is_not_installed_is_a_row_of_the_table() -> None:
    lines = measure("--sets", "macro").splitlines()
    for name, module in MODULES.items():
        (row,) = [line for line in lines if line.strip().startswith(name)]
        assert ("skipped: not installed" in row) == (find_spec(module) is None)
    assert sum("met" in line.lower() for line in lines if line.startswith("  ")) >= 3
