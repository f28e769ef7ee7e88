"""What a GPU does with the engine, in under eight minutes: is it right, does the ladder hold on it, how fast is it, and beside what.

Without a device it says so and exits 4. Everything is generated in a temporary folder and removed. A part that would begin after the
time is up is named as left out. Exit 1 means that something was wrong, not slow.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from benchmarks.device import copies, restores
from benchmarks.device.climb import climb
from benchmarks.device.report import Report
from benchmarks.device.table import report_lines
from benchmarks.device.timed import TimedDevice
from benchmarks.restore.dataset import OBJECT_BYTES, WHOLE_BYTES, DataSet, generate
from benchmarks.restore.machine import described
from countermark.attestations.errors import CannotTellError, CountermarkError
from countermark.cuda_restore.cuda_device import CudaDevice
from countermark.cuda_restore.cuda_probe import probe_cuda

_ALIGNMENT_BYTES = 64


def main() -> int:
    """Check, and print one report."""
    options = _options()
    probe_cuda().demand(options.device)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="countermark-device-", dir=options.folder) as folder, CudaDevice(options.device) as device:
        report = Report(device.info, described())
        for name, part in _parts(Path(folder), device, report, options):
            if time.monotonic() - begun > options.seconds:
                report.left_out.append(name)
            else:
                sys.stderr.write(f"{time.monotonic() - begun:5.0f} s  {name}\n")
                part()
    report.seconds = time.monotonic() - begun
    sys.stdout.write(json.dumps(asdict(report), indent=2) + "\n" if options.json else "\n".join(report_lines(report)) + "\n")
    return 0 if report.right else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.device_check", description=__doc__)
    parser.add_argument("--device", type=int, default=0, help="the number of the CUDA device")
    parser.add_argument("--bytes", type=int, default=WHOLE_BYTES, help=f"bytes of the snapshot (default {WHOLE_BYTES:,})")
    parser.add_argument("--slab-bytes", type=int, default=copies.SLAB_BYTES, help="bytes of one copy")
    parser.add_argument("--repeats", type=int, default=7, help="restores to time of each data set")
    parser.add_argument("--seconds", type=int, default=420, help="no part begins later than this")
    parser.add_argument("--folder", type=Path, help="where to make the temporary folder (needs twice the bytes)")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _parts(folder: Path, device: CudaDevice, report: Report, options: argparse.Namespace) -> list[tuple[str, Callable[[], None]]]:
    """What there is to do, the most telling first."""
    data: dict[str, DataSet] = {}

    def check(name: str) -> None:
        object_bytes = -(-OBJECT_BYTES[name] * options.bytes // WHOLE_BYTES // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        data[name] = generate(folder / name, options.bytes, object_bytes)
        report.correctness.append(restores.check(data[name], device))

    def copy() -> None:
        with TimedDevice(options.device) as timed:
            report.copies.extend(copies.copies(timed, options.slab_bytes))

    def restore(name: str) -> None:
        if name in data and report.copies:
            report.restores.append(restores.measure(data[name], device, report.copies[0].gb_per_s, options.repeats))

    def ladder() -> None:
        report.ladder = climb(folder / "oracle", f"cuda:{options.device}")

    def sweep() -> None:
        report.kernels.extend(copies.sweep(options.device, options.slab_bytes))

    return [
        ("correctness of macro objects", lambda: check("macro")),
        ("copies", copy),
        ("restores of macro objects", lambda: restore("macro")),
        ("correctness of chunks", lambda: check("chunk")),
        ("restores of chunks", lambda: restore("chunk")),
        ("blocks and tiles", sweep),
        ("ladder", ladder),
    ]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CannotTellError as absent:
        sys.stderr.write(f"device-check: {absent}\nNothing was measured.\n")
        sys.exit(absent.exit)
    except CountermarkError as stopped:
        sys.stderr.write(f"device-check: {stopped}\n")
        sys.exit(stopped.exit)
