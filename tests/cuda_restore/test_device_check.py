"""`make device-check`: without a device it says so; over the tests' driver every part runs, and is told apart from a GPU."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cuda_libraries import build_library

from countermark.attestations.errors import CannotTellError
from countermark.cuda_restore.cuda_calls import CudaCalls
from countermark.cuda_restore.cuda_probe import probe_cuda
from countermark.cuda_restore.device import DriverState

ROOT = Path(__file__).parents[2]
SMALL = ["--bytes", "4000000", "--slab-bytes", "1048576", "--repeats", "1", "--json"]


def check(*options: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "benchmarks.device_check", *options]
    return subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False, timeout=200)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the fake driver."""
    try:
        CudaCalls("nvrtc").call("nvrtcVersion")
    except CannotTellError as absent:
        pytest.skip(f"the device check was not run: {absent.message}")
    return build_library("libcuda.so.1", tmp_path_factory.mktemp("check-driver")).parent


@pytest.mark.skipif(probe_cuda().driver is not DriverState.ABSENT, reason="a CUDA driver is installed here")
def test_without_a_driver_nothing_is_measured() -> None:
    run = check()
    assert (run.returncode, run.stdout) == (4, "")
    assert "no CUDA driver is installed here" in run.stderr
    assert run.stderr.endswith("Nothing was measured.\n")


def test_every_part_runs_and_none_of_it_is_taken_for_a_gpu(driver: Path, tmp_path: Path) -> None:
    run = check(*SMALL, LD_LIBRARY_PATH=str(driver), XDG_CACHE_HOME=str(tmp_path))
    assert run.returncode == 0, run.stderr
    report: dict[str, Any] = json.loads(run.stdout)
    assert (report["device"]["kind"], report["left_out"]) == ("simulated", [])
    assert [(one["pages_as_stored"], one["bytes_unlike_cpu"]) for one in report["correctness"]] == [(True, 0), (True, 0)]
    assert report["ladder"]["missed"] == []
    assert report["ladder"]["controls"] > 20
    assert [copy["skipped"] for copy in report["copies"]] == [None] * 4
    assert all(one["limit_ratio"] > 0 and one["unattributed_share"] <= 0.05 for one in report["restores"])
    assert len(report["restores"]) == 2
    assert len({(one["block_threads"], one["tile_bytes"], one["long_spans"]) for one in report["kernels"]}) == 32


def test_a_check_that_had_no_time_for_anything_is_not_a_good_one(driver: Path, tmp_path: Path) -> None:
    run = check(*SMALL, "--seconds", "-1", LD_LIBRARY_PATH=str(driver), XDG_CACHE_HOME=str(tmp_path))
    assert run.returncode == 1
    assert len(json.loads(run.stdout)["left_out"]) == 7
