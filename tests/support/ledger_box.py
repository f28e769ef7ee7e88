"""A ledger for tests, with its keys, its anchor and a clock that stands still, and submissions of every sort to put into it."""

import hashlib
import json
import shutil
import sqlite3
from dataclasses import dataclass, replace
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countermark.attestations.codes import Code
from countermark.attestations.envelope import PAYLOAD_TYPE, pae
from countermark.attestations.keys import PublicKey, Signer, generate_pem
from countermark.ledger.audit import audit
from countermark.ledger.audit_report import AuditReport
from countermark.ledger.key_event import KeyEvent
from countermark.ledger.leaf import EntryKind
from countermark.ledger.note import CheckpointSigner
from countermark.ledger.read import Head, LedgerReader
from countermark.ledger.submission import DOCUMENT_TYPE, Submission, UnverifiedSignature, leaf_signature
from countermark.ledger.write import LedgerWriter, initialise
from countermark.migrations import runner

BASE = "https://countermark.dev/predicate/"
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
START_MS = 1_796_000_000_000


class Clock:
    """A clock that the test moves; milliseconds since 1970 UTC."""

    def __init__(self, now: int = START_MS) -> None:
        self.now = now

    def __call__(self) -> int:
        self.now += 1
        return self.now


@dataclass(frozen=True)
class Box:
    """A ledger with its keys, its anchor and its clock."""

    folder: Path
    log: CheckpointSigner
    operator: Signer
    second: Signer
    clock: Clock

    @property
    def path(self) -> Path:
        return self.folder / "countermark.db"

    @property
    def anchor(self) -> Path:
        return self.folder / "state" / "log.anchor"

    @property
    def keys(self) -> dict[bytes, PublicKey]:
        return {signer.public.fingerprint.raw: signer.public for signer in (self.operator, self.second)}

    def create(self) -> None:
        runner.create(self.path)
        initialise(self.path, self.log, self.operator, f"file:sha256:{'1b' * 32}", self.anchor, self.clock)

    def writer(self) -> LedgerWriter:
        return LedgerWriter.open(self.path, self.log, self.anchor, self.clock)

    def reader(self) -> LedgerReader:
        return LedgerReader.open(self.path, anchor=self.anchor)

    @property
    def head(self) -> Head:
        with self.reader() as reader:
            return reader.head

    def append(self, *submissions: Submission) -> list[int]:
        with self.writer() as writer:
            return [receipt.index for receipt in writer.append(submissions)]

    def audit(self) -> AuditReport:
        return audit(self.path, self.keys, anchor=self.anchor)

    def forget(self) -> None:
        """Remove the anchor, so that the ledger alone must show what was done to it."""
        self.anchor.unlink(missing_ok=True)

    def copy(self, folder: Path) -> "Box":
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return replace(self, folder=folder, clock=Clock(self.clock.now))

    def statement(
        self, predicate_type: str, predicate: object, *, name: str = "thing", subject: dict[str, object] | None = None
    ) -> Submission:
        digest = hashlib.sha256(name.encode()).hexdigest()
        body = {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [subject or {"name": name, "digest": {"sha256": digest}}],
            "predicateType": predicate_type,
            "predicate": predicate,
        }
        return Submission.sign(EntryKind.ATTESTATION, PAYLOAD_TYPE, json.dumps(body).encode(), self.operator)

    def passed(self, number: int) -> Submission:
        return self.statement(TEST_RESULT, {"result": "PASSED", "passedTests": [f"t{number}"]}, name=f"build-{number}")

    def rejection(self, hexed: str = "ab" * 32) -> Submission:
        subject: dict[str, object] = {"digest": {"sha256": hexed}, "annotations": {"ociLevel": "config"}}
        return self.statement(f"{BASE}rejection/v1", {"scope": "image-wide", "reason": "wrong answer", "rests_on": []}, subject=subject)

    def document(self, text: str) -> Submission:
        return Submission.sign(EntryKind.POLICY, DOCUMENT_TYPE, text.encode(), self.operator)

    def key_event(self) -> Submission:
        return KeyEvent("add", "ci", "builder", self.second.public.spki, START_MS, "first key").sign(self.operator)

    def edit(self, *statements: str, values: tuple[object, ...] = ()) -> None:
        """Change the database behind the program's back, guards taken away and put back."""
        connection = raw(self.path)
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement, values)
        for _, sql in triggers:
            connection.execute(sql)
        connection.close()


def raw(path: Path) -> sqlite3.Connection:
    """A connection as anybody could make one, without the program's settings."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute("PRAGMA synchronous = OFF")  # no power is cut here, and each statement would wait for the disk
    return connection


def _signer() -> Signer:
    return Signer.from_pem(generate_pem()[0], "test key")


def make_box(folder: Path) -> Box:
    folder.mkdir(parents=True, exist_ok=True)
    box = Box(folder, CheckpointSigner("countermark.local/test/0a1b2c3d", Ed25519PrivateKey.generate()), _signer(), _signer(), Clock())
    box.create()
    return box


def varied(box: Box) -> list[Submission]:
    """One submission of each sort that has rows of its own."""
    image = {
        "level": "config",
        "aliases": [{"digest": f"oci-manifest:sha256:{'cd' * 32}", "proven": True, "how": "bytes"}],
        "built_from": {"components": {"sparkcache": {"commit": f"git-commit:{'5e' * 20}", "tree": f"git-tree:{'94' * 20}"}}},
    }
    run = {"tuple": {"image": f"oci-config:sha256:{'ab' * 32}", "model": {"repository": "org/m", "revision": "42" * 20}}, "ranks": []}
    passed = box.passed(1000)
    stranger = UnverifiedSignature("who", b"not a signature of anybody known", Code.SIG_UNVERIFIABLE)
    return [
        box.key_event(),
        box.document("policy: one"),
        box.statement(f"{BASE}image/v1", image, subject={"digest": {"sha256": "ab" * 32}, "annotations": {"ociLevel": "config"}}),
        box.statement(f"{BASE}restore-run/v1", run),
        box.rejection(),
        replace(passed, unverified=(stranger,)),
        replace(box.passed(1001), bundle=b'{"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json"}'),
        replace(passed, signatures=(leaf_signature(box.second, pae(passed.payload_type, passed.payload)),)),
    ]
