"""A page of documentation whose commands are run, in its order, and whose shown lines must come out."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from program import PROGRAM

ROOT = Path(__file__).parents[2]
_MARK = "@exit@"


@dataclass(frozen=True)
class Ran:
    """A command, its exit code, and what it printed on either stream."""

    command: str
    code: int
    out: str


class CommandPage:
    """The code blocks of a page: `console` blocks hold commands, blocks without a language what they print."""

    def __init__(self, name: str) -> None:
        self.text = (ROOT / "docs" / name).read_text()
        self.blocks: list[tuple[str, str]] = re.findall(r"^```(\w*)\n(.*?)^```$", self.text, re.MULTILINE | re.DOTALL)
        self.commands = [line.removeprefix("$ ") for language, text in self.blocks if language == "console" for line in text.splitlines()]
        self.shown = [line for language, text in self.blocks if not language for line in text.splitlines()]

    def run(self, folder: Path) -> list[Ran]:
        """Run every command in one shell, with `folder` for `/tmp`."""
        script = "\n".join(f"{command.replace('/tmp', str(folder))}\necho {_MARK}$?" for command in self.commands)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("COUNTERMARK_", "GIT_", "GITHUB_"))}
        environment = kept | {"PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "XDG_STATE_HOME": str(folder / "state"), "NO_COLOR": "1"}
        done = subprocess.run(
            ["bash", "-c", script], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        parts = re.split(rf"{_MARK}(\d+)\n", done.stdout)
        return [Ran(command, int(code), out) for command, out, code in zip(self.commands, parts[::2], parts[1::2], strict=False)]

    def check(self, ran: list[Ran]) -> None:
        """Each command ended as the page says (`# exit N`, else 0), and what the page shows came out; `…` stands for anything."""
        assert len(ran) == len(self.commands)
        for item in ran:
            stated = re.search(r"# exit (\d+)$", item.command)
            assert item.code == (int(stated[1]) if stated else 0), f"{item.command}\n{item.out}"
        printed = "\n".join(item.out for item in ran)
        for line in self.shown:
            pattern = ".*".join(map(re.escape, line.split("…")))
            assert re.search(rf"^{pattern}$", printed, re.MULTILINE), line

    def links(self) -> list[str]:
        """The files that the page refers to, from its own folder."""
        return [target for target in re.findall(r"\]\(([^)#]+)", self.text) if "://" not in target]
