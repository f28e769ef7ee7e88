"""A build hook: the wheel carries the commit that it was built from, so that an installed program can sign its runs with it."""

import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACE: Final = "countermark/actions/restore/built_from.json"
"""Where in the wheel; `countermark.actions.restore.engine_source` reads it."""

PACKED: Final = ("apps", "attestations", "contracts", "cuda_restore", "ledger", "migrations", "tests/data/evidence", "pyproject.toml")
"""What a wheel is made of, as far as its programs can tell; a file there that git does not know makes it another source too."""


class SourceCommit(BuildHookInterface[BuilderConfig]):
    """Writes `{commit, dirty}` into the wheel. A tree without git makes a wheel without it, and the build says so."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file to a wheel; an editable install runs from a checkout, which says it itself."""
        if version == "editable":
            return
        root = Path(self.root)
        commit = _git(root, "rev-parse", "--verify", "HEAD") if _git(root, "rev-parse", "--show-toplevel") == str(root.resolve()) else None
        if commit is None:
            self.app.display_warning("not built from a git checkout: the wheel does not say which commit it is, so it cannot sign a run")
            return
        self._folder = TemporaryDirectory(prefix="countermark-build-")
        file = Path(self._folder.name) / "built_from.json"
        dirty = _git(root, "status", "--porcelain", "--untracked-files=all", "--", *PACKED) != ""
        file.write_text(json.dumps({"commit": f"git-commit:{commit}", "dirty": dirty}) + "\n")
        build_data["force_include"][str(file)] = PLACE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - hatchling's signature
        """Remove the file that was packed."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()


def _git(root: Path, *arguments: str) -> str | None:
    """What git says; nothing where it is not installed or refuses."""
    try:
        return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
