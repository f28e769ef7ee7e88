"""One ledger of people that all of these tests fork, and a state folder of the tests' own: no anchor of a user is touched."""

from collections.abc import Iterator

import pytest
from worlds import World, make_world

from .real_ledgers import forked, in_state


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with in_state(tmp_path_factory.mktemp("state")):
        yield


@pytest.fixture(scope="session")
def begun(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A ledger that holds its first entry alone, and `lab.yaml`, which asks for a correct restore of any kind of image."""
    world = make_world(tmp_path_factory.mktemp("begun") / "box")
    policy = world.policy()
    policy.write_text(policy.read_text().replace("oci-manifest]", "oci-manifest, oci-index]"))
    return world


@pytest.fixture
def world(begun: World) -> Iterator[World]:
    """A ledger of its own for each test."""
    with forked(begun) as made:
        yield made
