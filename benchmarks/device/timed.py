"""The CUDA device with a clock of its own, and the driver calls that only a measurement makes."""

import importlib
from ctypes import c_uint32, c_uint64
from functools import partial

from countermark.cuda_restore.cuda_device import BLOCK_THREADS, TILE_BYTES, CudaDevice
from countermark.cuda_restore.device import Buffer, Bytes, Event, StagingMemory, Stream
from countermark.cuda_restore.spans import SpanTable


class TimedDevice(CudaDevice):
    """Times launches and copies on the device itself, so that no host work is in the figures."""

    def __init__(self, ordinal: int = 0, *, block_threads: int = BLOCK_THREADS, tile_bytes: int = TILE_BYTES) -> None:
        super().__init__(ordinal, block_threads=block_threads, tile_bytes=tile_bytes)
        self._launches: list[tuple[Event, Event]] = []

    def timed_launches(self) -> list[float]:
        """The milliseconds of each launch since the last call; their streams must have been waited for."""
        found = [self.between(*marks) for marks in self._launches]
        self._launches.clear()
        return found

    def _launch(self, function: object, stream: Stream, rows: int, *arguments: c_uint32 | c_uint64) -> None:
        begun = self.mark(stream)
        super()._launch(function, stream, rows, *arguments)
        self._launches.append((begun, self.mark(stream)))

    def mark(self, stream: Stream) -> Event:
        """An event that remembers when it was reached."""
        event = Event(self._handle("cuEventCreate", self._driver.constant("CUevent_flags.CU_EVENT_DEFAULT")))
        self.add(event, partial(self._call, "cuEventDestroy", event.handle))
        self._call("cuEventRecord", event.handle, stream.handle)
        return event

    def between(self, begun: Event, ended: Event) -> float:
        """The milliseconds between two marks that were reached; both are released."""
        found = self._call("cuEventElapsedTime", begun.handle, ended.handle)[0]
        self.release(begun)
        self.release(ended)
        return float(str(found))

    def copy_pinned(self, staging: StagingMemory, to: Buffer, size: int, stream: Stream) -> float:
        """Milliseconds of one copy from pinned memory."""
        return self._timed_copy(staging.handle, to, size, stream)

    def copy_pageable(self, data: Bytes, to: Buffer, stream: Stream) -> float:
        """Milliseconds of one copy from memory that the driver has to stage itself."""
        return self._timed_copy(data.ctypes.data, to, data.size, stream)

    def _timed_copy(self, source: int, to: Buffer, size: int, stream: Stream) -> float:
        begun = self.mark(stream)
        self._call("cuMemcpyHtoDAsync", to.handle, source, size, stream.handle)
        ended = self.mark(stream)
        self.synchronize(stream)
        return self.between(begun, ended)

    def copy_batch(self, staging: StagingMemory, spans: SpanTable, to: Buffer, stream: Stream) -> float:
        """Milliseconds of one `cuMemcpyBatchAsync` that takes every span from pinned memory to its place: no slab on the device, no kernel.

        A `DriverError` or `CannotTellError` where the driver does not have it.
        """
        driver = importlib.import_module("cuda.bindings.driver")
        attributes = driver.CUmemcpyAttributes()
        attributes.srcAccessOrder = driver.CUmemcpySrcAccessOrder.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
        sources = [driver.CUdeviceptr(staging.handle + start) for start in spans.source.tolist()]
        destinations = [driver.CUdeviceptr(to.handle + start) for start in spans.destination.tolist()]
        begun = self.mark(stream)
        self._call("cuMemcpyBatchAsync", destinations, sources, spans.sizes.tolist(), len(spans), [attributes], [0], 1, stream.handle)
        ended = self.mark(stream)
        self.synchronize(stream)
        return self.between(begun, ended)
