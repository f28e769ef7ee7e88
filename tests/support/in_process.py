"""The program's command line, called in this process: what a new process would do, without the second that starting one takes."""

import contextlib
import io
import os
from dataclasses import dataclass
from pathlib import Path

from program import Done

from countermark.cli.app import run
from countermark.cli.output import Settings


@dataclass(frozen=True)
class InProcess:
    """Runs commands in a folder, with a state folder of its own so that no anchor of the user's is touched."""

    folder: Path
    state: Path

    def __call__(self, *arguments: str | Path) -> Done:
        out, err = io.StringIO(), io.StringIO()
        before, folder = dict(os.environ), Path.cwd()
        for name in [name for name in os.environ if name.startswith(("COUNTERMARK_", "GITHUB_"))]:
            del os.environ[name]
        os.environ |= {"XDG_STATE_HOME": str(self.state), "NO_COLOR": "1"}
        os.chdir(self.folder)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = run([str(argument) for argument in arguments])
        finally:
            os.chdir(folder)
            os.environ.clear()
            os.environ |= before
            Settings.debug = Settings.quiet = Settings.verbose = False
        return Done(code, out.getvalue(), err.getvalue())
