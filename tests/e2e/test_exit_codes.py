"""Every exit code of the table, from the installed program; what is told, and where."""

import json
import os
import sqlite3
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from program import PROGRAM, Program
from signing import envelope_json, pem, statement

from countermark.ledger.schema import SCHEMA_REVISION

KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
UNKNOWN = f"oci-config:sha256:{'c4' * 32}"


@pytest.fixture
def good(program: Program) -> Path:
    """An envelope by KEY, beside its public key `key.pub`."""
    (program.folder / "key.pub").write_bytes(pem(KEY))
    path = program.folder / "good.json"
    path.write_text(json.dumps(envelope_json(statement(), KEY)))
    return path


def test_0_yes(program: Program, good: Path) -> None:
    done = program("verify", "attestation", good, "--key", "key.pub")
    assert (done.code, done.err) == (0, "")


def test_1_no(program: Program, good: Path) -> None:
    changed = json.loads(good.read_text()) | {"payloadType": "application/vnd.in-toto.other+json"}
    good.write_text(json.dumps(changed))
    done = program("verify", "attestation", good, "--key", "key.pub")
    assert done.code == 1
    assert "SIG_INVALID" in done.out


@pytest.mark.parametrize("arguments", [["no-such-command"], ["verify", "ledger", "--no-such-option"], ["gate"], ["gate", UNKNOWN]])
def test_2_usage(program: Program, arguments: list[str]) -> None:
    assert program(*arguments).code == 2


def test_3_invalid(program: Program, good: Path) -> None:
    good.write_text(good.read_text()[:-40])
    done = program("verify", "attestation", good, "--key", "key.pub")
    assert done.code == 3
    assert "good.json:1:" in done.out


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, "LEDGER_MISSING"),
        (b"this is not a database, and it is longer than one hundred bytes .............................", "LEDGER_SCHEMA"),
    ],
)
def test_4_cannot_tell(program: Program, content: bytes | None, code: str) -> None:
    path = program.folder / "some.db"
    if content:
        path.write_bytes(content)
    done = program("verify", "ledger", "--ledger", path, "-o", "json")
    assert (done.code, done.json["verdict"], done.json["findings"][0]["code"]) == (4, "CANNOT_TELL", code)
    assert path.exists() == bool(content), "a mistyped path must not become a ledger"


def test_4_no_key_and_no_trust(program: Program, good: Path) -> None:
    assert program("verify", "attestation", good).code == 4


def test_4_other_schema(program: Program, box: Path) -> None:
    db = sqlite3.connect(box)
    db.execute("UPDATE alembic_version SET version_num = 'ffff'")
    db.commit()
    db.close()
    done = program("verify", "ledger", "--ledger", box)
    assert done.code == 4
    assert SCHEMA_REVISION in done.err


def test_5_nothing(program: Program, good: Path) -> None:
    (program.folder / "empty.jsonl").write_text("\n")
    done = program("verify", "attestation", "empty.jsonl", "--key", "key.pub", "-o", "json")
    assert (done.code, done.json["verdict"], done.json["evaluated"]) == (5, "NOTHING", 0)
    assert good.exists()


def test_6_tampered(program: Program, box: Path) -> None:
    db = sqlite3.connect(box)
    for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        db.execute(f'DROP TRIGGER "{name}"')
    db.execute("UPDATE payload SET data = CAST(data || ' ' AS BLOB)")
    db.commit()
    db.close()
    done = program("verify", "ledger", "--ledger", box, "-o", "json")
    assert (done.code, done.json["verdict"]) == (6, "TAMPERED")
    assert any("entry 0" in str(finding.get("subject")) for finding in done.json["findings"])


def test_6_an_older_copy_of_the_folder(program: Program, box: Path) -> None:
    old = box.read_bytes()
    (program.folder / "p.json").write_text('{"result": "PASSED", "configuration": [], "passedTests": ["t"]}')
    uri = "https://in-toto.io/attestation/test-result/v0.1"
    assert program("attest", "--subject", UNKNOWN, "--type", uri, "--predicate", "p.json", "--ledger", box).code == 0
    for path in box.parent.glob("countermark.db*"):
        path.unlink()
    box.write_bytes(old)
    done = program("verify", "ledger", "--ledger", box)
    assert done.code == 6
    assert "ROLLBACK" in done.out


def test_70_a_crash_is_no_answer(program: Program) -> None:
    broken = program.folder / "broken"
    broken.mkdir()
    (broken / "sqlalchemy.py").write_text("raise RuntimeError('made to crash')\n")
    done = program("init", "other", PYTHONPATH=str(broken))
    assert (done.code, done.out) == (70, "")
    assert "made to crash" in done.err
    assert "Traceback" not in done.err
    assert "Traceback" in program("init", "other", "--debug", PYTHONPATH=str(broken)).err
    assert not (program.folder / "other").exists(), "nothing is left half-made"


def test_init_overwrites_nothing(program: Program, box: Path) -> None:
    before = {path: path.read_bytes() for path in box.parent.rglob("*") if path.is_file()}
    assert program("init", "box").code == 3
    assert {path: path.read_bytes() for path in box.parent.rglob("*") if path.is_file()} == before


def shell(folder: Path, command: str) -> tuple[int, str]:
    """The exit code of the program in a shell's command line, and what stood on standard error."""
    done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("arguments", ["--help", "schema report", "gate --help"])
def test_a_closed_pipe_is_141(program: Program, arguments: str) -> None:
    """The reader is gone before the program writes."""
    code, err = shell(program.folder, f"{{ sleep 0.2; {PROGRAM} {arguments}; echo $? > code; }} | true; sleep 1; exit $(cat code)")
    assert code == 141, err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("gate {unknown} --policy nothere.yaml 2>/dev/full", 3),
        ("gate {unknown} --policy nothere.yaml -o json 2>&- >out.json", 3),
        ("verify ledger --ledger nope.db 2>/dev/full", 4),
        ("schema report >/dev/full", 3),
        ("--help >/dev/full", 3),
        ("verify ledger --ledger nope.db >&- 2>&-", 4),
    ],
)
def test_streams_that_fail_do_not_change_the_answer(program: Program, command: str, code: int) -> None:
    got, err = shell(program.folder, f"{PROGRAM} {command.format(unknown=UNKNOWN)}")
    assert (got, "internal error" in err) == (code, False), err


def test_usage_errors_of_ours_have_a_report(program: Program, box: Path) -> None:
    done = program("gate", UNKNOWN, "--require", "service.startup", "--mode", "loud", "--ledger", box, "-o", "json")
    assert (done.code, done.json["exit"], done.json["verdict"]) == (2, 2, "INVALID")


@pytest.mark.parametrize("arguments", [["key", "show", "/dev/zero"], ["verify", "contract", "x" * 300], ["verify", "attestation", "pipe"]])
def test_what_cannot_be_read_to_its_end_is_refused_at_once(program: Program, box: Path, arguments: list[str]) -> None:
    os.mkfifo(program.folder / "pipe")
    assert program(*arguments, COUNTERMARK_LEDGER=str(box)).code in (3, 4)


def test_json_is_alone_on_stdout(program: Program, box: Path) -> None:
    for arguments in (
        ["verify", "ledger"],
        ["ledger", "stats"],
        ["search", "abcde"],
        ["db", "current"],
        ["gate", UNKNOWN, "--require", "service.startup"],
    ):
        done = program(*arguments, "--ledger", box, "-o", "json")
        assert done.json["exit"] == done.code
        assert done.json["command"].split()[0] == arguments[0]


def test_a_report_can_go_to_a_file(program: Program, box: Path) -> None:
    done = program("verify", "ledger", "--ledger", box, "-o", "text", "-o", "json=report.json")
    assert done.code == 0
    assert "OK  verify ledger" in done.out
    assert json.loads((program.folder / "report.json").read_text())["verdict"] == "OK"


def test_quiet_prints_nothing(program: Program, box: Path) -> None:
    done = program("verify", "ledger", "--ledger", box, "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")
