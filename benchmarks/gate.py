"""The gate over a large ledger: process start to exit beside its bare imports in turn, and warm in one process."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from countermark.actions.appending import sign, submission
from countermark.actions.clock import now
from countermark.actions.gate import Asked, gate
from countermark.actions.init import initialise
from countermark.actions.workspace import Workspace, open_writer
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.located import JsonValue
from countermark.attestations.statement import Statement, Subject
from countermark.attestations.verifier import PolicyTrust, Verifier

TYPE = "https://in-toto.io/attestation/test-result/v0.1"
IMPORTS = "import typer, yaml, jsonschema, sqlite3; from cryptography.hazmat.primitives.asymmetric import ed25519"
BATCH = 1000


def main() -> int:
    """Build the ledger, measure, and print one table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_STATE_HOME"] = f"{name}/state"
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        workspace = initialise(Path(name) / "box").workspace
        fill(workspace, options.entries)
        result = measure(workspace, options.rounds)
    if options.json:
        sys.stdout.write(json.dumps(result) + "\n")
        return 0
    for label, value in result.items():
        sys.stdout.write(f"{label:<28} {value:.3f}\n")
    return 0


def fill(workspace: Workspace, entries: int) -> None:
    """Append test results of as many images, in batches."""
    signer, verifier = workspace.signer("builder", None), Verifier(PolicyTrust(workspace.trust()))
    with open_writer(workspace) as writer:
        for start in range(0, entries, BATCH):
            batch = [sign(statement(n), signer) for n in range(start, min(start + BATCH, entries))]
            writer.append([submission(verifier.verify(envelope, at=now())) for envelope in batch])


def statement(number: int) -> Statement:
    """A passing test result of image `number`."""
    passed: list[JsonValue] = [f"test {n} of {number}" for n in range(20)]
    return Statement((Subject.of(image(number)),), TYPE, {"result": "PASSED", "configuration": [], "passedTests": passed})


def image(number: int) -> Digest:
    """The digest of image `number`."""
    return Digest.of(DigestKind.OCI_MANIFEST, b"image %d" % number)


def measure(workspace: Workspace, rounds: int) -> dict[str, float]:
    """Medians in seconds over rounds taken in turn, and their ratio."""
    program = Path(sys.executable).with_name("countermark")
    ask = [str(program), "gate", str(image(7)), "--require", "service.startup", "--ledger", str(workspace.ledger), "--quiet"]
    bare = [sys.executable, "-c", IMPORTS]
    for command in (ask, bare):
        wall(command)
    pairs = [(wall(ask), wall(bare)) for _ in range(rounds)]
    warm = [in_process(workspace) for _ in range(rounds + 1)][1:]
    return {
        "gate, start to exit (s)": statistics.median(pair[0] for pair in pairs),
        "bare imports (s)": statistics.median(pair[1] for pair in pairs),
        "gate / bare imports": statistics.median(pair[0] / pair[1] for pair in pairs),
        "warm, in process (ms)": 1000 * statistics.median(warm),
    }


def wall(command: Sequence[str]) -> float:
    """Seconds that a process takes from start to exit."""
    start = time.perf_counter()
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def in_process(workspace: Workspace) -> float:
    """Seconds of one decision in a process that is warm."""
    start = time.perf_counter()
    gate(workspace, Asked((str(image(7)),), requires=("service.startup",)))
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
