"""The process border: standard library only, so that even a broken installation exits by the table.

Python's own exit code for a crash is 1, which a gate would read as "no"; whatever is not an answer leaves here as 70. The two streams
may be closed or full: what cannot be said is lost, the exit code is not.
"""

import os
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import NoReturn

_INTERRUPTED = 130
_PIPE_CLOSED = 141
_CRASH = 70
_GLOBAL_FLAGS = frozenset({"--debug", "--quiet", "--verbose", "--no-color"})


def main() -> NoReturn:
    """Run the program on `sys.argv` and exit by the table of `docs/codes.md`."""
    signal.signal(signal.SIGINT, _interrupted)
    _open_closed_streams()
    arguments = _flags_first(sys.argv[1:])
    try:
        code = _run(arguments)
    except BrokenPipeError:
        code = _PIPE_CLOSED
    except BaseException as error:  # noqa: BLE001 - the one place where everything ends, so that nothing ends as exit 1
        code = _crash(error, debug="--debug" in arguments)
    _leave(code)


def _interrupted(number: int, frame: FrameType | None) -> NoReturn:
    """Ctrl-C unwinds as an exit of its own: click would turn a KeyboardInterrupt into exit 1."""
    del number, frame
    raise SystemExit(_INTERRUPTED)


def _open_closed_streams() -> None:
    """A stream that was closed by the caller takes what is written and forgets it."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115 - a stream for the life of the process


def _run(arguments: list[str]) -> int:
    from countermark.cli.app import run

    return run(arguments)


def _flags_first(arguments: list[str]) -> list[str]:
    """Global flags may stand anywhere before `--`; Typer wants them first."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    flags = [argument for argument in arguments[:end] if argument in _GLOBAL_FLAGS]
    return flags + [argument for argument in arguments[:end] if argument not in _GLOBAL_FLAGS] + arguments[end:]


def _crash(error: BaseException, *, debug: bool) -> int:
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        return error.code
    with suppress(OSError, ValueError):
        if debug:
            import traceback

            traceback.print_exception(error)
        hint = "" if debug else "; run again with --debug and report what it shows"
        sys.stderr.write(f"countermark: internal error: {type(error).__name__}: {error}{hint}\n")
    return _CRASH


def _leave(code: int) -> NoReturn:
    """Exit with this code whatever becomes of the streams: Python's own flush at shutdown would replace it."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)
