"""A wheel says which commit it was built from, and its program signs runs with that; one built outside git says none."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACE = "countermark/actions/restore/built_from.json"
ASK = """
from countermark.actions.restore.engine_source import engine_source
found = engine_source(None)
print(found.engine.source, found.dirty)
"""


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def build(source: Path, to: Path) -> tuple[Path, str]:
    """The wheel, and what the build said."""
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(to)], cwd=source, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return next(to.glob("*.whl")), done.stdout + done.stderr


def ask_installed(wheel: Path, to: Path) -> subprocess.CompletedProcess[str]:
    """What the program of the wheel says of itself, unpacked in a folder of its own, before anything that this environment has."""
    zipfile.ZipFile(wheel).extractall(to)
    return subprocess.run(
        [sys.executable, "-c", ASK], cwd=to, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(to)}
    )


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tracked files of this checkout as they are now, without git."""
    if not (ROOT / ".git").exists():
        pytest.skip("the tests do not run from a git checkout")
    copy = tmp_path_factory.mktemp("source")
    for name in git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard").splitlines():
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
    return copy


def test_the_installed_program_knows_the_commit_it_was_built_from(source: Path, tmp_path: Path) -> None:
    checkout = shutil.copytree(source, tmp_path / "checkout")
    git(checkout, "init", "-q")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-qm", "all of it")
    commit = git(checkout, "rev-parse", "HEAD")
    (checkout / "notes.txt").write_text("beside what is packed\n")
    wheel, _ = build(checkout, tmp_path / "clean")
    assert json.loads(zipfile.ZipFile(wheel).read(PLACE)) == {"commit": f"git-commit:{commit}", "dirty": False}
    assert [name for name in zipfile.ZipFile(wheel).namelist() if "fake" in name or name.endswith((".so", ".cpp", ".h"))] == []
    assert ask_installed(wheel, tmp_path / "installed").stdout == f"git-commit:{commit} False\n"
    (checkout / "apps" / "countermark" / "actions" / "more.py").write_text("packed, and in no commit\n")
    wheel, _ = build(checkout, tmp_path / "dirty")
    assert json.loads(zipfile.ZipFile(wheel).read(PLACE)) == {"commit": f"git-commit:{commit}", "dirty": True}
    assert ask_installed(wheel, tmp_path / "installed-dirty").stdout == f"git-commit:{commit} True\n"


def test_a_tree_inside_somebody_elses_repository_is_not_that_repositorys_commit(source: Path, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-qm", "theirs", "--allow-empty")
    wheel, said = build(shutil.copytree(source, tmp_path / "vendored"), tmp_path / "out")
    assert "not built from a git checkout" in said
    assert PLACE not in zipfile.ZipFile(wheel).namelist()
    done = ask_installed(wheel, tmp_path / "installed")
    assert "neither runs from a checkout nor was built in one" in done.stderr
    assert done.returncode == 1
