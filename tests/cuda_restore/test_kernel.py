"""The one kernel file: equal to numpy on the host, clean under the sanitizers, compiled without a driver to the same bytes twice."""

import os
import subprocess
import sys
from pathlib import Path

import host_kernels
import numpy as np
import pytest
from cuda_libraries import build_library, sanitizer_runtimes
from hypothesis import given
from hypothesis import strategies as st

from countermark.attestations.codes import Code
from countermark.attestations.errors import CannotTellError
from countermark.cuda_restore import kernel
from countermark.cuda_restore.cuda_calls import CudaCalls
from countermark.cuda_restore.device import DriverError
from countermark.cuda_restore.spans import SpanTable

ARCHITECTURES = (90, 100, 120, 121)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> host_kernels.HostKernels:
    """The kernels as host functions."""
    return host_kernels.HostKernels.load(build_library("libkernels.so", tmp_path_factory.mktemp("kernels")))


@pytest.fixture(scope="module")
def nvrtc() -> CudaCalls:
    """The runtime compiler."""
    try:
        compiler = CudaCalls("nvrtc")
        compiler.call("nvrtcVersion")
    except CannotTellError as absent:
        pytest.skip(f"nothing was compiled: {absent.message}")
    return compiler


@given(st.integers(0, 2**32))
def test_the_kernels_equal_python_for_random_tables(kernels: host_kernels.HostKernels, seed: int) -> None:
    rng = np.random.default_rng(seed)
    host_kernels.check_scatter(kernels, rng)
    host_kernels.check_page_digest(kernels, rng)


@given(seed=st.integers(0, 2**32), grid=st.integers(1, 40), block=st.integers(1, 70), tile=st.sampled_from([16, 64, 1024]))
def test_no_grid_block_or_tile_changes_what_is_placed(
    kernels: host_kernels.HostKernels, seed: int, grid: int, block: int, tile: int
) -> None:
    rng = np.random.default_rng(seed)
    pages, page = int(rng.integers(1, 12)), 16 * int(rng.integers(1, 20))
    slab = rng.integers(0, 256, pages * page + 32, dtype=np.uint8)
    lead = int(rng.integers(0, 16))
    slots = rng.permutation(pages)
    table = SpanTable.of(lead + np.arange(pages) * page, slots * page, np.full(pages, page))
    shifted = np.concatenate((np.zeros(table.skew, np.uint8), slab))
    destination = np.full(pages * page, 0xA5, np.uint8)
    rows = table.tiled(tile).rows(table.skew)
    status = kernels.scatter(shifted, destination, rows, alignment=16, grid=grid, block=block)
    assert np.array_equal(destination.reshape(pages, page)[slots], slab[lead : lead + pages * page].reshape(pages, page))
    assert (status.placed_bytes, status.placed_rows, status.rejected_rows, status.error) == (pages * page, len(rows), 0, 0)


def test_the_kernels_are_clean_under_the_sanitizers(tmp_path: Path) -> None:
    library = build_library("libkernels-sanitized.so", tmp_path)
    environment = os.environ | {"LD_PRELOAD": sanitizer_runtimes(), "ASAN_OPTIONS": "detect_leaks=0"}
    command = [sys.executable, host_kernels.__file__, str(library), "5", "200"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "agreed 200\n"), run.stderr


@pytest.mark.parametrize("sm", ARCHITECTURES)
def test_the_compiler_gives_the_same_cubin_twice_without_a_driver(nvrtc: CudaCalls, sm: int) -> None:
    first, second = (kernel.compile_cubin(kernel.kernel_source(), sm, nvrtc) for _ in range(2))
    assert first == second
    assert first.startswith(b"\x7fELF")
    assert b"kv_scatter" in first
    assert b"kv_page_digest" in first


def test_a_compiler_error_carries_its_line(nvrtc: CudaCalls) -> None:
    with pytest.raises(DriverError, match=r"nvrtcCompileProgram .*kv_scatter\.cu\(2\): error") as caught:
        kernel.compile_cubin(b"\nnonsense;", 90, nvrtc)
    assert caught.value.call == "nvrtcCompileProgram"
    with pytest.raises(DriverError, match="gpu-architecture"):
        kernel.compile_cubin(kernel.kernel_source(), 13, nvrtc)


def test_the_cache_keeps_a_cubin_by_what_it_depends_on(nvrtc: CudaCalls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = kernel.load_cubin(90, tmp_path)
    (kept,) = tmp_path.iterdir()
    assert kept.read_bytes() == first.data
    assert kept.name.endswith(f".{first.sha256}.cubin")

    monkeypatch.setattr(kernel, "compile_cubin", lambda *_: pytest.fail("compiled although cached"))
    assert kernel.load_cubin(90, tmp_path) == first
    monkeypatch.undo()

    kernel.load_cubin(100, tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_cubin_that_does_not_match_its_name_is_compiled_again(nvrtc: CudaCalls, tmp_path: Path) -> None:
    first = kernel.load_cubin(90, tmp_path)
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(first.data[:-1] + b"!")
    assert kernel.load_cubin(90, tmp_path) == first
    assert kept.read_bytes() == first.data


def test_a_cache_that_cannot_be_written_is_done_without(nvrtc: CudaCalls, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    assert kernel.load_cubin(90, blocked / "cubin").data.startswith(b"\x7fELF")


def test_without_the_extra_the_answer_is_cannot_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvrtc", None)
    with pytest.raises(CannotTellError, match="cuda-bindings") as caught:
        kernel.load_cubin(90)
    assert caught.value.code is Code.UNSUPPORTED
    assert "countermark[cuda]" in caught.value.fix


def test_the_kernel_file_needs_no_header() -> None:
    assert b"#include" not in kernel.kernel_source()
