"""The CUDA device over a driver library that the tests build: right bytes, visible races, every failing call named, nothing leaked.

Each scene runs in a process of its own, because a process loads one driver. A real GPU, where there is one, runs the last test.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_libraries import SOURCES, build_library

from countermark.attestations.codes import Code
from countermark.attestations.errors import CannotTellError, UsageError
from countermark.cuda_restore import cuda_probe, kernel
from countermark.cuda_restore.cpu_device import CpuDevice, Deferral
from countermark.cuda_restore.cuda_calls import CudaCalls
from countermark.cuda_restore.cuda_device import CudaDevice
from countermark.cuda_restore.device import STATUS_BYTES, Bytes, Device, DriverState, ScatterStatus
from countermark.cuda_restore.page_digest import DigestKey, Digests, page_table
from countermark.cuda_restore.selection import open_device
from countermark.cuda_restore.spans import SpanTable

RELEASES = {"cuEventDestroy", "cuStreamDestroy", "cuMemFree", "cuMemFreeHost", "cuModuleUnload", "cuDevicePrimaryCtxRelease"}

Report = dict[str, Any]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the fake driver."""
    return build_library("libcuda.so.1", tmp_path_factory.mktemp("driver")).parent


@pytest.fixture(scope="module")
def bindings() -> None:
    """Skip what needs the extra."""
    try:
        CudaCalls("nvrtc").call("nvrtcVersion")
    except CannotTellError as absent:
        pytest.skip(f"the CUDA device was not run: {absent.message}")


def play(scene: str, driver: Path, **settings: str) -> Report:
    """Run one scene with the fake driver and return what it reports."""
    environment = os.environ | {"LD_LIBRARY_PATH": str(driver)} | settings
    command = [sys.executable, str(SOURCES / "scenario.py"), scene, str(driver / "cubins")]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stderr
    report: Report = json.loads(run.stdout)
    return report


@pytest.mark.usefixtures("bindings")
@pytest.mark.parametrize("order", ["lazy", "eager"])
@pytest.mark.parametrize("scene", ["restore", "small-tiles"])
def test_every_page_lands_and_reads_back(driver: Path, scene: str, order: str) -> None:
    report = play(scene, driver, FAKE_CUDA_ORDER=order)
    assert (report["wrong_pages"], report["wrong_digests"], report["live"]) == (0, 0, 0)
    assert report["status"] == [32 * 256, 0, 0]


@pytest.mark.usefixtures("bindings")
def test_the_receipt_names_the_device_and_its_code_and_never_takes_a_test_for_a_gpu(driver: Path) -> None:
    report = play("restore", driver)
    assert report["device"] == ["simulated", "simulated GPU on the host", "present", 13000, 90]
    source, cubin = report["digests"]
    loaded = kernel.load_cubin(90, driver / "cubins")
    assert (source, cubin) == (loaded.source_sha256, loaded.sha256)


@pytest.mark.usefixtures("bindings")
def test_a_forgotten_slot_wait_shows_on_lazy_streams_only_and_never_in_the_counters(driver: Path) -> None:
    lazy, eager = (play("forgetful", driver, FAKE_CUDA_ORDER=order) for order in ("lazy", "eager"))
    assert eager["wrong_pages"] == 0
    assert lazy["wrong_pages"] > 0
    assert lazy["wrong_digests"] == lazy["wrong_pages"]
    assert lazy["status"] == eager["status"] == [32 * 256, 0, 0]


@pytest.mark.usefixtures("bindings")
def test_the_kernel_rejects_what_the_host_cannot_see(driver: Path) -> None:
    report = play("rejected", driver)
    placed_bytes, rejected_rows, error = report["status"]
    assert (placed_bytes, rejected_rows) == (0, 2)
    assert error >> 32 == 3, "misaligned"
    assert report["untouched"]


@pytest.mark.usefixtures("bindings")
def test_each_driver_call_that_fails_is_named_and_nothing_stays_allocated(driver: Path) -> None:
    calls = play("failures", driver)["calls"]
    assert len(calls) > 100
    for call in calls:
        assert call["raised"] == ["DriverError", call["call"], "DRIVER_ERROR"]
        assert call["live"] == (1 if call["call"] in RELEASES else 0), call
    assert {call["call"] for call in calls} > RELEASES


@pytest.mark.parametrize(
    ("settings", "probe", "code"),
    [
        ({}, ["present", 13000, 1], "DEVICE_ABSENT"),
        ({"FAKE_CUDA_DEVICES": "0"}, ["present", 13000, 0], "DEVICE_ABSENT"),
        ({"FAKE_CUDA_INIT": "100"}, ["present", 13000, 0], "DEVICE_ABSENT"),
        ({"FAKE_CUDA_INIT": "34"}, ["absent", None, 0], "DEVICE_ABSENT"),
        ({"FAKE_CUDA_INIT": "999"}, ["error", None, 0], "DRIVER_ERROR"),
        ({"FAKE_CUDA_FAIL": "2"}, ["error", None, 0], "DRIVER_ERROR"),
        ({"FAKE_CUDA_FAIL": "3"}, ["error", None, 0], "DRIVER_ERROR"),
    ],
)
def test_no_driver_no_device_and_a_failing_driver_are_three_states(
    driver: Path, settings: dict[str, str], probe: list[object], code: str
) -> None:
    report = play("absence", driver, **settings)
    assert report["probe"] == probe
    assert report["raised"][:2] == [code, 4]


def test_a_library_that_is_no_driver_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_probe, "DRIVER_LIBRARY", "libc.so.6")
    probe = cuda_probe.probe_cuda()
    assert probe.driver is DriverState.ERROR
    assert "cuInit" in str(probe.failure)


def test_without_a_driver_cuda_is_absent_and_never_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_probe, "DRIVER_LIBRARY", "libcuda-that-nobody-installed.so.1")
    for name in ("cuda", "cuda:0", "cuda:3"):
        with pytest.raises(CannotTellError, match="no CUDA driver") as caught:
            open_device(name)
        assert (caught.value.code, int(caught.value.exit)) == (Code.DEVICE_ABSENT, 4)
    with open_device("cpu") as device:
        assert device.info.driver is DriverState.ABSENT


@pytest.mark.parametrize(
    ("name", "opened"),
    [
        ("cpu", "deferred-lazy"),
        ("cpu:lazy", "deferred-lazy"),
        ("cpu:eager", "deferred-eager"),
        ("cpu:random", "deferred-random-0"),
        ("cpu:random:7", "deferred-random-7"),
    ],
)
def test_a_cpu_device_is_opened_by_name(name: str, opened: str) -> None:
    with open_device(name) as device:
        assert device.info.name == opened


@pytest.mark.parametrize("name", ["", "gpu", "cpu:", "cpu:late", "cpu:lazy:1", "cuda:", "cuda:-1", "cuda:0 ", "CPU"])
def test_another_name_is_a_usage_error(name: str) -> None:
    with pytest.raises(UsageError, match="is no device"):
        open_device(name)


def test_importing_the_devices_loads_no_cuda_package() -> None:
    program = "import sys, countermark.cuda_restore.selection; print(*(m for m in sys.modules if m.split('.')[0] in ('cuda', 'nvidia')))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


def random_placement(device: Device) -> tuple[Bytes, ScatterStatus, Digests]:
    """The same odd-sized random placement on any device."""
    rng = np.random.default_rng(11)
    page, count = 3000, 400
    with device:
        arena, status, stream = device.allocate(2 * count * page), device.allocate(STATUS_BYTES), device.new_stream()
        staging = device.stage(count * page, count)
        staging.payload[:] = rng.integers(0, 256, count * page, dtype=np.uint8)
        slots = rng.permutation(2 * count)[:count]
        device.fill(arena, 0xA5, stream)
        device.fill(status, 0, stream)
        device.scatter(staging, SpanTable.of(np.arange(count) * page, slots * page, [page] * count, alignment=1), arena, status, stream)
        pages = page_table(np.arange(2 * count) * page, np.full(2 * count, page))
        digests = device.page_digests(arena, pages, DigestKey(7, 9), stream)
        counted = ScatterStatus.of(device.read(status, 0, STATUS_BYTES, stream))
        return device.read(arena, 0, arena.size, stream), counted, digests


@pytest.mark.gpu
def test_a_real_gpu_places_and_digests_like_the_cpu_device() -> None:
    try:
        gpu = CudaDevice()
    except CannotTellError as absent:
        pytest.skip(f"no GPU was used: {absent.message}")
    arena, status, digests = random_placement(gpu)
    expected_arena, expected_status, expected_digests = random_placement(CpuDevice(Deferral.EAGER))
    assert np.array_equal(arena, expected_arena)
    assert np.array_equal(digests, expected_digests)
    assert (status.placed_bytes, status.rejected_rows, status.error) == (expected_status.placed_bytes, 0, 0)
