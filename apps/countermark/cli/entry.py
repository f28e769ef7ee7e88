"""The process border: standard library only, so that even a broken installation exits by the table.

Python's own exit code for a crash is 1, which a gate would read as "no"; whatever is not an answer leaves here as 70.
"""

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

_INTERRUPTED = 130
_PIPE_CLOSED = 141
_CRASH = 70
_GLOBAL_FLAGS = frozenset({"--debug", "--quiet", "--verbose", "--no-color"})


def main() -> NoReturn:
    """Run the program on `sys.argv` and exit by the table of `docs/codes.md`."""
    signal.signal(signal.SIGINT, _interrupted)
    arguments = _flags_first(sys.argv[1:])
    try:
        code = _run(arguments)
    except BaseException as error:  # noqa: BLE001 - the one place where everything ends, so that nothing ends as exit 1
        code = _crash(error, debug="--debug" in arguments)
    _leave(code)


def _interrupted(number: int, frame: FrameType | None) -> NoReturn:
    """Ctrl-C unwinds as an exit of its own: click would turn a KeyboardInterrupt into exit 1."""
    del number, frame
    raise SystemExit(_INTERRUPTED)


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
    if debug:
        import traceback

        traceback.print_exception(error)
    hint = "" if debug else "; run again with --debug and report what it shows"
    print(f"countermark: internal error: {type(error).__name__}: {error}{hint}", file=sys.stderr)  # noqa: T201 - no console exists yet
    return _CRASH


def _leave(code: int) -> NoReturn:
    """Exit without Python's own flush at shutdown, which would print a trace when the reader of a pipe has gone."""
    if code == _PIPE_CLOSED:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
