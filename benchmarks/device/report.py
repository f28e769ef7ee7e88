"""What a device check found."""

from dataclasses import dataclass, field

from benchmarks.device.climb import Ladder
from benchmarks.device.copies import Copy, Kernel
from benchmarks.device.restores import Correctness, Restores
from benchmarks.restore.machine import Machine
from countermark.cuda_restore.device import DeviceInfo


@dataclass(slots=True)
class Report:
    """The parts that were run, in their order; `left_out` names those for which there was no time."""

    device: DeviceInfo
    machine: Machine
    correctness: list[Correctness] = field(default_factory=list)
    ladder: Ladder | None = None
    copies: list[Copy] = field(default_factory=list)
    restores: list[Restores] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def right(self) -> bool:
        """Whether nothing that was looked at is wrong, and something was."""
        same = all(one.pages_as_stored and not one.bytes_unlike_cpu for one in self.correctness)
        rungs = self.ladder is None or not (self.ladder.missed or any(said.startswith("fail") for said in self.ladder.rungs.values()))
        return bool(self.correctness) and same and rungs
