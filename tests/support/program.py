"""The installed program as a user runs it: a process, its exit code, its two streams."""

import atexit
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

PROGRAM = Path(sys.executable).with_name("countermark")
_SERVER = Path(__file__).with_name("program_server.py")
_DROPPED = ("COUNTERMARK_", "PYTHONPATH", "GIT_")
_AT_START = ("LD_", "PYTHON", "OPENSSL_")
"""Variables that count when a process starts, so that a forked one would not obey them."""


@dataclass(frozen=True)
class Done:
    """What a run left: exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which must be one JSON text."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Program:
    """Runs the program in a folder, with a state folder of its own so that no anchor of the user's is touched.

    Each run is a process of its own, forked from one that has imported the program: a start from nothing takes ten times as long, and has
    tests of its own (`test_exit_codes`, the pages whose commands are run, the wheel).
    """

    folder: Path
    state: Path

    def __call__(self, *arguments: str | Path, stdin: bytes | None = None, **environment: str) -> Done:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(_DROPPED)}
        clean |= {"XDG_STATE_HOME": str(self.state), "NO_COLOR": "1"} | environment
        run = _started if any(name.startswith(_AT_START) for name in environment) else _forked
        return run([str(PROGRAM), *map(str, arguments)], self.folder, clean, stdin or b"")


def _started(command: Sequence[str], folder: Path, environment: Mapping[str, str], stdin: bytes) -> Done:
    done = subprocess.run(command, cwd=folder, env=environment, input=stdin, capture_output=True, check=False)
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def _forked(command: Sequence[str], folder: Path, environment: Mapping[str, str], stdin: bytes) -> Done:
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(_server(os.getpid()))
            request = {"arguments": list(command), "folder": str(folder), "environment": dict(environment)}
            socket.send_fds(connection, [json.dumps(request).encode()], [given.fileno(), out.fileno(), err.fileno()])
            code = int(connection.recv(64))
        out.seek(0)
        err.seek(0)
        return Done(code, out.read().decode(), err.read().decode())


@cache
def _server(owner: int) -> str:
    """The socket of a server for this process, started at the first use."""
    path = Path(tempfile.mkdtemp(prefix=f"countermark-{owner}-")) / "socket"
    command = [sys.executable, str(_SERVER), str(path)]
    alone = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # a process with threads is not to be forked
    server = subprocess.Popen(command, env=alone, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdin
    assert server.stdout
    assert server.stdout.readline() == "ready\n"
    atexit.register(_end, server, path)
    return str(path)


def _end(server: "subprocess.Popen[str]", path: Path) -> None:
    server.communicate()
    path.unlink()
    path.parent.rmdir()
