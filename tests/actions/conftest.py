"""Worlds for the tests of this folder; their anchors lie in folders of the test run."""

from pathlib import Path

import pytest
from worlds import World, full_world, make_world


@pytest.fixture(scope="session")
def full(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A world of every kind of entry, which nobody writes to any more."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        return full_world(tmp_path_factory.mktemp("full") / "box")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world with people and no entries but the first."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return make_world(tmp_path / "box")
