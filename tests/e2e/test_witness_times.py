"""`ledger witness add`: a cosignature whose time cannot be is not brought in, since what a ledger has taken it keeps."""

import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from program import Program

from countermark.ledger.cosignature import Cosigner
from countermark.ledger.note import Checkpoint
from countermark.ledger.signed_note import SignedNote

DAY_S = 86_400


@pytest.mark.parametrize(("later_s", "code", "says"), [(0, 0, ""), (-DAY_S, 1, "the entry claims"), (DAY_S, 1, "yet to come")])
def test_when_it_was_cosigned(program: Program, box: Path, later_s: int, code: int, says: str) -> None:
    witness = Cosigner("witness.example/w", Ed25519PrivateKey.from_private_bytes(bytes(32)))
    log_key = (box.parent / "keys" / "log.vkey").read_text().strip()
    (program.folder / "w.policy").write_text(f"log {log_key}\nwitness w {witness.vkey}\nquorum w\n")
    note = program("ledger", "checkpoint", "--ledger", box).out
    line = witness.sign(Checkpoint.parse(SignedNote.parse(note).text), int(time.time()) + later_s)
    (program.folder / "cosigned").write_text(f"{note}{line}\n")
    added = program("ledger", "witness", "add", "cosigned", "--policy", "w.policy", "--ledger", box)
    assert (added.code, says in added.err) == (code, True), added
    audited = program("verify", "ledger", "--ledger", box, "--policy", "w.policy", "-o", "json")
    assert (audited.code, audited.json["details"]["held_by"]) == (0, [] if code else ["witness.example/w"])
