"""Is there a CUDA device? Asked of the driver library itself, in under a millisecond and without any CUDA package.

Three kinds of "no" are three states in a receipt: no driver, a driver that fails, a driver without this device.
"""

import ctypes
from dataclasses import dataclass
from typing import Final

from countermark.attestations.codes import Code
from countermark.attestations.errors import CannotTellError
from countermark.cuda_restore.device import DriverError, DriverState

DRIVER_LIBRARY: Final = "libcuda.so.1"

_NO_DEVICE: Final = 100  # CUDA_ERROR_NO_DEVICE, which cuInit itself may return
_STUB_LIBRARY: Final = 34  # CUDA_ERROR_STUB_LIBRARY: the toolkit's link-time stub, not a driver


@dataclass(frozen=True, slots=True)
class CudaProbe:
    """What the driver library answered. `failure` is set when `driver` is `error`."""

    driver: DriverState
    driver_version: int | None = None
    devices: int = 0
    failure: DriverError | None = None

    def demand(self, ordinal: int) -> None:
        """Raise unless device `ordinal` is there: `CannotTellError` DEVICE_ABSENT, or the driver's own `DriverError`."""
        if self.failure:
            raise self.failure
        if self.driver is DriverState.ABSENT:
            raise _absent("no CUDA driver is installed here")
        if ordinal >= self.devices:
            raise _absent(f"the CUDA driver sees {self.devices} devices, so there is no cuda:{ordinal}")


def _absent(message: str) -> CannotTellError:
    return CannotTellError(Code.DEVICE_ABSENT, message, fix="run it where the device is, or ask for --device cpu, which proves less")


def probe_cuda() -> CudaProbe:
    """Ask the driver; never raises."""
    try:
        library = ctypes.CDLL(DRIVER_LIBRARY)
    except OSError:
        return CudaProbe(DriverState.ABSENT)
    version, devices = ctypes.c_int(), ctypes.c_int()
    try:
        started = int(library.cuInit(0))
        if started == _STUB_LIBRARY:
            return CudaProbe(DriverState.ABSENT)
        if started not in (0, _NO_DEVICE):
            return _failed("cuInit", started)
        if status := int(library.cuDriverGetVersion(ctypes.byref(version))):
            return _failed("cuDriverGetVersion", status)
        if not started and (status := int(library.cuDeviceGetCount(ctypes.byref(devices)))):
            return _failed("cuDeviceGetCount", status)
    except AttributeError as missing:
        return CudaProbe(DriverState.ERROR, failure=DriverError(str(missing), 0, "not a CUDA driver"))
    return CudaProbe(DriverState.PRESENT, version.value, devices.value)


def _failed(call: str, status: int) -> CudaProbe:
    return CudaProbe(DriverState.ERROR, failure=DriverError(call, status, "asked before the device was opened"))
