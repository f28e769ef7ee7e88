"""Attestations that real projects have published verify offline, and none verifies with a byte changed."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from bundles import REAL, changed_texts, expecting_own, put

from countermark.attestations.errors import InputError, RefusedError

# A changed serial number may be negative, of which cryptography warns before the certificate is refused.
pytestmark = pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning")


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name[:24])
class TestReal:
    def test_it_verifies_without_a_network(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def no_network(*_: Any, **__: Any) -> None:
            raise AssertionError("a socket was made")

        monkeypatch.setattr(socket, "socket", no_network)
        data = path.read_bytes()
        proven = expecting_own(data).verify(data, path.name)
        assert proven.log is not None
        assert proven.log.origin.startswith("rekor.sigstore.dev - ")
        assert [time.by for time in proven.times] == ["transparency-log"]
        assert str(proven.verified.statement.subjects[0].name) in path.name

    def test_no_text_of_it_can_be_changed(self, path: Path) -> None:
        """Every text in some places; `test_no_byte_at_all` has them all."""
        data = path.read_bytes()
        _refuses_all(data, stride=113)

    @pytest.mark.slow
    def test_no_byte_at_all(self, path: Path) -> None:
        _refuses_all(path.read_bytes(), stride=1)

    def test_no_byte_of_the_file_can_be_changed(self, path: Path) -> None:
        """Field names and punctuation too. White space between values is no part of what was signed."""
        data = path.read_bytes()
        verifier, value = expecting_own(data), json.loads(data)
        for at in range(0, len(data), 67):
            changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
            with pytest.raises((RefusedError, InputError)):
                verifier.verify(changed, f"byte {at}")
        spaced = json.dumps(value, indent=2).encode()
        assert verifier.verify(spaced, "spaced").bundle != verifier.verify(data, "as it came").bundle

    def test_numbers_are_texts(self, path: Path) -> None:
        """PEP 740's version is the one value that is no text."""
        data = path.read_bytes()
        value = json.loads(data)
        for other in [2, True, 1.0] if "version" in value else []:
            with pytest.raises(InputError):
                expecting_own(data).verify(json.dumps(put(value, ("version",), other)).encode(), "version")


def _refuses_all(data: bytes, stride: int) -> None:
    verifier, tried = expecting_own(data), 0
    for pointer, changed in changed_texts(json.loads(data), stride):
        with pytest.raises((RefusedError, InputError)):
            verifier.verify(changed, pointer)
        tried += 1
    assert tried > 100
