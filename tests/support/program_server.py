"""A warm process that forks the program, since to import it anew takes longer than most commands do.

`program_server.py SOCKET` accepts connections at a Unix socket. Each brings, as JSON, arguments, folder and environment, with the three
streams as file descriptors, and gets the exit code back. Nothing is ever run in the process itself, so each program starts as a new one
does, with everything imported already. It ends with its standard input.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import select
import socket
import sys
from contextlib import suppress
from types import ModuleType
from typing import NoReturn, TypedDict

LIMIT = 1 << 20
"""Bytes that a request may have."""


def preload() -> None:
    """Import all of the program that needs no extra; what it lacks here, it would lack in a new process too."""
    for room in ("cli", "actions", "attestations", "ledger", "contracts", "cuda_restore", "recorders", "web"):
        _import_all(importlib.import_module(f"countermark.{room}"))
    importlib.import_module("countermark.migrations.runner")


def _import_all(package: ModuleType) -> None:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        with suppress(ImportError):
            importlib.import_module(found.name)


def serve(path: str) -> None:
    """Fork a minder for each connection, until standard input ends."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while listener in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            if not os.fork():
                listener.close()
                mind(connection)
            connection.close()
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


def mind(connection: socket.socket) -> NoReturn:
    """Fork the program, wait for it, and tell how it ended, as `subprocess` would."""
    data, streams, _, _ = socket.recv_fds(connection, LIMIT, 3)
    request: Request = json.loads(data)
    child = os.fork()
    if not child:
        connection.close()
        become(request, streams)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    connection.sendall(str(code).encode())
    os._exit(0)


class Request(TypedDict):
    """What a connection brings beside the streams."""

    arguments: list[str]
    folder: str
    environment: dict[str, str]


def become(request: Request, streams: list[int]) -> NoReturn:
    """Be the program that was asked for; its end leaves out the taking down of all that was imported."""
    from countermark.cli.entry import main

    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace")
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = request["arguments"]
    try:
        main()
    except SystemExit as end:
        atexit._run_exitfuncs()
        os._exit(end.code if isinstance(end.code, int) else 1)


if __name__ == "__main__":
    preload()
    gc.freeze()
    serve(sys.argv[1])
