"""A ledger of test results, each of an image of its own, and the plain tables that it is measured beside."""

import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from countermark.actions.appending import sign, submission
from countermark.actions.clock import now
from countermark.actions.workspace import Workspace, open_writer
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.envelope import Envelope
from countermark.attestations.located import JsonValue
from countermark.attestations.predicate_types import TEST_RESULT, PredicateName
from countermark.attestations.statement import Statement, Subject
from countermark.attestations.verifier import PolicyTrust, Verifier

BATCH = 1000


def image(number: int) -> Digest:
    """The digest of image `number`."""
    return Digest.of(DigestKind.OCI_MANIFEST, b"image %d" % number)


def statement(number: int) -> Statement:
    """A passing test result of image `number`, of about a kilobyte."""
    passed: list[JsonValue] = [f"test {n} of {number}" for n in range(40)]
    return Statement((Subject.of(image(number)),), TEST_RESULT, {"result": "PASSED", "configuration": [], "passedTests": passed})


def envelopes(workspace: Workspace, start: int, stop: int) -> list[Envelope]:
    """The test results of these images, signed."""
    signer = workspace.signer("builder", None)
    return [sign(statement(number), signer) for number in range(start, stop)]


def fill(workspace: Workspace, entries: int) -> None:
    """Append the test results of as many images, in batches."""
    verifier = Verifier(PolicyTrust(workspace.trust()))
    with open_writer(workspace) as writer:
        for start in range(0, entries, BATCH):
            batch = envelopes(workspace, start, min(start + BATCH, entries))
            writer.append([submission(verifier.verify(envelope, at=now())) for envelope in batch])


def reject_others(workspace: Workspace, count: int) -> None:
    """Append as many rejections, each of an image that nobody asks about."""
    signer, predicate = workspace.signer("qualifier", None), PredicateName.REJECTION.uri
    said: dict[str, JsonValue] = {"scope": "image-wide", "reason": "the answer was wrong", "rests_on": [], "observed_time": None}
    verifier = Verifier(PolicyTrust(workspace.trust()))
    made = (sign(Statement((Subject.of(image(-number)),), predicate, said), signer) for number in range(1, count + 1))
    with open_writer(workspace) as writer:
        writer.append([submission(verifier.verify(envelope, at=now())) for envelope in made])


def plain_table(path: Path) -> sqlite3.Connection:
    """A table of payloads by digest, as durable as a ledger's."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA page_size = 8192")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE entry (idx INTEGER PRIMARY KEY, sha256 BLOB UNIQUE, data BLOB) STRICT")
    return db


def insert(db: sqlite3.Connection) -> Callable[[Sequence[bytes]], None]:
    """Inserts payloads into a plain table, one transaction a call."""

    def act(payloads: Sequence[bytes]) -> None:
        db.execute("BEGIN IMMEDIATE")
        rows = [(hashlib.sha256(payload).digest(), payload) for payload in payloads]
        db.executemany("INSERT INTO entry (sha256, data) VALUES (?, ?)", rows)
        db.execute("COMMIT")

    return act
