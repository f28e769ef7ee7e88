"""A state folder of the tests' own, for the anchors of ledgers that the program itself makes."""

from collections.abc import Iterator

import pytest

from .lab import Lab


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Ledgers that the cases take copies of."""
    return Lab(tmp_path_factory.mktemp("lab"))
