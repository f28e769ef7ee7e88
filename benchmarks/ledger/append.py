"""One durable append at a time: a statement verified, written, signed over."""

from collections.abc import Iterator
from pathlib import Path

from pymerkle import SqliteTree

from benchmarks.ledger.rows import Row, each, in_turn
from benchmarks.ledger.world import envelopes, insert, plain_table
from countermark.actions.appending import submission
from countermark.actions.clock import now
from countermark.actions.init import initialise
from countermark.actions.workspace import open_writer
from countermark.attestations.envelope import Envelope
from countermark.attestations.verifier import PolicyTrust, Verifier


def measure(folder: Path, rounds: int, count: int) -> list[Row]:
    """`count` appends of each kind in a round."""
    workspace = initialise(folder / "append").workspace
    verifier = Verifier(PolicyTrust(workspace.trust()))
    made = envelopes(workspace, 0, (rounds + 1) * count)
    raw, tree = insert(plain_table(folder / "append-raw.db")), SqliteTree(str(folder / "append-pymerkle.db"))
    turns = [_turns(made, count) for _ in range(3)]
    with open_writer(workspace) as writer:
        ours, plain, peer = in_turn(
            rounds,
            lambda: each(next(turns[0]), lambda item: writer.append([submission(verifier.verify(item, at=now()))])),
            lambda: each(next(turns[1]), lambda item: raw([item.payload])),
            lambda: each(next(turns[2]), lambda item: tree.append_entry(item.payload)),
        )
    work = "append, one at a time"
    return [
        Row.of(work, ours, "one row a transaction, sqlite3", plain, goal=1 / 0.3),
        Row.of(work, ours, "pymerkle append", peer, goal=1.0),
    ]


def _turns(made: list[Envelope], count: int) -> Iterator[list[Envelope]]:
    return (made[start : start + count] for start in range(0, len(made), count))
