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

from countermark.attestations.codes import ExitCode

from .test_kills import Witnessed

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
