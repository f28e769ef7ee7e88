"""Every ledger of these tests remembers its head in a state folder of the tests, never in that of whoever runs them."""

from collections.abc import Iterator

import pytest

from .real_ledgers import in_state


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with in_state(tmp_path_factory.mktemp("state")):
        yield
