"""A device check as text."""

from collections.abc import Iterator

from benchmarks.device.copies import Kernel
from benchmarks.device.report import Report
from benchmarks.device.restores import Restores
from benchmarks.restore.machine import machine_line
from countermark.cuda_restore.device import DeviceKind

REFERENCE_GB_PER_S = 6.2


def report_lines(found: Report) -> Iterator[str]:
    """All parts."""
    device = found.device
    if device.kind is DeviceKind.SIMULATED:
        yield "SIMULATED DRIVER: what follows shows that the check works. None of it is a figure of a GPU."
    yield f"{device.name}, sm_{device.sm}, CUDA driver {device.driver_version}"
    yield f"kernel source {device.kernel_source_sha256}, cubin {device.cubin_sha256}"
    yield machine_line(found.machine)
    yield from _right(found)
    for copy in found.copies:
        figures = f"skipped: {copy.skipped}" if copy.skipped else f"{copy.ms:>9.3f} ms {copy.gb_per_s:>8.1f} GB/s"
        yield f"  {copy.slab_bytes:,} bytes to the device, {copy.name:<32}{figures}"
    for one in found.restores:
        yield from _restores(one)
    yield from _kernels(found.kernels)
    yield f"took {found.seconds:.0f} s; left out: {', '.join(found.left_out) or 'nothing'}"


def _right(found: Report) -> Iterator[str]:
    for one in found.correctness:
        pages = "every page as stored" if one.pages_as_stored else "PAGES ARE NOT AS STORED"
        beside = f"{one.bytes_unlike_cpu:,} of {one.arena_bytes:,} bytes unlike the CPU device"
        yield f"  {one.encoded_bytes:,} bytes in {one.objects} objects: {pages}; {beside}"
    if found.ladder:
        yield "  ladder: " + ", ".join(f"{rung} {said}" for rung, said in found.ladder.rungs.items())
        yield f"  {found.ladder.controls} faults injected, unnoticed: {', '.join(found.ladder.missed) or 'none'}"


def _restores(one: Restores) -> Iterator[str]:
    limits = f"host {one.host_limit_ms:.1f} ms, copy {one.copy_limit_ms:.1f} ms"
    yield f"  restore of {one.objects} objects: {one.ms:.1f} ms, {one.gb_per_s:.2f} GB/s (reference {REFERENCE_GB_PER_S}); limit {limits}"
    yield f"    limit by ours {one.limit_ratio:.3f} (goal 0.9), slot wait {one.slot_wait_share:.1%} (goal under 5 %)"
    total = max(one.timing_us["total"], 1)
    for name, spent in one.timing_us.items():
        share = "" if name.startswith("readers_") else f"{spent / total:>8.1%}"
        yield f"    {name:<20}{spent / 1000:>9.1f} ms{share}"


def _kernels(kernels: list[Kernel]) -> Iterator[str]:
    for long_spans in (False, True):
        rows = [one for one in kernels if one.long_spans is long_spans]
        if rows:
            yield f"  kernel over {'four long spans' if long_spans else 'pages of 64 KiB'}, by threads a block and bytes a tile:"
        for one in rows:
            yield f"    {one.block_threads:>5} {one.tile_bytes:>11,} {one.ms:>10.3f} ms {one.gb_per_s:>9.1f} GB/s"
