"""A ledger to upgrade."""

from pathlib import Path

import pytest
from ledger_box import Box, make_box, varied


@pytest.fixture
def small(tmp_path: Path) -> Box:
    """A ledger with one entry of each sort."""
    box = make_box(tmp_path / "small")
    box.append(*varied(box))
    return box
