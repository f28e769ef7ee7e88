"""The predicate `restore-run/v1` of a climb: what ran, on which device, what each rank and rung came to, and the digest of the trace."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final

from countermark.attestations.codes import Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.located import JsonValue
from countermark.cuda_restore.device import DeviceInfo, DeviceKind
from countermark.cuda_restore.kernel import kernel_source_sha256
from countermark.cuda_restore.ladder import Qualification
from countermark.cuda_restore.multirank import RankRun
from countermark.cuda_restore.result import StreamDigest
from countermark.cuda_restore.rungs import Rung

_WORTH: Final = (DeviceKind.CPU, DeviceKind.SIMULATED, DeviceKind.CUDA)
"""Kinds of device by what a run on them can show, the least first."""


@dataclass(frozen=True, slots=True)
class Engine:
    """This program: its version and the commit of its source."""

    source: Digest
    version: str

    @classmethod
    def installed(cls, source: Digest) -> "Engine":
        """The installed version, built from the commit `source`."""
        return cls(source, version("countermark"))


def restore_run(found: Qualification, engine: Engine) -> dict[str, JsonValue]:
    """The predicate. Its subject is the plan's image; without an image, the engine's source commit."""
    device = least_device(found.devices)
    answer: dict[str, JsonValue] = {"answer": found.answer} if found.answer else {}
    return {
        "engine": {
            "version": engine.version,
            "source": str(engine.source),
            "kernel_source_sha256": device.kernel_source_sha256 or kernel_source_sha256(),
            "cubin_sha256": device.cubin_sha256,
        },
        "device": _device(device),
        "tuple": _tuple(found, engine),
        "plan": str(found.plan.digest),
        "ranks": [_rank(found, run) for run in found.ranks.verdict.runs],
        "rungs": {str(rung): found.rungs[rung].to_json() for rung in Rung},
        **answer,
        "trace": {"events": sum(len(trace.events) for trace in found.traces), "digest": str(Digest.of(DigestKind.FILE, found.trace))},
        "outcome": str(found.outcome),
    }


def least_device(devices: Sequence[DeviceInfo]) -> DeviceInfo:
    """The device that bounds what a run over several can show."""
    return min(devices, key=lambda device: _WORTH.index(device.kind))


def _device(device: DeviceInfo) -> dict[str, JsonValue]:
    known: dict[str, JsonValue] = {}
    if device.sm is not None:
        known["sm"] = f"sm_{device.sm}"
    if device.driver_version is not None:
        known["driver_version"] = str(device.driver_version)
    return {"kind": str(device.kind), "name": device.name, "driver": str(device.driver), **known}


def _tuple(found: Qualification, engine: Engine) -> dict[str, JsonValue]:
    used: dict[str, JsonValue] = {"source": str(engine.source)}
    if found.plan.image:
        used["image"] = str(found.plan.image)
    if found.signed:
        root = found.signed.root
        used["snapshot"] = str(found.signed.payload)
        used |= {name: one.to_json() for name, one in (("model", root.model), ("draft", root.draft)) if one}
    return used


def _rank(found: Qualification, run: RankRun) -> dict[str, JsonValue]:
    """A rank whose pages or stream are not what was stored is structurally failed, whatever the engine counted."""
    bad = run.result.rank in found.ranks.bad_ranks
    known = StreamDigest.WAIVED if bad else StreamDigest.VERIFIED
    told = run.result.to_json(image=run.image, stream_digest=known, waiver="what was read back is not what is stored" if bad else None)
    return told | ({"structural": str(Outcome.FAIL)} if bad else {})
