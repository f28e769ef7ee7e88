"""The machine in general terms, and how much of it others took while something was measured."""

import os
import platform
import ssl
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

_STAT, _CPUINFO, _MEMINFO = Path("/proc/stat"), Path("/proc/cpuinfo"), Path("/proc/meminfo")


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True)
class Machine:
    """What a table says about where it was measured; no name of the host. `sha_instructions` are the processor's own for SHA-256."""

    processor: str
    cores: int
    memory_gib: int
    kernel: str
    sha_instructions: bool
    python: str
    openssl: str
    numpy: str


def described() -> Machine:
    """This machine."""
    return Machine(
        processor=_field(_CPUINFO, "model name") or platform.machine(),
        cores=cores(),
        memory_gib=round(int(_field(_MEMINFO, "MemTotal").removesuffix(" kB") or 0) / 2**20),
        kernel=f"{platform.system()} {platform.release().split('-')[0]} {platform.machine()}",
        sha_instructions="sha_ni" in _field(_CPUINFO, "flags").split() or "sha2" in _field(_CPUINFO, "Features").split(),
        python=platform.python_version(),
        openssl=" ".join(ssl.OPENSSL_VERSION.split()[:2]),
        numpy=np.__version__,
    )


def machine_line(found: Machine) -> str:
    """The machine in one line, and its load now."""
    sha = "with" if found.sha_instructions else "without"
    hardware = f"{found.processor}, {found.cores} cores {sha} SHA instructions, {found.memory_gib} GiB"
    software = f"{found.kernel}, Python {found.python}, {found.openssl}, numpy {found.numpy}"
    return f"{hardware}; {software}; load average {' '.join(f'{load:.2f}' for load in os.getloadavg())}"


@dataclass(frozen=True, slots=True)
class Usage:
    """Processor time of the whole machine up to a moment; zero where it is not told."""

    at_ns: int
    busy_ns: int

    @classmethod
    def now(cls) -> Self:
        """Busy is whatever was not idle and not waiting for a disk; time that a hypervisor gave to others counts as busy."""
        if not _STAT.exists():
            return cls(time.perf_counter_ns(), 0)
        user, nice, system, idle, wait, irq, soft, steal = map(int, _STAT.read_text().split(maxsplit=9)[1:9])
        del idle, wait
        return cls(time.perf_counter_ns(), (user + nice + system + irq + soft + steal) * 1_000_000_000 // os.sysconf("SC_CLK_TCK"))

    def others_ns(self, own_cpu_ns: int) -> int:
        """What others took since then, when this run took `own_cpu_ns`."""
        return max(Usage.now().busy_ns - self.busy_ns - own_cpu_ns, 0)


def _field(path: Path, name: str) -> str:
    """The first value of a field in a file of `name : value` lines."""
    lines = path.read_text().splitlines() if path.exists() else []
    return next((value.strip() for line in lines for key, _, value in [line.partition(":")] if key.strip() == name), "")
