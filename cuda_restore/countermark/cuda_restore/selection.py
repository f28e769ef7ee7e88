"""Which device a user means by `--device` or by a plan's `device:`; never another one than that."""

import re
from typing import Final

from countermark.attestations.codes import Code
from countermark.attestations.errors import UsageError
from countermark.cuda_restore.cpu_device import CpuDevice, Deferral
from countermark.cuda_restore.cuda_device import CudaDevice
from countermark.cuda_restore.cuda_probe import probe_cuda
from countermark.cuda_restore.device import Device

_NAME: Final = re.compile(r"cpu(?::(?P<deferral>lazy|eager|random(?::(?P<seed>\d{1,9}))?))?|cuda(?::(?P<ordinal>\d{1,4}))?")


def open_device(name: str) -> Device:
    """Open `cpu`, `cpu:lazy`, `cpu:eager`, `cpu:random[:SEED]` or `cuda[:N]`; plain `cpu` is lazy.

    `UsageError` for another name. Without the device asked for: `CannotTellError` DEVICE_ABSENT (exit 4), never a fallback.
    """
    match = _NAME.fullmatch(name)
    if not match:
        raise UsageError(Code.UNKNOWN_NAME, f"{name!r} is no device", fix="ask for cpu, cpu:lazy, cpu:eager, cpu:random:SEED or cuda:N")
    if name.startswith("cuda"):
        return CudaDevice(int(match["ordinal"] or 0))
    deferral = Deferral((match["deferral"] or "lazy").partition(":")[0])
    return CpuDevice(deferral, seed=int(match["seed"] or 0), driver=probe_cuda().driver)
