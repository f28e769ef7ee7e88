"""Writers that are killed at any moment: nothing acknowledged is lost, nothing is torn, and no size ever has two roots."""

import base64
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import ledger_worker
import pytest
from ledger_box import Box
from program import PROGRAM, Program

from countermark.attestations.codes import ExitCode
from countermark.attestations.envelope import PAYLOAD_TYPE, pae
from countermark.attestations.keys import Signer
from countermark.ledger.anchor import Anchor


@dataclass
class Witnessed:
    """Everything that a ledger ever said to the outside: where what was admitted stands, and the root of each size."""

    places: dict[int, int] = field(default_factory=dict)
    roots: dict[int, str] = field(default_factory=dict)

    def hear(self, line: str) -> None:
        """An acknowledgement; it must agree with all before."""
        number, index, size, root = line.split()
        assert self.places.setdefault(int(number), int(index)) == int(index)
        self.see(int(size), root)

    def see(self, size: int, root: str) -> None:
        assert self.roots.setdefault(size, root) == root, f"two roots at {size}"

    def compare(self, box: Box) -> None:
        """The ledger is whole, is what was said of it, and admits what it had admitted again at the same places."""
        anchor = Anchor.read(box.anchor)
        assert anchor is not None
        self.see(anchor.size, anchor.root.hex())
        report = box.audit()
        assert (report.exit, report.findings) == (ExitCode.YES, ())
        with box.reader() as reader:
            for size, root in reader.rows("SELECT size, root FROM checkpoint"):
                self.see(size, root.hex())
            assert all(reader.root_at(size).hex() == root for size, root in self.roots.items())
        assert box.append(*(box.passed(number) for number in self.places)) == list(self.places.values())


@contextmanager
def writers(box: Box) -> Iterator["subprocess.Popen[str]"]:
    """A process that forks a writer for each line it is told."""
    command = [sys.executable, ledger_worker.__file__, str(box.folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        assert process.stdin
        process.stdin.close()


def kill_one(process: "subprocess.Popen[str]", said: Witnessed, first: int, rng: random.Random) -> int:
    """Let a writer go on for some entries and some moments more, and kill it; the number after the last acknowledged one."""
    told, heard = _pipes(process)
    told.write(f"{first} 100000\n")
    told.flush()
    word, pid = heard.readline().split()
    assert word == "pid", "nobody else is to be killed"
    for _ in range(rng.randrange(1, 12)):
        said.hear(heard.readline())
    time.sleep(rng.random() * 0.004)
    os.kill(int(pid), signal.SIGKILL)
    while (line := heard.readline()) != "end\n":
        said.hear(line)
    return max(said.places) + 1


def _pipes(process: "subprocess.Popen[str]") -> tuple[IO[str], IO[str]]:
    assert process.stdin
    assert process.stdout
    return process.stdin, process.stdout


def killed_appends(folder: Path, times: int, seed: int) -> None:
    box, said, rng, first = ledger_worker.make_shared(folder), Witnessed(), random.Random(seed), 0
    with writers(box) as process:
        for _ in range(times):
            first = kill_one(process, said, first, rng)
            said.compare(box)


def test_appends_that_are_killed(tmp_path: Path) -> None:
    killed_appends(tmp_path, 6, 20261202)


@pytest.mark.slow
def test_appends_that_are_killed_two_hundred_times(tmp_path: Path) -> None:
    killed_appends(tmp_path, 200, 20260830)


def envelopes(program: Program, count: int) -> Path:
    """A file of envelopes by the operator of a new ledger."""
    assert program("init", "box").code == 0
    box = Signer.load(str(program.folder / "box/keys/builder.pem"))
    lines = []
    for number in range(count):
        body = {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": f"b{number}", "digest": {"sha256": f"{number:064x}"}}],
            "predicateType": "https://in-toto.io/attestation/test-result/v0.1",
            "predicate": {"result": "PASSED", "configuration": []},
        }
        payload = json.dumps(body).encode()
        signature = base64.b64encode(box.sign(pae(PAYLOAD_TYPE, payload))).decode()
        lines.append(
            json.dumps({"payload": base64.b64encode(payload).decode(), "payloadType": PAYLOAD_TYPE, "signatures": [{"sig": signature}]})
        )
    path = program.folder / "many.intoto.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def killed_imports(folder: Path, times: int, count: int) -> None:
    program = Program(folder, folder / "state")
    path, rng = envelopes(program, count), random.Random(20261202)
    ledger = ("--ledger", "box/countermark.db")
    environment = {**os.environ, "XDG_STATE_HOME": str(program.state)}
    for _ in range(times):
        command = [str(PROGRAM), "import", str(path), *ledger, "--workers", "1"]
        with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            time.sleep(0.3 + rng.random() * 1.5)
            process.kill()
        assert program("verify", "ledger", *ledger).code == 0
    done = program("import", path, *ledger, "-o", "json")
    assert done.code == 0, done.err
    audited = program("verify", "ledger", *ledger, "-o", "json")
    assert (audited.code, audited.json["evaluated"], audited.json["ledger"]["size"]) == (0, count + 1, count + 1)


@pytest.mark.slow
def test_imports_that_are_killed(tmp_path: Path) -> None:
    killed_imports(tmp_path, 25, 6000)
