"""One ledger for the tests that only read, and a fresh one for those that write."""

from pathlib import Path

import pytest
from program import Program


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """The program in an empty folder."""
    return Program(tmp_path, tmp_path / "state")


@pytest.fixture
def box(program: Program) -> Path:
    """A new ledger, `box/countermark.db`, in the program's folder."""
    done = program("init", "box")
    assert done.code == 0, done.err
    return program.folder / "box" / "countermark.db"
