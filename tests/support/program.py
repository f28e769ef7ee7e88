"""The installed program as a user runs it: a process, its exit code, its two streams."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAM = Path(sys.executable).with_name("countermark")


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
    """Runs the program in a folder, with a state folder of its own so that no anchor of the user's is touched."""

    folder: Path
    state: Path

    def __call__(self, *arguments: str | Path, stdin: bytes | None = None, **environment: str) -> Done:
        dropped = ("COUNTERMARK_", "PYTHONPATH", "GIT_")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        clean |= {"XDG_STATE_HOME": str(self.state), "NO_COLOR": "1"} | environment
        command = [str(PROGRAM), *map(str, arguments)]
        done = subprocess.run(command, cwd=self.folder, env=clean, input=stdin or b"", capture_output=True, check=False)
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())
