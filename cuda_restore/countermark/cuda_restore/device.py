"""The one protocol of a device: memory, streams, events, the copy-and-scatter of a slab, and the read-back of pages.

Handles are plain values, as in the driver interface; only the device that made one can use it. Work on a stream is asynchronous:
after a call returns, the device may run it at any later time until something waits. Two streams are ordered only by `order`, and
the host sees a result only after `wait` or `synchronize`. A device that raises `DriverError` may have lost its context; close it.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from countermark.attestations.codes import Code
from countermark.attestations.errors import CannotTellError, InputError
from countermark.cuda_restore.page_digest import DigestKey, Digests
from countermark.cuda_restore.spans import SpanTable

Bytes = NDArray[np.uint8]


class DeviceKind(StrEnum):
    """What ran a restore. Only `cuda` can earn more than the status `implemented`."""

    CPU = "cpu"
    CUDA = "cuda"
    SIMULATED = "simulated"


class DriverState(StrEnum):
    """What is known of the NVIDIA driver of this machine, as a receipt says it."""

    PRESENT = "present"
    ABSENT = "absent"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """The device as a receipt names it. `sm` is the compute capability times ten, the digests are hex SHA-256."""

    kind: DeviceKind
    name: str
    driver: DriverState
    driver_version: int | None = None
    sm: int | None = None
    kernel_source_sha256: str | None = None
    cubin_sha256: str | None = None


class DriverError(CannotTellError):
    """A call of the driver (or of the runtime compiler) failed; `call` and `status` say which and how."""

    def __init__(self, call: str, status: int, detail: str) -> None:
        super().__init__(
            Code.DRIVER_ERROR,
            f"{call} failed with status {status} ({detail})",
            fix="see the driver's log (dmesg, nvidia-smi), then restart the process; the prefix is recomputed",
        )
        self.call = call
        self.status = status


@dataclass(frozen=True, slots=True)
class Stream:
    """A queue of device work that runs in order."""

    handle: int


@dataclass(frozen=True, slots=True)
class Event:
    """A point in a stream: everything queued before `Device.record`. A handle of another library's CUDA event is welcome too."""

    handle: int


@dataclass(frozen=True, slots=True)
class Buffer:
    """Device memory of `size` bytes."""

    handle: int
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class StagingMemory:
    """Pinned, prefaulted host memory for one slab, with the room for its span table beside it."""

    handle: int
    payload: Bytes
    max_spans: int


STATUS_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class ScatterStatus:
    """What the kernels counted. `error` is 0, or violation * 2^32 + the row of a rejection that was noticed first."""

    placed_bytes: int
    placed_rows: int
    rejected_rows: int
    error: int

    @classmethod
    def of(cls, raw: Bytes) -> "ScatterStatus":
        """Read the four little-endian 64-bit words of a status buffer."""
        return cls(*(int(word) for word in raw.view("<u8")))


class Violation(StrEnum):
    """Why a kernel refused a row, in the order of the numbers in the error word."""

    OUTSIDE_SOURCE = "outside-source"
    OUTSIDE_DESTINATION = "outside-destination"
    MISALIGNED = "misaligned"
    EMPTY = "empty"

    @classmethod
    def of_error(cls, error: int) -> "Violation":
        """The violation that a non-zero error word names."""
        return list(cls)[(error >> 32) - 1]


class Device(AbstractContextManager["Device"], Protocol):
    """A device that can place slabs. Leaving the context releases everything that it gave out."""

    @property
    def info(self) -> DeviceInfo:
        """What a receipt says about this device."""
        ...

    def new_stream(self) -> Stream:
        """A stream that is ordered with no other."""
        ...

    def record(self, stream: Stream) -> Event:
        """An event that is done when everything queued on `stream` so far is done."""
        ...

    def order(self, stream: Stream, after: Event) -> None:
        """Let what is queued on `stream` from now on run after the event; the host does not wait."""
        ...

    def wait(self, event: Event) -> None:
        """Block the host until the event is done."""
        ...

    def synchronize(self, stream: Stream) -> None:
        """Block the host until everything queued on the stream is done."""
        ...

    def allocate(self, size: int) -> Buffer:
        """Device memory of `size` bytes with unspecified contents."""
        ...

    def stage(self, payload_bytes: int, max_spans: int) -> StagingMemory:
        """Memory for one slab of up to `payload_bytes`, placed by up to `max_spans` spans."""
        ...

    def release(self, resource: Stream | Event | Buffer | StagingMemory) -> None:
        """Give back one resource. Work that still uses it must have been waited for."""
        ...

    def fill(self, buffer: Buffer, value: int, stream: Stream) -> None:
        """Queue the setting of every byte of `buffer` to `value` (0 to 255)."""
        ...

    def scatter(self, staging: StagingMemory, spans: SpanTable, destination: Buffer, status: Buffer, stream: Stream) -> None:
        """Queue one copy of the slab and its span table to the device and one scatter launch.

        The staging memory is read when the device gets to it. `spans` must fit (`check_scatter`); `status` counts up.
        """
        ...

    def page_digests(self, buffer: Buffer, pages: NDArray[np.void], key: DigestKey, stream: Stream) -> Digests:
        """The read-back digests of the pages of a page table, after everything queued on `stream`; blocks the host."""
        ...

    def read(self, buffer: Buffer, start: int, size: int, stream: Stream) -> Bytes:
        """A copy of `size` bytes from `start`, after everything queued on `stream`; blocks the host."""
        ...

    def write(self, buffer: Buffer, start: int, data: Bytes, stream: Stream) -> None:
        """Put `data` at `start`, after everything queued on `stream`; blocks the host."""
        ...


def check_scatter(staging: StagingMemory, spans: SpanTable, destination: Buffer, status: Buffer) -> None:
    """Refuse a launch whose table is empty, too long, or leaves its buffers; the same rules on every device."""
    if not 0 < len(spans) <= staging.max_spans:
        raise InputError(
            Code.TOO_LARGE, f"a slab has {len(spans)} spans, not 1 to {staging.max_spans}", fix="use smaller objects or larger pages"
        )
    if status.size != STATUS_BYTES:
        raise InputError(Code.MALFORMED, f"a status buffer has {STATUS_BYTES} bytes", fix="allocate it with that size")
    if spans.total_bytes > staging.payload.size:
        raise InputError(Code.MALFORMED, "the spans read a byte of the slab twice", fix="give every page its own bytes")
    spans.check_bounds(staging.payload.size, destination.size)


def check_range(buffer: Buffer, start: int, size: int) -> None:
    """Refuse a transfer that leaves its buffer."""
    if start < 0 or size < 0 or start + size > buffer.size:
        raise InputError(Code.MALFORMED, f"bytes {start} to {start + size} leave a buffer of {buffer.size}", fix="stay inside the buffer")
