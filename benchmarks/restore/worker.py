"""Each contender runs in a process of its own, so that nobody's threads, allocator or imports are in another's time."""

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType

from benchmarks.restore.contender import Detail, Run
from benchmarks.restore.contenders import BY_NAME
from benchmarks.restore.dataset import DataSet
from countermark.attestations.codes import Code
from countermark.attestations.errors import CannotTellError, InputError


@dataclass(frozen=True, slots=True)
class Sample:
    """One run: nanoseconds on the clock, nanoseconds of all its threads on processors, and what it says of itself."""

    wall_ns: int
    cpu_ns: int
    detail: Detail


class Worker(AbstractContextManager["Worker"]):
    """A contender in its process, prepared and warmed up by one run. `CannotTellError` with the reason where it cannot take part."""

    def __init__(self, name: str, root: Path) -> None:
        context = get_context("spawn")
        self.name = name
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, name, root), daemon=True)
        self._process.start()
        theirs.close()
        try:
            self.run()
        except BaseException:
            self.close()
            raise

    def run(self) -> Sample:
        """Run once more."""
        self._pipe.send(True)
        try:
            answer = self._pipe.recv()
        except EOFError:
            raise CannotTellError(Code.UNSUPPORTED, "its process died", fix="see what it wrote to the terminal") from None
        if not isinstance(answer, Sample):
            raise CannotTellError(Code.UNSUPPORTED, str(answer), fix="leave it out")
        return answer

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _serve(pipe: Connection, name: str, root: Path) -> None:
    """In the process: a sample for every message, or why there is none, until the other end closes."""
    try:
        data = DataSet.open(root)
        with BY_NAME[name].open(data) as run:
            while True:
                pipe.recv()
                pipe.send(_sample(run, data.encoded_bytes))
    except EOFError:
        return
    except CannotTellError as error:
        pipe.send(error.message)


def _sample(run: Run, wanted_bytes: int) -> Sample:
    cpu, wall = time.process_time_ns(), time.perf_counter_ns()
    tell = run()
    wall, cpu = time.perf_counter_ns() - wall, time.process_time_ns() - cpu
    detail = tell()
    if detail["bytes"] != wanted_bytes:
        raise InputError(Code.INCOMPLETE, f"{detail['bytes']} of {wanted_bytes} bytes were loaded", fix="leave this contender out")
    return Sample(wall, cpu, detail)
