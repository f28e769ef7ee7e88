"""The kernel file and its compiled form: NVRTC turns the one source text into a cubin, and a cache keeps it by digest.

Compilation needs no driver and no GPU and is deterministic, so the digests of source and cubin in a receipt can be recomputed.
"""

import hashlib
import tempfile
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

from platformdirs import user_cache_path

from countermark.cuda_restore.cuda_calls import CudaCalls, as_handle
from countermark.cuda_restore.device import DriverError

SOURCE_NAME: Final = "kv_scatter.cu"
_OPTIONS: Final = (b"--std=c++17",)


@dataclass(frozen=True, slots=True)
class Cubin:
    """Machine code for one architecture; the digests are hex SHA-256."""

    data: bytes
    sha256: str
    source_sha256: str


def kernel_source() -> bytes:
    """The text of `kv_scatter.cu`, as shipped in the package."""
    return files("countermark.cuda_restore").joinpath(SOURCE_NAME).read_bytes()


def kernel_source_sha256() -> str:
    """The hex SHA-256 of the kernel file, which every receipt carries, whatever the device."""
    return hashlib.sha256(kernel_source()).hexdigest()


def default_cache() -> Path:
    """Where cubins are kept: the user's cache directory, never shared between users."""
    return user_cache_path("countermark") / "cubin"


def load_cubin(sm: int, cache: Path | None = None) -> Cubin:
    """The kernels for compute capability `sm` (90 is 9.0), from the cache or compiled into it.

    A cached file whose bytes do not match the digest in its name is not used. A cache that cannot be written is gone without.
    """
    source, folder = kernel_source(), cache or default_cache()
    nvrtc = CudaCalls("nvrtc")
    recipe = _recipe(source, sm, nvrtc.call("nvrtcVersion"))
    data = _cached(folder, recipe)
    if data is None:
        data = compile_cubin(source, sm, nvrtc)
        _keep(folder, recipe, data)
    return Cubin(data, hashlib.sha256(data).hexdigest(), kernel_source_sha256())


def compile_cubin(source: bytes, sm: int, nvrtc: CudaCalls) -> bytes:
    """Compile for one architecture; a `DriverError` names the failed call of NVRTC and carries the compiler's first complaint."""
    program = nvrtc.call("nvrtcCreateProgram", source, SOURCE_NAME.encode(), 0, [], [])[0]
    try:
        options = [f"--gpu-architecture=sm_{sm}".encode(), *_OPTIONS]
        try:
            nvrtc.call("nvrtcCompileProgram", program, len(options), options)
        except DriverError as error:
            raise DriverError(error.call, error.status, _log(program, nvrtc)) from None
        cubin = bytearray(as_handle(nvrtc.call("nvrtcGetCUBINSize", program)[0]))
        nvrtc.call("nvrtcGetCUBIN", program, cubin)
        return bytes(cubin)
    finally:
        nvrtc.call("nvrtcDestroyProgram", program)


def _log(program: object, nvrtc: CudaCalls) -> str:
    log = bytearray(as_handle(nvrtc.call("nvrtcGetProgramLogSize", program)[0]))
    nvrtc.call("nvrtcGetProgramLog", program, log)
    lines = log.rstrip(b"\0").decode(errors="replace").strip().splitlines()
    return lines[0] if lines else "the compiler said nothing"


def _recipe(source: bytes, sm: int, version: tuple[object, ...]) -> str:
    """A digest of everything that the cubin depends on."""
    parts = (source, f"sm_{sm}".encode(), *_OPTIONS, repr(version).encode())
    return hashlib.sha256(b"".join(len(part).to_bytes(8, "little") + part for part in parts)).hexdigest()


def _cached(folder: Path, recipe: str) -> bytes | None:
    for path in sorted(folder.glob(f"{recipe}.*.cubin")):
        data = path.read_bytes()
        if path.name == f"{recipe}.{hashlib.sha256(data).hexdigest()}.cubin":
            return data
    return None


def _keep(folder: Path, recipe: str, data: bytes) -> None:
    name = f"{recipe}.{hashlib.sha256(data).hexdigest()}.cubin"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as partial:
            partial.write(data)
        Path(partial.name).replace(folder / name)
    except OSError:
        return  # the next run compiles again, which takes a tenth of a second
