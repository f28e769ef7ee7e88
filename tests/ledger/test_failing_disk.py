"""A disk that fails or is full at any write or sync: what was acknowledged stays, and no size ever has two roots.

The failing disk is a library that is loaded before the C library's. It fails from one call on, as a disk does that is gone or full.
"""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import ledger_worker
import pytest
from program import Program

from countermark.attestations.codes import ExitCode

from .test_kills import Witnessed, envelopes

SOURCE = Path(ledger_worker.__file__).with_name("faulty_disk.c")
FAULTS = [
    (call, code, part) for call in ("write", "sync") for code in (errno.EIO, errno.ENOSPC) for part in ("countermark.db", "log.anchor")
]


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library, compiled."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++ to compile the failing disk with")
    library = tmp_path_factory.mktemp("shim") / "faulty_disk.so"
    subprocess.run([compiler, "-x", "c", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE)], check=True)
    return library


def fail_at(folder: Path, shim: Path, fault: str, said: Witnessed, first: int) -> int:
    """Append until the disk fails; the exit code of the writer."""
    command = [sys.executable, ledger_worker.__file__, str(folder), str(first), "12"]
    environment = {**os.environ, "LD_PRELOAD": str(shim), "FAULT": fault}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        said.hear(line)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode


def failing(folder: Path, shim: Path, call: str, code: int, part: str, numbers: range) -> None:
    """Fail at each of these calls in turn, in one ledger; whatever the writer says, the ledger is whole, and the next one goes on."""
    box, said, failed = ledger_worker.make_shared(folder), Witnessed(), 0
    for turn, number in enumerate(numbers):
        exit_code = fail_at(folder, shim, f"{call}:{number}:{code}:{part}", said, 1000 * turn)
        assert exit_code in (ExitCode.YES, ExitCode.CANNOT_TELL)
        failed += exit_code == ExitCode.CANNOT_TELL
        said.compare(box)
    assert failed


@pytest.mark.parametrize(("call", "code", "part"), [FAULTS[0], FAULTS[6]], ids=["write EIO", "sync ENOSPC"])
def test_a_disk_that_fails(shim: Path, tmp_path: Path, call: str, code: int, part: str) -> None:
    failing(tmp_path, shim, call, code, part, range(1, 22, 10))


@pytest.mark.slow
@pytest.mark.parametrize(("call", "code", "part"), FAULTS)
def test_a_disk_that_fails_at_every_call(shim: Path, tmp_path: Path, call: str, code: int, part: str) -> None:
    failing(tmp_path, shim, call, code, part, range(1, 60 if part == "countermark.db" else 14))


LEDGER = ("--ledger", "box/countermark.db")
COMMANDS = {
    "import": ("import", "many.intoto.jsonl", "--workers", "1"),
    "reject": ("reject", f"oci-config:sha256:{'ab' * 32}", "--reason", "wrong answers"),
}


def test_an_import_whose_commit_fails(shim: Path, tmp_path: Path) -> None:
    a_commit_that_fails(shim, tmp_path, "import", errno.EIO)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_a_command_whose_commit_fails(shim: Path, tmp_path: Path, name: str, code: int) -> None:
    a_commit_that_fails(shim, tmp_path, name, code)


def a_commit_that_fails(shim: Path, folder: Path, name: str, code: int) -> None:
    """Its sync is refused: nobody knows what the disk holds. The program says so and no head; the next start goes on with what is there."""
    program = Program(folder, folder / "state")
    envelopes(program, 3)
    before = program("ledger", "checkpoint", *LEDGER).out
    fault = f"sync:1:{code}:countermark.db-wal"
    done = program("--debug" if name == "reject" else "--verbose", *COMMANDS[name], *LEDGER, LD_PRELOAD=str(shim), FAULT=fault)
    assert done.code == ExitCode.CANNOT_TELL, done
    assert "INCOMPLETE" in done.err + done.out
    assert "COMMIT failed, and whether the entries are in the ledger is not known" in done.err + done.out
    assert name == "reject" or "Traceback" not in done.err
    said = done.out + done.err
    assert "\N{EM DASH} countermark.local" not in said
    assert before.splitlines()[0] not in said.replace(str(folder), "")
    assert program("verify", "ledger", *LEDGER).code == ExitCode.YES
    again = program(*COMMANDS[name], *LEDGER)
    assert again.code == ExitCode.YES, again
    after = program("verify", "ledger", *LEDGER, "--checkpoint", _kept(program, before), "-o", "json")
    assert (after.code, after.json["ledger"]["size"]) == (ExitCode.YES, 4 if name == "import" else 2)


def _kept(program: Program, note: str) -> Path:
    (program.folder / "before.note").write_text(note)
    return program.folder / "before.note"
