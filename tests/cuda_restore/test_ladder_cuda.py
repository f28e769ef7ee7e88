"""The ladder through the real bindings, over a driver library that the tests build: every fault is seen there too, and it says what ran."""

import json
import os
import subprocess
import sys
from pathlib import Path

import ladder_scene
import pytest
from cuda_libraries import build_library

from countermark.attestations.errors import CannotTellError
from countermark.cuda_restore.cuda_calls import CudaCalls
from countermark.cuda_restore.faults import FAULTS


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the fake driver."""
    try:
        CudaCalls("nvrtc").call("nvrtcVersion")
    except CannotTellError as absent:
        pytest.skip(f"the ladder was not climbed on the CUDA device: {absent.message}")
    return build_library("libcuda.so.1", tmp_path_factory.mktemp("ladder-driver")).parent


@pytest.mark.parametrize("order", ["lazy", "eager"])
def test_every_fault_is_seen_through_the_bindings(driver: Path, tmp_path: Path, order: str) -> None:
    script = Path(ladder_scene.__file__)
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(driver),
        "PYTHONPATH": os.pathsep.join([str(script.parent), os.environ.get("PYTHONPATH", "")]),
        "FAKE_CUDA_ORDER": order,
    }
    played = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert played.returncode == 0, played.stderr
    report = json.loads(played.stdout)
    run = report["run"]
    assert report["problems"] == []
    assert {name: rung["outcome"] for name, rung in run["rungs"].items()} == {
        "1-signed-root": "pass",
        "2-coverage": "pass",
        "3-readback": "pass",
        "4-oracle": "pass",
        "5-live": "not-run",
    }
    assert len(run["rungs"]["3-readback"]["controls"]) + len(run["rungs"]["4-oracle"]["controls"]) == sum(len(f.rungs) for f in FAULTS)
    assert run["device"]["kind"] == "simulated"
    assert len(run["engine"]["cubin_sha256"]) == 64
    (receipt,) = report["receipts"]
    assert receipt["capability"] == "restore.structural"
    assert "simulated driver" in receipt["limitations"][0]
