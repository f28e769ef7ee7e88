"""Test libraries that run the one kernel file on the host: as plain functions, and behind a driver library."""

import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "cuda_restore" / "fake_cuda"

_COMMON = ["-std=c++17", "-shared", "-fPIC", "-fno-strict-aliasing", "-Wall", "-Wextra", "-Werror", "-Wno-cast-function-type"]
_LIBRARIES = {
    "libkernels.so": ["kernels.cpp", "-O2"],
    "libkernels-sanitized.so": ["kernels.cpp", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "libcuda.so.1": ["fake_driver.cpp", "-O2", "-fvisibility=hidden", "-Wl,-soname,libcuda.so.1"],
}


def build_library(name: str, folder: Path) -> Path:
    """Build one of the libraries into `folder`; the test is skipped, and says so, where there is no g++."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed, so the kernel file was not run on the host")
    source, *flags = _LIBRARIES[name]
    target = folder / name
    kernels = files("countermark.cuda_restore").joinpath("kv_scatter.cu")
    includes = [f"-I{SOURCES}", f"-I{Path(str(kernels)).parent}"]
    built = subprocess.run(
        ["g++", *_COMMON, *flags, *includes, "-o", target, SOURCES / source], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    return target


def sanitizer_runtimes() -> str:
    """What LD_PRELOAD must name so that a program built without sanitizers can load a library built with them."""
    names = ("libasan.so", "libubsan.so")
    paths = [
        subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip() for name in names
    ]
    if not all(Path(path).is_absolute() for path in paths):
        pytest.skip("g++ has no sanitizer runtimes here, so the kernel file was not run under them")
    return ":".join(paths)
