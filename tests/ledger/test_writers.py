"""Several writers, and writers that die: one log, nothing torn, nothing that was acknowledged lost."""

import fcntl
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import ledger_worker
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from ledger_box import Box, Clock

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.errors import CannotTellError
from countermark.attestations.keys import Signer, generate_pem
from countermark.ledger.lock import WriterLock, refuse_network
from countermark.ledger.note import CheckpointSigner


@pytest.fixture
def shared(tmp_path: Path) -> Box:
    """A ledger whose keys lie in files, so that other processes can write to it."""
    private, (pem, _) = Ed25519PrivateKey.generate(), generate_pem()
    log, operator = CheckpointSigner("countermark.local/shared/00000001", private), Signer.from_pem(pem, "operator")
    (tmp_path / ledger_worker.LOG_KEY).write_bytes(private.private_bytes_raw())
    (tmp_path / ledger_worker.OPERATOR_KEY).write_bytes(pem)
    (tmp_path / "origin").write_text(log.vkey.name)
    box = Box(tmp_path, log, operator, operator, Clock())
    box.create()
    return box


def _start(box: Box, first: int, count: int) -> "subprocess.Popen[str]":
    command = [sys.executable, ledger_worker.__file__, str(box.folder), str(first), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_four_writers_make_one_log(shared: Box) -> None:
    writers = [_start(shared, 1000 * number, 25) for number in range(4)]
    answers = [writer.communicate()[0].split() for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 4
    places = sorted(int(place) for answer in answers for place in answer[1::2])
    assert places == list(range(1, 101))
    report = shared.audit()
    assert (report.exit, report.findings, report.size) == (ExitCode.YES, (), 101)
    with shared.reader() as reader:
        assert reader.head.anchored == 101


def test_what_was_acknowledged_survives_a_kill_and_a_retry_is_the_same_entry(shared: Box) -> None:
    rng = random.Random(20260830)
    first = 0
    for _ in range(4):
        writer = _start(shared, first, 10_000)
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(rng.randrange(1, 30))]
        writer.send_signal(signal.SIGKILL)
        lines += [line for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        acknowledged = {int(line.split()[0]): int(line.split()[1]) for line in lines}
        writer.stdout.close()
        writer.wait()
        first = max(acknowledged)
        report, last = shared.audit(), max(acknowledged.values())
        assert (report.exit, [finding.code for finding in report.findings]) == (ExitCode.YES, [])
        assert report.size in (last + 1, last + 2)
        assert shared.append(*(shared.passed(number) for number in acknowledged)) == list(acknowledged.values())
        first += 2


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
