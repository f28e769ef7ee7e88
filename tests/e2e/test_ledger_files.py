"""`ledger prove|export|backup|restore` and `verify proof|export` as a user runs them: exit codes, and nothing half-written."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from in_process import InProcess
from program import Done

from countermark.actions import believed_logs
from countermark.actions.clock import now
from countermark.attestations.times import Instant

IMAGE = f"oci-config:sha256:{'ab' * 32}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> InProcess:
    folder = tmp_path_factory.mktemp("operator")
    program = InProcess(folder, folder / "state")
    assert program("init", "box").code == 0
    for reason in ("one", "two", "three"):
        assert program("reject", IMAGE, "--reason", reason, "--ledger", "box/countermark.db").code == 0
    assert program("ledger", "checkpoint", "--ledger", "box/countermark.db", "-o", "text=head.note").code == 0
    return program


@pytest.fixture
def run(made: InProcess, tmp_path: Path) -> InProcess:
    """A copy of the folder, and a program that runs in it."""
    shutil.copytree(made.folder, tmp_path, dirs_exist_ok=True)
    return InProcess(tmp_path, tmp_path / "state")


LEDGER = ("--ledger", "box/countermark.db")
KEY = ("--log-key", "box/keys/log.vkey")


def told(done: Done, code: int, *words: str) -> None:
    assert done.code == code, done.out + done.err
    for word in words:
        assert word in done.out + done.err


def lose(run: InProcess) -> None:
    for path in (run.folder / "box").glob("countermark.db*"):
        path.unlink()


def test_a_proof_of_an_entry(run: InProcess) -> None:
    told(run("ledger", "prove", "2", *LEDGER, "-o", "text=two.tlog-proof"), 0)
    assert run("ledger", "prove", "2", *LEDGER).out.encode() == (run.folder / "two.tlog-proof").read_bytes()
    told(run("verify", "proof", "two.tlog-proof", *KEY), 0, "entry 2 is in", "payload:sha256:")
    payload = run("verify", "proof", "two.tlog-proof", *KEY, "-o", "json").json["details"]["proof"]["payload"]
    told(run("ledger", "prove", payload, *LEDGER), 0, "index 2")
    told(run("ledger", "prove", payload.removeprefix("payload:"), *LEDGER), 0, "index 2")
    told(run("ledger", "prove", "2", "--to", "3", *LEDGER), 0, "\n3\n")
    told(run("verify", "proof", "two.tlog-proof"), 4, "UNTRUSTED")
    told(run("verify", "proof", "two.tlog-proof", "--trust", "box/trust.yaml"), 0)
    told(run("verify", "proof", "two.tlog-proof", "--log-key", "nonsense"), 3)
    stranger = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
    told(run("verify", "proof", "two.tlog-proof", "--log-key", stranger), 1, "UNTRUSTED")
    told(run("verify", "proof", "two.tlog-proof", *KEY, "--payload", "head.note"), 6, "TAMPERED")
    data = (run.folder / "two.tlog-proof").read_bytes()
    for name, changed in (("index", data.replace(b"index 2", b"index 1")), ("empty", b""), ("utf8", b"\xff" + data), ("cut", data[:-9])):
        (run.folder / name).write_bytes(changed)
        told(run("verify", "proof", name, *KEY), 6 if name == "index" else 3)
    (run.folder / "bare").write_bytes(data.replace(data.split(b"\n")[1] + b"\n", b""))
    told(run("verify", "proof", "bare", *KEY), 4, "--leaf")


def test_a_payload_beside_its_proof(run: InProcess) -> None:
    told(run("ledger", "prove", "1", *LEDGER, "-o", "text=p"), 0)
    told(run("ledger", "export", "out", *LEDGER), 0)
    digest = run("verify", "proof", "p", *KEY, "-o", "json").json["details"]["proof"]["payload"].split(":")[-1]
    told(run("verify", "proof", "p", *KEY, "--payload", f"out/payload/{digest[:2]}/{digest}"), 0)


def test_a_proof_of_growth(run: InProcess) -> None:
    told(run("ledger", "checkpoint", *LEDGER, "-o", "text=old.note"), 0)
    told(run("reject", IMAGE, "--reason", "four", *LEDGER), 0)
    told(run("ledger", "prove", "--from", "4", *LEDGER, "-o", "text=growth"), 0)
    told(run("verify", "proof", "growth", *KEY, "--checkpoint", "old.note"), 0, "the log of 4 entries is the beginning of")
    told(run("verify", "proof", "growth", *KEY), 4, "--checkpoint")
    told(run("ledger", "prove", "--from", "3", *LEDGER, "-o", "text=other"), 0)
    told(run("verify", "proof", "other", *KEY, "--checkpoint", "old.note"), 3)
    lines = (run.folder / "growth").read_text().split("\n")
    lines[1] = lines[1][:5] + ("A" if lines[1][5] != "A" else "B") + lines[1][6:]
    (run.folder / "growth").write_text("\n".join(lines))
    told(run("verify", "proof", "growth", *KEY, "--checkpoint", "old.note"), 6, "SPLIT_VIEW")


def test_questions_without_an_answer(run: InProcess) -> None:
    told(run("ledger", "prove", *LEDGER), 2)
    told(run("ledger", "prove", "1", "--from", "1", *LEDGER), 2)
    told(run("ledger", "prove", "9", *LEDGER), 3, "UNKNOWN_NAME")
    told(run("ledger", "prove", "9" * 5000, *LEDGER), 3)
    told(run("ledger", "prove", "3", "--to", "3", *LEDGER), 3)
    told(run("ledger", "prove", "1", "--to", "99", *LEDGER), 3, "such as 4")
    told(run("ledger", "prove", "1", "--to", "0", *LEDGER), 3)
    told(run("ledger", "prove", "--from", str(2**70), *LEDGER), 3)
    told(run("ledger", "prove", f"payload:sha256:{'00' * 32}", *LEDGER), 3, "REF_NOT_HERE")
    told(run("ledger", "prove", "word", *LEDGER), 3)
    told(run("ledger", "prove", "1", "--ledger", "nowhere.db"), 4)


def test_an_export(run: InProcess) -> None:
    told(run("ledger", "export", "out", *LEDGER), 0, "4 of them new")
    told(run("verify", "export", "out", *KEY, "--trust", "box/trust.yaml", "--checkpoint", "head.note"), 0, "evaluated 4 of 4")
    told(run("verify", "export", "out", *KEY, "--key", "box/keys/builder.pub", "--key", "box/keys/qualifier.pub"), 0)
    told(run("verify", "export", "out", *KEY), 4, "no keys are given")
    told(run("verify", "export", "out", *KEY, "--hash-only"), 0)
    told(run("verify", "export", "out"), 4)
    told(run("verify", "export", "nowhere", *KEY), 3)
    told(run("verify", "export", "box", *KEY), 4, "nothing has been published here")
    told(run("ledger", "export", "box", *LEDGER), 3, "something else")
    told(run("ledger", "export", "head.note", *LEDGER), 3)
    tile = run.folder / "out" / "tile" / "0" / "000.p" / "4"
    tile.write_bytes(tile.read_bytes()[:-1] + b"\0")
    told(run("verify", "export", "out", *KEY, "--hash-only"), 6, "000.p/4")
    told(run("ledger", "export", "out", "--without-payloads", *LEDGER), 3)


def test_a_checkpoint_that_is_too_old(run: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    told(run("ledger", "prove", "2", *LEDGER, "-o", "text=two.tlog-proof"), 0)
    told(run("ledger", "export", "out", *LEDGER), 0)
    commands = (
        ("verify", "ledger", *LEDGER),
        ("verify", "proof", "two.tlog-proof", *KEY),
        ("verify", "export", "out", *KEY, "--trust", "box/trust.yaml"),
    )
    later = Instant(now().ns + 48 * 3_600_000_000_000)
    for command in commands:
        told(run(*command, "--max-age", "1h"), 0)
        told(run(*command, "--max-age", "soon"), 2)
        with monkeypatch.context() as patch:
            patch.setattr(believed_logs, "now", lambda: later)
            told(run(*command, "--max-age", "47h"), 4, "STALE")
            told(run(*command, "--max-age", "3d"), 0)
            told(run(*command), 0)


def test_a_strict_auditor(run: InProcess) -> None:
    with closing(sqlite3.connect(run.folder / "box/countermark.db")) as db:
        db.execute("DROP TRIGGER entry_no_update")
    told(run("verify", "ledger", *LEDGER), 0, "GUARD_MISSING")
    told(run("verify", "ledger", *LEDGER, "--strict"), 4, "GUARD_MISSING")


def test_a_backup_and_back(run: InProcess) -> None:
    told(run("ledger", "backup", "one.bak", *LEDGER), 0, "4 entries")
    told(run("ledger", "backup", "one.bak", *LEDGER), 3)
    told(run("ledger", "restore", "one.bak", *LEDGER), 3, "a ledger stands here")
    lose(run)
    told(run("ledger", "restore", "one.bak", "--new-incarnation", *LEDGER), 2)
    told(run("ledger", "restore", "one.bak", "--new-incarnation", "--reason", "x", *LEDGER), 3, "nothing is known to be lost")
    told(run("ledger", "restore", "one.bak", "--checkpoint", "head.note", *LEDGER), 0, "holds 4 entries")
    told(run("verify", "ledger", *LEDGER), 0)


def test_a_backup_that_is_too_old(run: InProcess) -> None:
    told(run("ledger", "backup", "one.bak", *LEDGER), 0)
    told(run("reject", IMAGE, "--reason", "four", *LEDGER), 0)
    lose(run)
    told(run("ledger", "restore", "one.bak", *LEDGER), 6, "ROLLBACK")
    assert not (run.folder / "box" / "countermark.db").exists()
    done = run("ledger", "restore", "one.bak", "--new-incarnation", "--reason", "the disk died", *LEDGER)
    told(done, 0, "entries 4 to 4 of the one before are lost")
    told(run("verify", "ledger", *LEDGER), 6, "ROLLBACK", "the disk died")
    told(run("reject", IMAGE, "--reason", "five", *LEDGER), 0)


@pytest.fixture
def hostile(run: InProcess) -> InProcess:
    """Files that no command takes, under short names."""
    folder = run.folder
    (folder / "random").write_bytes(bytes(range(256)) * 300)
    (folder / "zeros").write_bytes(bytes(3_000_000))
    (folder / "empty").write_bytes(b"")
    (folder / "dir.manifest").mkdir(parents=True)
    (folder / "dir").mkdir()
    os.mkfifo(folder / "pipe")
    os.mkfifo(folder / "pipe.manifest")
    (folder / "link").symlink_to(folder / "nowhere")
    told(run("ledger", "witness", "new", "w", "--name", "witness.example/w", *KEY), 0)
    told(run("ledger", "prove", "--from", "0", *LEDGER, "-o", "text=ask"), 0)
    told(run("ledger", "export", "out", *LEDGER), 0)
    os.mkfifo(folder / "out" / "pipe")
    return run


BAD_FILES = ("random", "zeros", "empty", "dir", "pipe", "link", "absent", "bad\udcff")


@pytest.mark.parametrize("bad", BAD_FILES)
def test_files_that_no_command_takes(hostile: InProcess, bad: str) -> None:
    """Each command that reads a file says no in the words of the table, and leaves the folder as it was."""
    run = hostile
    before = sorted(
        path for path in run.folder.rglob("*") if "state" not in path.parts and not path.name.endswith(("-wal", "-shm", ".lock"))
    )
    for command in (
        ("verify", "proof", bad, *KEY),
        ("verify", "proof", "ask", "--log-key", bad),
        ("verify", "proof", "ask", "--policy", bad),
        ("verify", "proof", "ask", *KEY, "--checkpoint", bad),
        ("verify", "export", "out", *KEY, "--hash-only", "--checkpoint", bad),
        ("verify", "export", "out", *KEY, "--policy", bad),
        ("verify", "export", "out", *KEY, "--trust", bad),
        ("ledger", "restore", bad, "--ledger", "new.db"),
        ("ledger", "witness", "cosign", "w", bad),
        ("ledger", "witness", "cosign", bad, "ask"),
        ("ledger", "witness", "show", bad),
        ("ledger", "witness", "add", bad, "--policy", bad, *LEDGER),
        ("ledger", "witness", "new", "w2", "--name", "x", "--log-key", bad),
        ("ledger", "prove", "1", "--policy", bad, *LEDGER),
        ("ledger", "backup", "new.bak", "--ledger", bad),
        ("ledger", "export", "new", "--ledger", bad),
        ("ledger", "reindex", "--ledger", bad),
        ("verify", "ledger", "--policy", bad, *LEDGER),
    ):
        done = run(*command)
        assert done.code in (3, 4), (command, done)
        assert done.err.startswith("countermark: ") or "INVALID  verify export" in done.out, (command, done)
    after = sorted(
        path for path in run.folder.rglob("*") if "state" not in path.parts and not path.name.endswith(("-wal", "-shm", ".lock"))
    )
    assert after == before


@pytest.mark.parametrize("place", ["random", "pipe", "link", "w", "random/below"])
def test_places_that_no_command_writes_to(hostile: InProcess, place: str) -> None:
    told(hostile("ledger", "export", place, *LEDGER), 3)
    assert hostile("ledger", "backup", place, *LEDGER).code in (3, 4)
    told(hostile("ledger", "witness", "new", place, "--name", "x", *KEY), 3)


def test_a_special_file_in_an_export_stops_nobody(hostile: InProcess) -> None:
    told(hostile("verify", "export", "out", *KEY, "--trust", "box/trust.yaml"), 0, "pipe")
    bundle = hostile.folder / "out" / "tile" / "entries" / "000.p" / "4"
    bundle.unlink()
    os.mkfifo(bundle)
    told(hostile("verify", "export", "out", *KEY, "--hash-only"), 3, "it is no file")


def test_a_witness_that_lost_its_memory_signs_nothing(hostile: InProcess) -> None:
    told(hostile("ledger", "witness", "cosign", "w", "ask"), 0)
    state = hostile.folder / "w" / "witness.db"
    for spoil in (lambda: state.write_bytes(b"x" * 9000), state.unlink):
        spoil()
        told(hostile("ledger", "witness", "cosign", "w", "ask"), 4, "UNREADABLE")
    assert not state.exists()
