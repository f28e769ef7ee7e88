"""What every command prints with `-o json` has the one shape that its schema describes."""

import json
from pathlib import Path
from typing import Any

import pytest
from program import Program
from signing import envelope_json, statement
from trusting import ALICE

from countermark.actions.demo import published
from countermark.attestations.schema import problems


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The demo's folder, with a few files more."""
    folder = tmp_path_factory.mktemp("reports")
    program = Program(folder, folder / "state")
    assert program("demo", "demo", "--quiet").code == 0
    (folder / "good.json").write_text(json.dumps(envelope_json(statement(), ALICE)))
    (folder / "bad.yaml").write_text("kind: Contract\n")
    (folder / "predicate.json").write_text('{"result": "PASSED", "configuration": []}')
    return program


LEDGER = ("--ledger", "demo/countermark.db")
IMAGE = published.LIVE
POLICY = ("--policy", "demo/policies/lab-as-published.yaml")
RECORDS = Path(__file__).parents[1] / "data" / "evidence"
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"

COMMANDS: list[tuple[int, tuple[str, ...]]] = [
    (0, ("verify", "ledger", *LEDGER)),
    (4, ("verify", "ledger", "--ledger", "nothing.db")),
    (6, ("verify", "ledger", "--ledger", "demo/tampered.db", "--trust", "demo/trust.yaml")),
    (1, ("verify", "attestation", "good.json", "--key", "demo/keys/builder.pub")),
    (0, ("verify", "trust", "demo/trust.yaml")),
    (1, ("verify", "contract", "demo/release")),
    (3, ("verify", "contract", "bad.yaml")),
    (0, ("verify", "source", "demo/engine", *LEDGER)),
    (0, ("verify", "image", "demo/image", *LEDGER)),
    (1, ("verify", "evidence", str(RECORDS / "sparkcache" / "flat-v2-four-reader-semantic-rejection-eabe7fd.json"))),
    (0, ("gate", IMAGE, "--require", "service.startup@tp=4,dcp=1", *POLICY, *LEDGER)),
    (1, ("gate", IMAGE, *POLICY, "--require", "response.quality@draft_tokens=7", *LEDGER)),
    (1, ("gate", IMAGE, "--require", "response.quality", *LEDGER, "--record")),
    (0, ("explain", IMAGE, *POLICY, *LEDGER)),
    (0, ("search", IMAGE[-64:-50], *LEDGER)),
    (5, ("search", "fffffffffff", *LEDGER)),
    (0, ("ledger", "stats", *LEDGER)),
    (0, ("db", "current", *LEDGER)),
    (0, ("key", "show", "demo/keys/builder.pub")),
    (0, ("query", "history", IMAGE, *LEDGER)),
    (0, ("query", "decisions", *LEDGER)),
    (0, ("query", "signers", *LEDGER)),
    (0, ("record", "source", "demo/engine", *LEDGER)),
    (0, ("attest", "--subject", IMAGE, "--type", TEST_RESULT, "--predicate", "predicate.json", *LEDGER)),
    (0, ("reject", IMAGE, "--reason", "tried", *LEDGER)),
    (1, ("import", "good.json", *LEDGER)),
]


@pytest.mark.parametrize(("code", "command"), COMMANDS, ids=lambda value: " ".join(value[:3]) if isinstance(value, tuple) else str(value))
def test_reports_obey_their_schema(world: Program, code: int, command: tuple[str, ...]) -> None:
    done = world(*command, "-o", "json")
    assert done.code == code, done.out + done.err
    report: Any = done.json
    assert problems("report", report) == []
    assert report["exit"] == code
    assert command[0] in report["command"]
