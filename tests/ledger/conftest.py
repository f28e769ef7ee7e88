"""Small ledgers, made once and copied for each test that changes them."""

import hashlib
from pathlib import Path

import pytest
from ledger_box import Box, make_box, raw, varied

from countermark.attestations.codes import Code
from countermark.ledger.submission import Refusal


@pytest.fixture(scope="session")
def _small(tmp_path_factory: pytest.TempPathFactory) -> Box:
    box = make_box(tmp_path_factory.mktemp("small"))
    box.append(*varied(box))
    return box


@pytest.fixture
def small(_small: Box, tmp_path: Path) -> Box:
    """A copy of a ledger with one entry of each sort."""
    return _small.copy(tmp_path / "small")


@pytest.fixture(scope="session")
def _pattern(tmp_path_factory: pytest.TempPathFactory) -> Box:
    box = make_box(tmp_path_factory.mktemp("pattern"))
    box.append(*varied(box))
    box.append(*(box.passed(number) for number in range(250)))
    for number in range(250, 256):
        box.append(box.passed(number))
    with box.writer() as writer:
        subjects = (f"oci-config:sha256:{'ab' * 32}",)
        writer.quarantine([Refusal(Code.SIG_INVALID, "no key holds", hashlib.sha256(b"x").digest(), subjects)])
    connection = raw(box.path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return box


@pytest.fixture
def large(_pattern: Box, tmp_path: Path) -> Box:
    """A copy of a ledger with entries of each sort, a full tile, and notes of several sizes."""
    return _pattern.copy(tmp_path / "large")
