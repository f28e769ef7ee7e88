"""One ledger for the tests that only read, and a fresh one for those that write."""

import shutil
from pathlib import Path

import pytest
from program import Program


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """The program in an empty folder."""
    return Program(tmp_path, tmp_path / "state")


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a new ledger in `box` and the anchor of it in `state`, for tests to copy: making one takes a second each time."""
    folder = tmp_path_factory.mktemp("made")
    done = Program(folder, folder / "state")("init", "box")
    assert done.code == 0, done.err
    return folder


@pytest.fixture
def box(program: Program, made: Path) -> Path:
    """A new ledger, `box/countermark.db`, in the program's folder."""
    shutil.copytree(made / "box", program.folder / "box")
    shutil.copytree(made / "state", program.state)
    return program.folder / "box" / "countermark.db"
