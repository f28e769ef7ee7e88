"""The CUDA device: NVIDIA's driver interface through cuda-bindings, the kernels through NVRTC. Nothing here is needed to import it.

Pinned memory comes from `cuMemHostAlloc` once per slot: never registered (unsupported on some integrated parts) and never
write-combined (the processor hashes from it). A slab costs one copy, which carries its span table along, and one launch.
"""

import ctypes
import threading
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from countermark.cuda_restore.cuda_calls import CudaCalls, as_handle
from countermark.cuda_restore.cuda_probe import probe_cuda
from countermark.cuda_restore.device import (
    STATUS_BYTES,
    Buffer,
    Bytes,
    DeviceInfo,
    DeviceKind,
    DriverError,
    DriverState,
    Event,
    ScatterStatus,
    StagingMemory,
    Stream,
    Violation,
    check_range,
    check_scatter,
)
from countermark.cuda_restore.kernel import Cubin, load_cubin
from countermark.cuda_restore.ownership import Ownership
from countermark.cuda_restore.page_digest import DigestKey, Digests, check_pages
from countermark.cuda_restore.spans import SPAN_ROW, VECTOR_BYTES, SpanTable

BLOCK_THREADS: Final = 256
TILE_BYTES: Final = 64 * 1024
SIMULATED: Final = "simulated"
"""A driver whose device name begins so is a test's; it must not earn what a GPU earns."""

_U32, _U64 = ctypes.c_uint32, ctypes.c_uint64
_Argument = ctypes.c_uint32 | ctypes.c_uint64


class CudaDevice(Ownership):
    """One GPU in its primary context. Calls may come from any thread."""

    def __init__(
        self, ordinal: int = 0, *, cache: Path | None = None, block_threads: int = BLOCK_THREADS, tile_bytes: int = TILE_BYTES
    ) -> None:
        """Open device `ordinal`.

        `CannotTellError` DEVICE_ABSENT without one, `DriverError` naming the first call that fails; then nothing is left behind.
        `block_threads` and `tile_bytes` are for measurements.
        """
        super().__init__()
        probe = probe_cuda()
        probe.demand(ordinal)
        self._driver = CudaCalls("driver")
        self._thread = threading.local()
        self._context: object = None
        self._block_threads, self._tile_bytes = block_threads, tile_bytes
        self._slabs: dict[int, Buffer] = {}
        try:
            self.info = self._open(ordinal, cache, probe.driver_version)
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise

    def _open(self, ordinal: int, cache: Path | None, driver_version: int | None) -> DeviceInfo:
        self._driver.call("cuInit", 0)
        device = self._driver.call("cuDeviceGet", ordinal)[0]
        name = _text(self._driver.call("cuDeviceGetName", 256, device)[0])
        major, minor = (self._attribute(f"COMPUTE_CAPABILITY_{part}", device) for part in ("MAJOR", "MINOR"))
        cubin = load_cubin(10 * major + minor, cache)
        self._context = self._driver.call("cuDevicePrimaryCtxRetain", device)[0]
        self.add("context", partial(self._driver.call, "cuDevicePrimaryCtxRelease", device))
        self._load(cubin)
        kind = DeviceKind.SIMULATED if name.startswith(SIMULATED) else DeviceKind.CUDA
        return DeviceInfo(kind, name, DriverState.PRESENT, driver_version, 10 * major + minor, cubin.source_sha256, cubin.sha256)

    def _attribute(self, name: str, device: object) -> int:
        attribute = self._driver.constant(f"CUdevice_attribute.CU_DEVICE_ATTRIBUTE_{name}")
        return as_handle(self._driver.call("cuDeviceGetAttribute", attribute, device)[0])

    def _load(self, cubin: Cubin) -> None:
        module = self._call("cuModuleLoadData", cubin.data)[0]
        self.add("module", partial(self._call, "cuModuleUnload", module))
        self._scatter = self._call("cuModuleGetFunction", module, b"kv_scatter")[0]
        self._page_digest = self._call("cuModuleGetFunction", module, b"kv_page_digest")[0]

    def new_stream(self) -> Stream:
        flags = self._driver.constant("CUstream_flags.CU_STREAM_NON_BLOCKING")
        stream = Stream(self._handle("cuStreamCreate", flags))
        self.add(stream, partial(self._call, "cuStreamDestroy", stream.handle))
        return stream

    def record(self, stream: Stream) -> Event:
        event = Event(self._handle("cuEventCreate", self._driver.constant("CUevent_flags.CU_EVENT_DISABLE_TIMING")))
        self.add(event, partial(self._call, "cuEventDestroy", event.handle))
        self._call("cuEventRecord", event.handle, stream.handle)
        return event

    def order(self, stream: Stream, after: Event) -> None:
        self._call("cuStreamWaitEvent", stream.handle, after.handle, 0)

    def wait(self, event: Event) -> None:
        self._call("cuEventSynchronize", event.handle)

    def synchronize(self, stream: Stream) -> None:
        self._call("cuStreamSynchronize", stream.handle)

    def allocate(self, size: int) -> Buffer:
        buffer = Buffer(self._handle("cuMemAlloc", size), size)
        self.add(buffer, partial(self._call, "cuMemFree", buffer.handle))
        return buffer

    def stage(self, payload_bytes: int, max_spans: int) -> StagingMemory:
        """The slab's span table lies behind its payload, in the pinned memory and on the device, so that one copy moves both."""
        rows = max_spans + payload_bytes // self._tile_bytes
        size = payload_bytes + 2 * VECTOR_BYTES + rows * SPAN_ROW.itemsize
        slab = self.allocate(size)
        host = self._handle("cuMemHostAlloc", size, 0)
        staging = StagingMemory(host, _host_bytes(host, payload_bytes), max_spans)
        self._slabs[host] = slab
        self.add(staging, partial(self._release_staging, host, slab))
        staging.payload.fill(0)  # fault the pages in now, not while an object is being read
        return staging

    def _release_staging(self, host: int, slab: Buffer) -> None:
        with Ownership() as parts:
            parts.add("slab", partial(self.release, slab))
            parts.add("host", partial(self._call, "cuMemFreeHost", host))

    def fill(self, buffer: Buffer, value: int, stream: Stream) -> None:
        self._call("cuMemsetD8Async", buffer.handle, value, buffer.size, stream.handle)

    def scatter(self, staging: StagingMemory, spans: SpanTable, destination: Buffer, status: Buffer, stream: Stream) -> None:
        check_scatter(staging, spans, destination, status)
        slab, shift, used = self._slabs[staging.handle], spans.skew, spans.source_end
        rows = spans.tiled(self._tile_bytes).rows(shift)
        table = -(-(used + shift) // VECTOR_BYTES) * VECTOR_BYTES - shift  # aligned on the device, where the slab lies `shift` higher
        end = table + rows.nbytes
        _host_bytes(staging.handle, slab.size)[table:end] = rows.view(np.uint8)
        self._call("cuMemcpyHtoDAsync", slab.handle + shift, staging.handle, end, stream.handle)
        self._launch(
            self._scatter,
            stream,
            len(rows),
            *(_U64(slab.handle), _U64(used + shift), _U64(destination.handle), _U64(destination.size)),
            *(_U64(slab.handle + shift + table), _U32(len(rows)), _U32(spans.alignment), _U64(status.handle)),
        )

    def page_digests(self, buffer: Buffer, pages: NDArray[np.void], key: DigestKey, stream: Stream) -> Digests:
        check_pages(pages, buffer.size)
        if not len(pages):
            return np.zeros((0, 2), np.uint64)
        with Ownership() as scratch:
            table, digests, status = (self._scratch(scratch, size) for size in (pages.nbytes, 16 * len(pages), STATUS_BYTES))
            self.write(table, 0, pages.view(np.uint8), stream)
            self.fill(digests, 0, stream)
            self.fill(status, 0, stream)
            self._launch(
                self._page_digest,
                stream,
                len(pages),
                *(_U64(buffer.handle), _U64(buffer.size), _U64(table.handle), _U32(len(pages))),
                *(_U64(key.low), _U64(key.high), _U64(digests.handle), _U64(status.handle)),
            )
            if error := ScatterStatus.of(self.read(status, 0, STATUS_BYTES, stream)).error:
                raise DriverError("kv_page_digest", error, Violation.of_error(error))
            return self.read(digests, 0, digests.size, stream).view(np.uint64).reshape(-1, 2)

    def read(self, buffer: Buffer, start: int, size: int, stream: Stream) -> Bytes:
        check_range(buffer, start, size)
        data = np.empty(size, np.uint8)
        self._call("cuMemcpyDtoHAsync", data.ctypes.data, buffer.handle + start, size, stream.handle)
        self.synchronize(stream)
        return data

    def write(self, buffer: Buffer, start: int, data: Bytes, stream: Stream) -> None:
        check_range(buffer, start, data.size)
        whole = np.ascontiguousarray(data)
        self._call("cuMemcpyHtoDAsync", buffer.handle + start, whole.ctypes.data, whole.size, stream.handle)
        self.synchronize(stream)

    def _scratch(self, scratch: Ownership, size: int) -> Buffer:
        buffer = self.allocate(size)
        scratch.add(buffer, partial(self.release, buffer))
        return buffer

    def _launch(self, function: object, stream: Stream, rows: int, *arguments: _Argument) -> None:
        """One block a row."""
        packed = (tuple(argument.value for argument in arguments), tuple(type(argument) for argument in arguments))
        self._call("cuLaunchKernel", function, rows, 1, 1, self._block_threads, 1, 1, 0, stream.handle, packed, 0)

    def _call(self, name: str, *arguments: object) -> tuple[object, ...]:
        """A call that needs the context, which CUDA keeps per thread."""
        if not getattr(self._thread, "entered", False):
            self._driver.call("cuCtxSetCurrent", self._context)
            self._thread.entered = True
        return self._driver.call(name, *arguments)

    def _handle(self, name: str, *arguments: object) -> int:
        return as_handle(self._call(name, *arguments)[0])


def _text(result: object) -> str:
    return result.split(b"\0")[0].decode(errors="replace") if isinstance(result, bytes) else str(result)


def _host_bytes(address: int, size: int) -> Bytes:
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
