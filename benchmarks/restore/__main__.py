"""Measure a restore beside its limit and its peers, all in turn and in one run.

The data set is generated in a temporary folder and removed. Warm rounds have every file in the page cache; cold rounds come after them,
where the kernel lets a file be dropped from it.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path

from benchmarks.restore import page_cache
from benchmarks.restore.contender import Contender
from benchmarks.restore.contenders import COSTS, DISK, OURS, ROWS
from benchmarks.restore.dataset import OBJECT_BYTES, WHOLE_BYTES, DataSet, generate
from benchmarks.restore.machine import described, machine_line
from benchmarks.restore.report import Limit, SetReport, State
from benchmarks.restore.rounds import measure
from benchmarks.restore.table import set_lines
from benchmarks.restore.worker import Worker
from countermark.attestations.errors import CannotTellError, CountermarkError

_ALIGNMENT_BYTES = 64
_RESIDENT_MAX = 0.01


def main() -> int:
    """Measure, and print one report."""
    options = _options()
    machine = described()
    sets = [one for name in options.sets for one in _set(name, options)]
    if options.json:
        loads = [round(load, 2) for load in os.getloadavg()]
        document = {"machine": asdict(machine), "load_average": loads, "sets": [asdict(one) for one in sets]}
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
        return 0
    sys.stdout.write(machine_line(machine) + "\n")
    for one in sets:
        sys.stdout.write("\n" + "\n".join(set_lines(one)) + "\n")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.restore", description=__doc__)
    parser.add_argument("--bytes", type=int, default=WHOLE_BYTES, help=f"bytes of the snapshot (default {WHOLE_BYTES:,})")
    parser.add_argument("--sets", nargs="+", choices=OBJECT_BYTES, default=[*OBJECT_BYTES], help="13 macro objects, 512 chunks, or both")
    parser.add_argument("--rounds", type=int, default=7, help="warm rounds to keep")
    parser.add_argument("--patience", type=int, default=21, help="warm rounds to measure at most while others use the machine")
    parser.add_argument("--quiet", type=float, default=0.05, help="the share of the cores that others may take in a quiet round")
    parser.add_argument("--cold-rounds", type=int, default=3, help="cold rounds; 0 leaves them out")
    parser.add_argument("--folder", type=Path, help="where to make the temporary folder (needs twice the bytes)")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _set(name: str, options: argparse.Namespace) -> Iterator[SetReport]:
    object_bytes = -(-OBJECT_BYTES[name] * options.bytes // WHOLE_BYTES // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
    with tempfile.TemporaryDirectory(prefix="countermark-bench-", dir=options.folder) as folder:
        data = generate(Path(folder) / name, options.bytes, object_bytes)
        with ExitStack() as running:
            skipped: dict[str, str] = {}
            workers = [worker for one in (COSTS, DISK, *ROWS) for worker in _started(one, data, running, skipped)]
            found = _warm(workers, data, skipped, options)
            yield found
            if options.cold_rounds:
                yield from _cold(workers, data, skipped, found.limit, options.cold_rounds)


def _started(one: Contender, data: DataSet, running: ExitStack, skipped: dict[str, str]) -> Iterator[Worker]:
    try:
        yield running.enter_context(Worker(one.name, data.root))
    except CannotTellError as error:
        if one in (COSTS, DISK, OURS):
            raise
        skipped[one.name] = error.message


def _warm(workers: Sequence[Worker], data: DataSet, skipped: dict[str, str], options: argparse.Namespace) -> SetReport:
    warm = partial(page_cache.warm, data.files)
    warm()
    state = _state(data, "warm")
    running = [worker for worker in workers if worker.name != DISK.name]
    rounds = measure(running, keep=options.rounds, patience=options.patience, quiet=options.quiet, prepare=warm)
    return SetReport.warm(state, rounds, skipped)


def _cold(workers: Sequence[Worker], data: DataSet, skipped: dict[str, str], limit: Limit, count: int) -> Iterator[SetReport]:
    drop = partial(page_cache.drop, data.files)
    drop()
    state = _state(data, "cold")
    if state.resident_share > _RESIDENT_MAX:
        sys.stderr.write(f"no cold rounds: {state.resident_share:.0%} of the files stayed in the page cache\n")
        return
    running = [worker for worker in workers if worker.name != COSTS.name]
    rounds = measure(running, keep=count, patience=count, quiet=0.0, prepare=drop)
    yield SetReport.cold(state, rounds, skipped, limit)


def _state(data: DataSet, name: str) -> State:
    return State(data.encoded_bytes, len(data.objects), name, page_cache.resident_share(data.files))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CountermarkError as stopped:
        sys.stderr.write(f"{stopped}\n")
        sys.exit(stopped.exit)
