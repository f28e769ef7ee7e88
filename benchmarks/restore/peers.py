"""The same bytes read by others. All of them allocate what they return, as their users see it; none of them places pages.

What a peer delivers is counted, and where it authenticates, compared; nothing else of what it returns is looked at.
"""

import hashlib
import importlib
import io
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np

from benchmarks.restore.contender import Detail, Open, Run
from benchmarks.restore.dataset import DataSet
from countermark.attestations.codes import Code
from countermark.attestations.errors import CannotTellError, InputError
from countermark.cuda_restore.device import Bytes
from countermark.cuda_restore.slabs import READERS

_INSTALL = "install the peers: pip install -e '.[bench]'"


def numpy_read(data: DataSet) -> list[Bytes]:
    """`np.fromfile` of every object, all of them kept."""
    return [np.fromfile(path, np.uint8) for path, _, _ in data.objects]


def numpy_hashed(data: DataSet) -> list[Bytes]:
    """The same, each object hashed behind it: what is written first when nobody thinks of speed."""
    return [_hashed(path, sha256) for path, _, sha256 in data.objects]


def numpy_hashed_in_threads(data: DataSet) -> list[Bytes]:
    """The same by as many threads as the engine has readers: the plain parallel loop, without bounds, order or placement."""
    with ThreadPoolExecutor(READERS) as readers:
        return list(readers.map(lambda one: _hashed(one[0], one[2]), data.objects))


def _hashed(path: Path, sha256: str) -> Bytes:
    array = np.fromfile(path, np.uint8)
    _demand(array, path, sha256)
    return array


def _demand(array: Bytes, path: Path, sha256: str) -> None:
    if hashlib.sha256(array.data).hexdigest() != sha256:
        raise InputError(Code.BAD_DIGEST, f"{path.name} is not what its name says", fix="generate the data set again")


@contextmanager
def open_reused(data: DataSet) -> Iterator[Run]:
    """Read into memory that is kept from run to run, as ours is, and hash; one thread. What is faster than this is not the allocator."""
    arrays = [np.full(size, 1, np.uint8) for _, size, _ in data.objects]

    def run() -> Callable[[], Detail]:
        for array, (path, _, sha256) in zip(arrays, data.objects, strict=True):
            with path.open("rb", buffering=0) as file:
                _read_into(array, file)
            _demand(array, path, sha256)
        return partial(_counted, arrays)

    yield run


def _read_into(array: Bytes, file: io.FileIO) -> None:
    rest = array.data
    while rest and (count := file.readinto(rest)):
        rest = rest[count:]


def plain(load: Callable[[DataSet], Iterable[Bytes]]) -> Open:
    """A peer that needs no preparation."""

    @contextmanager
    def opened(data: DataSet) -> Iterator[Run]:
        yield lambda: partial(_counted, load(data))

    return opened


@contextmanager
def open_safetensors(data: DataSet) -> Iterator[Run]:
    """`safetensors.numpy.load_file` of every file, all arrays kept."""
    load_file = _module("safetensors.numpy").load_file
    yield lambda: partial(_counted, [array for path in data.tensors for array in load_file(path).values()])


@contextmanager
def open_runai(data: DataSet) -> Iterator[Run]:
    """`SafetensorsStreamer` over all files, to host memory, with as many threads as the engine has readers; all tensors kept."""
    os.environ["RUNAI_STREAMER_CONCURRENCY"] = str(READERS)
    streamer = _module("runai_model_streamer").SafetensorsStreamer
    paths = [str(path) for path in data.tensors]

    def run() -> Callable[[], Detail]:
        with streamer() as stream:
            stream.stream_files(paths)
            return partial(_counted, [tensor.numpy() for _, tensor in stream.get_tensors()])

    yield run


@contextmanager
def open_fastsafetensors(data: DataSet) -> Iterator[Run]:
    """`SafeTensorsFileLoader` without GPUDirect over all files, to host memory, with as many threads as the engine has readers."""
    loader_type = _module("fastsafetensors").SafeTensorsFileLoader
    paths = [str(path) for path in data.tensors]

    def run() -> Callable[[], Detail]:
        loader = loader_type(None, device="cpu", max_threads=READERS, nogds=True, disable_cache=False)
        loader.add_filenames({0: paths})
        buffers = loader.copy_files_to_device()
        arrays = [buffers.get_tensor(name).numpy() for name in loader.get_keys()]

        def tell() -> Detail:
            detail = _counted(arrays)
            arrays.clear()
            buffers.close()
            loader.close()
            return detail

        return tell

    yield run


def _counted(arrays: Iterable[Bytes]) -> Detail:
    return {"bytes": sum(array.nbytes for array in arrays)}


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise CannotTellError(Code.UNSUPPORTED, f"not installed ({error})", fix=_INSTALL) from None
