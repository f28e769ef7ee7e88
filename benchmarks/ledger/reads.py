"""Reading a large ledger: audits, proofs and look-ups, all over one that was filled once."""

import hashlib
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from pymerkle import SqliteTree

from benchmarks.ledger.rows import Row, each, in_turn, portions, whole
from benchmarks.ledger.world import BATCH, image, plain_table, statement
from countermark.actions.audit import Extent, audit_ledger
from countermark.actions.cores import cores
from countermark.actions.workspace import Workspace, open_reader
from countermark.attestations.codes import ExitCode
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.envelope import PAYLOAD_TYPE, pae
from countermark.attestations.keys import PublicKey
from countermark.ledger.merkle import Frontier, leaf_hash
from countermark.ledger.read import LedgerReader

_SAMPLE: Final = 200


def audits(workspace: Workspace, entries: int) -> list[Row]:
    """The whole audit beside its signatures and hashes alone; then hashes alone; then what was added since a size that was audited."""
    signed = _signed(workspace, entries)
    key = workspace.signer("builder", None).public
    hashing = whole(lambda: _hash(signed))
    verifying = whole(lambda: _verify(signed, key))
    held = entries - entries // 10
    return [
        Row.of(f"audit of {entries:,}", [_audit(workspace, Extent())], "signatures on all cores, hashes", [verifying + hashing], goal=1.4),
        Row.of(f"audit of {entries:,}, hashes alone", [_audit(workspace, Extent(signatures=False))], "hashes", [hashing]),
        Row.of(
            f"audit of the newest {entries // 10:,}",
            [_audit(workspace, Extent(since=held))],
            "a tenth of the whole audit's floor",
            [(verifying + hashing) / 10],
            goal=1.4,
        ),
    ]


def proofs(folder: Path, workspace: Workspace, entries: int, rounds: int) -> list[Row]:
    """One inclusion and one consistency proof, each from a ledger opened anew, and from one that is open; pymerkle's open."""
    peer = SqliteTree(str(folder / "proofs-pymerkle.db"))
    for start in range(0, entries, BATCH):
        peer.append_entries([statement(number).encode() for number in range(start, min(start + BATCH, entries))])
    place = random.Random(1)  # noqa: S311  # which entries are asked for is no secret
    with open_reader(workspace) as reader:
        size = reader.head.size
        cold, warm, theirs, growth = in_turn(
            rounds,
            lambda: whole(lambda: _prove_cold(workspace, place.randrange(size))),
            lambda: each([place.randrange(size) for _ in range(_SAMPLE)], reader.prove),
            lambda: each([place.randrange(1, entries) for _ in range(5)], peer.prove_inclusion),
            lambda: each([place.randrange(1, size) for _ in range(_SAMPLE)], reader.prove_growth),
        )
    return [
        Row.of(f"inclusion proof at {entries:,}, cold", cold, "pymerkle, warm", theirs),
        Row.of(f"inclusion proof at {entries:,}, warm", warm, "pymerkle, warm", theirs),
        Row.of(f"consistency proof at {entries:,}, warm", growth, "pymerkle's inclusion, warm", theirs),
    ]


def look_ups(folder: Path, workspace: Workspace, entries: int, rounds: int) -> list[Row]:
    """The entries of a subject, beside a point query of a plain table."""
    table = plain_table(folder / "lookups-raw.db")
    rows = [(bytes.fromhex(image(number).hex), b"") for number in range(entries)]
    table.execute("BEGIN IMMEDIATE")
    table.executemany("INSERT INTO entry (sha256, data) VALUES (?, ?)", rows)
    table.execute("COMMIT")
    place = random.Random(2)  # noqa: S311  # as above
    query = "SELECT idx FROM entry WHERE sha256 = ?"

    def sample() -> list[Digest]:
        return [image(place.randrange(entries)) for _ in range(_SAMPLE)]

    with open_reader(workspace) as reader:
        ours, plain = in_turn(
            rounds,
            lambda: each(sample(), lambda digest: _found(reader, digest)),
            lambda: each(sample(), lambda digest: table.execute(query, (bytes.fromhex(digest.hex),)).fetchall()),
        )
    return [Row.of(f"look-up by subject at {entries:,}", ours, "sqlite3 point query", plain)]


def _found(reader: LedgerReader, digest: Digest) -> tuple[int, ...]:
    found = reader.find_subject(DigestKind.OCI_MANIFEST, digest.hex)
    if not found:
        raise LookupError(f"{digest} is not found in a ledger that was filled with it")
    return found


def _audit(workspace: Workspace, extent: Extent) -> float:
    def act() -> None:
        report = audit_ledger(workspace, (), extent)
        if report.exit is not ExitCode.YES:
            raise LookupError(f"the audit of a sound ledger ends with {report.exit}")

    return whole(act)


def _prove_cold(workspace: Workspace, index: int) -> None:
    with open_reader(workspace) as reader:
        reader.prove(index)


def _signed(workspace: Workspace, entries: int) -> list[tuple[bytes, bytes]]:
    """The bytes and the signature of each test result, and of what stands beside them nothing."""
    with open_reader(workspace) as reader:
        found = [reader.entry(index) for index in range(1, entries + 1)]
    return [(entry.payload, entry.leaf.signatures[0].signature) for entry in found]


def _verify(signed: Sequence[tuple[bytes, bytes]], key: PublicKey) -> None:
    with ThreadPoolExecutor(cores()) as pool:
        list(pool.map(lambda batch: [key.verify(pae(PAYLOAD_TYPE, data), sig) for data, sig in batch], portions(signed, BATCH)))


def _hash(signed: Sequence[tuple[bytes, bytes]]) -> bytes:
    """The payloads, and a tree over leaves of the usual size."""
    frontier = Frontier()
    for data, _ in signed:
        frontier = frontier.push(leaf_hash(hashlib.sha256(data).digest() * 7))
    return frontier.root()
