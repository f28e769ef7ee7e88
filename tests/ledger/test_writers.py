"""Several writers, and writers that die: one log, nothing torn, nothing that was acknowledged lost."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import ledger_worker
import pytest
from ledger_box import Box

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.errors import CannotTellError
from countermark.ledger.lock import WriterLock, refuse_network


@pytest.fixture
def shared(tmp_path: Path) -> Box:
    """A ledger whose keys lie in files, so that other processes can write to it."""
    return ledger_worker.make_shared(tmp_path)


def _start(box: Box, first: int, count: int, writers: int | None = None) -> "subprocess.Popen[str]":
    numbers = [str(number) for number in (first, count, writers) if number is not None]
    command = [sys.executable, ledger_worker.__file__, str(box.folder), *numbers]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_eight_writers_make_one_log(shared: Box) -> None:
    writer = _start(shared, 0, 12, writers=8)
    answers = writer.communicate()[0].split()
    assert writer.returncode == 0
    places = sorted(map(int, answers[1::4]))
    assert places == list(range(1, 97))
    report = shared.audit()
    assert (report.exit, report.findings, report.size) == (ExitCode.YES, (), 97)
    with shared.reader() as reader:
        assert reader.head.anchored == 97


def test_readers_see_whole_transactions_while_others_write(shared: Box) -> None:
    writer = _start(shared, 0, 60)
    while writer.poll() is None:
        report = shared.audit()
        assert (report.exit, report.findings) == (ExitCode.YES, ())
    writer.communicate()
    assert shared.head.size == 61


def test_a_lock_that_is_not_let_go_is_said(small: Box) -> None:
    lock = WriterLock(small.path)
    descriptor = os.open(small.path.with_name(f"{small.path.name}.lock"), os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(CannotTellError) as caught, lock.held(wait_s=0.02):
        pass
    assert caught.value.code is Code.LEDGER_LOCKED
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)
    with lock.held(wait_s=0.02):
        pass
    lock.close()


MOUNTS = (
    "/dev/vda / ext4 rw 0 0\nserver:/x /mnt/share nfs4 rw 0 0\n/dev/vdb /mnt/share/local ext4 rw 0 0\n//s/y /mnt/my\\040share cifs rw 0 0\n"
)


@pytest.mark.parametrize("path", ["/mnt/share/box/x.db", "/mnt/my share/x.db"])
def test_a_network_file_system_is_refused(path: str) -> None:
    with pytest.raises(CannotTellError) as caught:
        refuse_network(Path(path), MOUNTS)
    assert caught.value.code is Code.UNSUPPORTED


@pytest.mark.parametrize("path", ["/mnt/share/local/x.db", "/mnt/shared/x.db", "/home/x.db"])
def test_a_local_file_system_is_not(path: str) -> None:
    refuse_network(Path(path), MOUNTS)
    refuse_network(Path(path), "")
