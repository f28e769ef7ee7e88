"""Durable appends, one a transaction: ours beside raw sqlite3 with the same durability, and pymerkle, in turn and in one run.

Ours verifies the signature, derives rows, extends the tree and signs a checkpoint; raw sqlite3 writes one row of the same bytes with a
digest index. The three take turns in rounds, so that a noisy machine is noisy to all of them; medians and ratios are printed.
"""

import argparse
import hashlib
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pymerkle import SqliteTree

from countermark.actions.appending import sign, submission
from countermark.actions.clock import now
from countermark.actions.init import initialise
from countermark.actions.workspace import open_writer
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.located import JsonValue
from countermark.attestations.statement import Statement, Subject
from countermark.attestations.verifier import PolicyTrust, Verifier

T = TypeVar("T")
TYPE = "https://in-toto.io/attestation/test-result/v0.1"


def main() -> int:
    """Run the rounds and print one table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--each", type=int, default=60, help="appends of each kind in a round")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_STATE_HOME"] = f"{name}/state"
        rates = measure(Path(name), options.rounds, options.each)
    result = {kind: round(statistics.median(values), 1) for kind, values in rates.items()}
    ratios = {kind: round(statistics.median(a / b for a, b in zip(rates["countermark"], rates[kind], strict=True)), 3) for kind in rates}
    if options.json:
        sys.stdout.write(json.dumps({"appends_per_s": result, "countermark_divided_by": ratios}) + "\n")
        return 0
    for kind, rate in result.items():
        sys.stdout.write(f"{kind:<14} {rate:>9.1f} appends/s   countermark/{kind} = {ratios[kind]:.3f}\n")
    return 0


def measure(folder: Path, rounds: int, each: int) -> dict[str, list[float]]:
    """Appends a second of each kind, one figure a round; the first round warms up and is dropped."""
    workspace = initialise(folder / "box").workspace
    signer, verifier = workspace.signer("builder", None), Verifier(PolicyTrust(workspace.trust()))
    envelopes = [sign(_statement(n), signer) for n in range((rounds + 1) * each)]
    raw, tree = _raw(folder / "raw.db"), SqliteTree(str(folder / "pymerkle.db"))
    rates: dict[str, list[float]] = {"countermark": [], "raw sqlite3": [], "pymerkle": []}
    with open_writer(workspace) as writer:
        for number in range(rounds + 1):
            batch = envelopes[number * each : (number + 1) * each]
            payloads = [envelope.payload for envelope in batch]
            timed = {
                "countermark": _rate(batch, lambda item: writer.append([submission(verifier.verify(item, at=now()))])),
                "raw sqlite3": _rate(payloads, raw),
                "pymerkle": _rate(payloads, tree.append_entry),
            }
            if number:
                for kind, rate in timed.items():
                    rates[kind].append(rate)
    return rates


def _rate(items: list[T], act: Callable[[T], object]) -> float:
    start = time.perf_counter()
    for item in items:
        act(item)
    return len(items) / (time.perf_counter() - start)


def _raw(path: Path) -> Callable[[bytes], None]:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA page_size = 8192")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE entry (idx INTEGER PRIMARY KEY, sha256 BLOB UNIQUE, data BLOB) STRICT")

    def append(payload: bytes) -> None:
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO entry (sha256, data) VALUES (?, ?)", (hashlib.sha256(payload).digest(), payload))
        db.execute("COMMIT")

    return append


def _statement(number: int) -> Statement:
    image = Digest.of(DigestKind.OCI_MANIFEST, b"image %d" % number)
    passed: list[JsonValue] = [f"test {n} of {number}" for n in range(40)]
    predicate: dict[str, JsonValue] = {"result": "PASSED", "configuration": [], "passedTests": passed}
    return Statement((Subject.of(image),), TYPE, predicate)


if __name__ == "__main__":
    sys.exit(main())
