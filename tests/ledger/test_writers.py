"""Several writers, and writers that die: one log, nothing torn, nothing that was acknowledged lost."""

import fcntl
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ledger_worker
import pytest
from ledger_box import Box
from program import Program

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.errors import CannotTellError
from countermark.ledger.backup import Manifest
from countermark.ledger.lock import WriterLock, refuse_network

from .test_kills import envelopes


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


@pytest.mark.slow
def test_eight_imports_make_one_log(tmp_path: Path) -> None:
    """As users run them, each with a part of the envelopes and a part of its neighbour's; while a backup and an export are made."""
    program = Program(tmp_path, tmp_path / "state")
    lines = envelopes(program, 160).read_text().splitlines(keepends=True)
    ledger = ("--ledger", "box/countermark.db")
    commands: list[tuple[str, ...]] = [("ledger", "backup", "meanwhile.bak", *ledger), ("ledger", "export", "meanwhile", *ledger)]
    for part in range(8):
        (tmp_path / f"{part}.intoto.jsonl").write_text("".join(lines[20 * part : 20 * part + 30]))
        commands.append(("import", f"{part}.intoto.jsonl", "--workers", "1", *ledger))
    with ThreadPoolExecutor(len(commands)) as pool:
        assert [done.code for done in pool.map(lambda command: program(*command), commands)] == [0] * len(commands)
    audited = program("verify", "ledger", *ledger, "-o", "json")
    assert (audited.code, audited.json["evaluated"], audited.json["ledger"]["size"]) == (0, 161, 161)
    assert program("verify", "export", "meanwhile", "--log-key", "box/keys/log.vkey", "--trust", "box/trust.yaml").code == 0
    for path in (tmp_path / "box").glob("countermark.db*"):
        path.unlink()
    restored = program("ledger", "restore", "meanwhile.bak", *ledger)
    assert (restored.code == 0) == (Manifest.read(tmp_path / "meanwhile.bak").size == 161)


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
