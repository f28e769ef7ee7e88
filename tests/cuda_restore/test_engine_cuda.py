"""The engine through the real bindings, over a driver library that the tests build; each scene in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import engine_scenes
import pytest
from cuda_libraries import build_library

from countermark.attestations.errors import CannotTellError
from countermark.cuda_restore.cuda_calls import CudaCalls

RELEASES = {"cuEventDestroy", "cuStreamDestroy", "cuMemFree", "cuMemFreeHost", "cuModuleUnload", "cuDevicePrimaryCtxRelease"}

Report = dict[str, Any]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the fake driver."""
    try:
        CudaCalls("nvrtc").call("nvrtcVersion")
    except CannotTellError as absent:
        pytest.skip(f"the CUDA device was not run: {absent.message}")
    return build_library("libcuda.so.1", tmp_path_factory.mktemp("engine-driver")).parent


def play(scene: str, driver: Path, order: str = "lazy") -> Report:
    script = Path(engine_scenes.__file__)
    environment = os.environ | {"LD_LIBRARY_PATH": str(driver), "PYTHONPATH": str(script.parent), "FAKE_CUDA_ORDER": order}
    run = subprocess.run(
        [sys.executable, str(script), scene, str(driver)], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert run.returncode == 0, run.stderr
    report: Report = json.loads(run.stdout)
    return report


@pytest.mark.parametrize("order", ["lazy", "eager"])
def test_a_restore_through_the_bindings_is_exact_and_leaves_nothing(driver: Path, order: str) -> None:
    report = play("restore", driver, order)
    assert report == {
        "outcome": "verified",
        "raised": ["", ""],
        "findings": [],
        "wrong_bytes": 0,
        "digests_agree": True,
        "live": 0,
    }


def test_each_driver_call_that_fails_is_recompute_with_its_own_error_and_nothing_stays_allocated(driver: Path) -> None:
    calls = play("failures", driver)["calls"]
    assert len(calls) > 100
    for call in calls:
        assert call["raised"] == ["DriverError", call["call"]], call
        assert call["findings"] == [], call
        assert call["outcome"] in ("recompute", "none"), call  # none: the device was being opened, looked at or closed
        assert call["live"] == (1 if call["call"] in RELEASES else 0), call
    inside = [call["call"] for call in calls if call["outcome"] == "recompute"]
    assert len(inside) > 60
    assert {"cuMemHostAlloc", "cuStreamWaitEvent", "cuMemcpyHtoDAsync", "cuLaunchKernel", "cuEventSynchronize", "cuMemFree"} < set(inside)
