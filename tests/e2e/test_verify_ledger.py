"""`verify ledger`, as an auditor runs it who holds a checkpoint."""

from pathlib import Path

import pytest
from program import Program

from countermark.attestations import jsontext
from countermark.attestations.schema import problems

DERIVED = "whether derived rows and notice flags follow from the payloads"


def test_the_horizon_is_told_with_who_holds_it(program: Program, box: Path) -> None:
    alone = program("verify", "ledger", "--ledger", box)
    assert (alone.code, "nobody outside holds a checkpoint" in alone.out) == (0, True)
    held = program.folder / "held.note"
    held.write_text(program("ledger", "checkpoint", "--ledger", box).out)
    for number in (1, 2):
        rejected = program("reject", f"oci-config:sha256:{str(number) * 64}", "--reason", "wrong", "--ledger", box)
        assert rejected.code == 0, rejected.err
    done = program("verify", "ledger", "--ledger", box, "--checkpoint", held, "--workers", "2", "-o", "json", "-o", "text=report.txt")
    text = (program.folder / "report.txt").read_text()
    assert (done.code, done.json["details"]["held_by"], done.json["ledger"]["protected_to"]) == (0, [str(held)], 1)
    assert f"protected up to entry 0, held by {held}; 2 entries after it are not yet" in text


def test_what_is_left_out_is_told(program: Program, box: Path) -> None:
    assert program("reject", f"oci-config:sha256:{'1' * 64}", "--reason", "wrong", "--ledger", box).code == 0
    done = program("verify", "ledger", "--ledger", box, "--since", "1", "--hash-only", "-o", "json")
    assert (done.code, done.json["evaluated"], done.json["of"]) == (0, 1, 1)
    assert done.json["not_evaluated"] == ["payloads, signatures and rows of entries before 1", "signatures of entries", DERIVED]
    assert program("verify", "ledger", "--ledger", box, "--since", "2").code == 5
    assert program("verify", "ledger", "--ledger", box, "--since", "-1").code == 2
    assert program("verify", "ledger", "--ledger", box, "--workers", "0").code == 2


@pytest.mark.parametrize("more", [(), ("--hash-only",)])
def test_a_trust_policy_that_is_named_and_not_there_is_no_yes(program: Program, box: Path, more: tuple[str, ...]) -> None:
    done = program("verify", "ledger", "--ledger", box, "--trust", "nowhere.yaml", *more)
    assert (done.code, "nowhere.yaml" in done.err) == (4, True), done


def test_a_complete_audit_that_found_the_ledger_whole_is_put_on_record(program: Program, box: Path) -> None:
    record = box.with_suffix(".audit")
    assert program("verify", "ledger", "--ledger", box, "--hash-only").code == 0
    assert not record.exists(), "it was not complete"
    done = program("verify", "ledger", "--ledger", box, "-o", "json")
    written = jsontext.loads(record.read_bytes(), str(record))
    assert problems("audit", written) == []
    assert isinstance(written, dict)
    assert (done.code, written["size"], written["root"]) == (0, done.json["ledger"]["size"], done.json["ledger"]["root"])


def test_a_ledger_is_verified_where_nothing_can_be_put_on_record(program: Program, box: Path) -> None:
    box.with_suffix(".audit").mkdir()
    done = program("verify", "ledger", "--ledger", box)
    assert (done.code, "the record of the audit cannot be written" in done.out) == (0, True), done
    assert not box.with_suffix(".audit.tmp").exists()
