"""The rooms are portions of one namespace, and install no name but `countermark`."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ["attestations", "ledger", "contracts", "cuda_restore", "migrations"]
ROOTS = [*ROOMS, "apps"]


def test_no_file_hides_the_namespace() -> None:
    """One `countermark/__init__.py` would hide every other portion."""
    assert [path for root in ROOTS for path in (ROOT / root).glob("countermark/__init__.py")] == []


@pytest.mark.parametrize("root", ROOTS)
def test_a_root_holds_the_namespace_only(root: str) -> None:
    folders = {path.name for path in (ROOT / root).iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == {"countermark"}


@pytest.mark.parametrize("room", ROOMS)
def test_no_room_is_a_top_level_module(room: str, tmp_path: Path) -> None:
    """The tool runs in other people's repositories, where folders of these names are common."""
    done = subprocess.run([sys.executable, "-I", "-c", f"import {room}"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ModuleNotFoundError" in done.stderr


def test_every_portion_is_typed() -> None:
    packages = [path.parent for root in ROOTS for path in (ROOT / root).glob("countermark/*/__init__.py")]
    assert packages
    assert [package for package in packages if not (package / "py.typed").exists()] == []


def test_somebody_elses_ledger_folder_is_not_imported(tmp_path: Path) -> None:
    """The program starts in a folder with modules of the rooms' names, and takes none of them."""
    for room in ROOMS:
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").write_text("raise RuntimeError('imported from the current folder')\n")
    (tmp_path / "countermark").mkdir()
    (tmp_path / "countermark" / "__init__.py").write_text("raise RuntimeError('imported from the current folder')\n")
    done = subprocess.run(
        [sys.executable, "-I", "-m", "countermark", "--version"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split()[0]) == (0, "countermark"), done.stderr
