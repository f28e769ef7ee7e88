"""`make bench-ledger`: what a ledger takes for its work, each beside its floor and, where there is one, a peer, in the same run."""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.ledger import append, bulk, exports, gate, reads
from benchmarks.ledger.rows import Row
from benchmarks.ledger.world import fill
from countermark.actions.init import initialise

WORKS = ("append", "import", "audit", "proofs", "look-ups", "export", "gate")


def main() -> int:
    """Measure, and print a row as soon as it is known, or all of them as JSON."""
    options = _options()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        os.environ["XDG_STATE_HOME"] = f"{name}/state"
        rows = []
        for row in measured(Path(name), options):
            rows.append(row)
            if not options.json:
                sys.stdout.write(f"{row}\n")
                sys.stdout.flush()
    if options.json:
        sys.stdout.write(json.dumps({"cores": os.cpu_count(), "rows": [row.to_json() for row in rows]}) + "\n")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-ledger BENCH_ARGS=…", description=__doc__)
    parser.add_argument("--imported", type=int, default=20_000, help="envelopes of the import; the budget is for 100,000")
    parser.add_argument("--entries", type=int, default=20_000, help="entries of the ledger that is read; the budget is for 1,000,000")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--each", type=int, default=60, help="appends in a round")
    parser.add_argument("--only", choices=WORKS, action="append", help="one kind of work; may be repeated")
    parser.add_argument("--folder", help="where the ledgers lie meanwhile; default: the system's folder for such")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def measured(folder: Path, options: argparse.Namespace) -> Iterator[Row]:
    """The rows of every kind of work that is asked for."""
    works = options.only or WORKS
    if "append" in works:
        yield from append.measure(folder, options.rounds, options.each)
    if "import" in works:
        yield from bulk.measure(folder, options.imported)
    if not set(WORKS[2:]) & set(works):
        return
    workspace = initialise(folder / "read").workspace
    fill(workspace, options.entries)
    if "audit" in works:
        yield from reads.audits(workspace, options.entries)
    if "proofs" in works:
        yield from reads.proofs(folder, workspace, options.entries, options.rounds)
    if "look-ups" in works:
        yield from reads.look_ups(folder, workspace, options.entries, options.rounds)
    if "export" in works:
        yield from exports.measure(folder, workspace, options.entries)
    if "gate" in works:
        yield from gate.measure(folder, workspace, options.entries, options.rounds)


if __name__ == "__main__":
    sys.exit(main())
