"""A ledger whose pages are looked at."""

import pytest
from worlds import World, full_world


@pytest.fixture(scope="session")
def full(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A world of every kind of entry, which nobody writes to any more."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        return full_world(tmp_path_factory.mktemp("full") / "box")
