"""Scenes on the CUDA device, in a process whose driver is the fake one; one JSON document on standard output.

usage: scenario.py SCENE CACHE
"""

import ctypes
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from countermark.attestations.errors import CountermarkError
from countermark.cuda_restore.cuda_device import CudaDevice
from countermark.cuda_restore.cuda_probe import probe_cuda
from countermark.cuda_restore.device import Buffer, Event, ScatterStatus
from countermark.cuda_restore.page_digest import DigestKey, page_digests, page_table
from countermark.cuda_restore.selection import open_device
from countermark.cuda_restore.spans import SpanTable
from countermark.cuda_restore.staging import StagingRing, begin

PAGE = 256
PAGES = 32
PER_SLAB = 4
HEADER = 38  # as in a page stream: the first page begins at no round address
KEY = DigestKey(3, 5)

Report = dict[str, object]


class ForgetfulDevice(CudaDevice):
    """The real defect: a host that believes an event is done without waiting for it."""

    def wait(self, event: Event) -> None:
        assert event in self


def pages() -> NDArray[np.uint8]:
    return np.random.default_rng(1).integers(0, 256, (PAGES, PAGE), dtype=np.uint8)


def slots() -> NDArray[np.int64]:
    return np.random.default_rng(2).permutation(2 * PAGES)[:PAGES]


def place(device: CudaDevice, arena: Buffer, prerequisite: Event) -> ScatterStatus:
    """Restore all pages through two slots, acquired by another thread, as readers do."""
    ring = StagingRing(device, slots=2, payload_bytes=HEADER + PER_SLAB * PAGE, max_spans=PER_SLAB)
    with ThreadPoolExecutor(1) as reader, ring, begin(ring, arena, prerequisite=prerequisite) as placement:
        for first in range(0, PAGES, PER_SLAB):
            slot = reader.submit(ring.acquire).result()
            slot.payload[HEADER:] = pages()[first : first + PER_SLAB].ravel()
            source = HEADER + np.arange(PER_SLAB) * PAGE
            placement.submit(slot, SpanTable.of(source, slots()[first : first + PER_SLAB] * PAGE, np.full(PER_SLAB, PAGE)))
        return placement.finish().status


def restore(device: CudaDevice) -> Report:
    """Poison, restore, read back whole and by digest; count the pages that are wrong."""
    with device:
        compute, arena = device.new_stream(), device.allocate(2 * PAGES * PAGE)
        device.fill(arena, 0xA5, compute)
        status = place(device, arena, device.record(compute))
        placed = device.read(arena, 0, arena.size, compute)
        wanted = np.full((2 * PAGES, PAGE), 0xA5, np.uint8)
        wanted[slots()] = pages()
        table = page_table(np.arange(2 * PAGES) * PAGE, np.full(2 * PAGES, PAGE))
        digests = device.page_digests(arena, table, KEY, compute)
        return {
            "wrong_pages": int((placed.reshape(wanted.shape) != wanted).any(axis=1).sum()),
            "wrong_digests": int((digests != page_digests(wanted.ravel(), table, KEY)).any(axis=1).sum()),
            "status": [status.placed_bytes, status.rejected_rows, status.error],
            "device": [device.info.kind, device.info.name, device.info.driver, device.info.driver_version, device.info.sm],
            "digests": [device.info.kernel_source_sha256, device.info.cubin_sha256],
        }


def rejected(cache: Path) -> Report:
    """A destination at an odd address, as a view of another library can be, gets past the host, not past the kernel."""
    with CudaDevice(cache=cache) as device:
        compute, arena = device.new_stream(), device.allocate(PAGE)
        device.fill(arena, 0xA5, compute)
        ring = StagingRing(device, slots=1, payload_bytes=PAGE, max_spans=2)
        view = Buffer(arena.handle + 8, arena.size - 8)
        with ring, begin(ring, view, prerequisite=device.record(compute)) as placement:
            placement.submit(ring.acquire(), SpanTable.of([0, 32], [16, 80], [16, 16]))
            status = placement.finish().status
        untouched = bool((device.read(arena, 0, PAGE, compute) == 0xA5).all())
        return {"status": [status.placed_bytes, status.rejected_rows, status.error], "untouched": untouched}


def failures(cache: Path) -> Report:
    """Every driver call of a restore fails once; what was raised, and what the driver still holds afterwards."""
    driver = ctypes.CDLL("libcuda.so.1")
    driver.fake_cuda_calls.restype = ctypes.c_char_p
    driver.fake_cuda_reset()
    restore(CudaDevice(cache=cache))
    calls = driver.fake_cuda_calls().decode().split(",")
    report: list[Report] = []
    for number, name in enumerate(calls, start=1):
        driver.fake_cuda_reset()
        os.environ["FAKE_CUDA_FAIL"] = str(number)
        try:
            restore(CudaDevice(cache=cache))
            raised = ["nothing", "", ""]
        except CountermarkError as error:
            raised = [type(error).__name__, str(getattr(error, "call", "")), error.code]
        finally:
            del os.environ["FAKE_CUDA_FAIL"]
        report.append({"call": name, "raised": raised, "live": driver.fake_cuda_live()})
        driver.fake_cuda_forget()
    return {"calls": report}


def absence() -> Report:
    """What the probe says, and what asking for the device raises."""
    probe = probe_cuda()
    state = [probe.driver, probe.driver_version, probe.devices]
    ctypes.CDLL("libcuda.so.1").fake_cuda_reset()
    try:
        open_device("cuda:1" if probe.devices else "cuda")
    except CountermarkError as error:
        return {"probe": state, "raised": [error.code, int(error.exit), error.message]}
    return {"probe": state, "raised": []}


def main(scene: str, folder: str) -> None:
    cache = Path(folder)
    scenes = {
        "restore": lambda: restore(CudaDevice(cache=cache)),
        "forgetful": lambda: restore(ForgetfulDevice(cache=cache)),
        "small-tiles": lambda: restore(CudaDevice(cache=cache, tile_bytes=48, block_threads=7)),
        "rejected": lambda: rejected(cache),
        "failures": lambda: failures(cache),
        "absence": absence,
    }
    report = scenes[scene]()
    live = ctypes.CDLL("libcuda.so.1").fake_cuda_live()
    json.dump(report | {"live": live}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
