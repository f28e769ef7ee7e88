"""The documents that the ledger writes itself: entry 0 and key events. What is read is what was written, and nothing else is read."""

import dataclasses
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from ledger_box import START_MS, Box

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError
from countermark.ledger.genesis import Genesis, default_origin
from countermark.ledger.key_event import KeyEvent
from countermark.ledger.leaf import LEAF_VERSION
from countermark.ledger.note import CheckpointSigner, VerifierKey


def _genesis() -> Genesis:
    key = CheckpointSigner("countermark.local/x/00000000", Ed25519PrivateKey.generate()).vkey
    return Genesis.make(key, f"file:sha256:{'ab' * 32}", START_MS)


def test_the_genesis_reads_back() -> None:
    genesis = _genesis()
    assert Genesis.parse(genesis.encode()) == genesis
    assert genesis.leaf_version == LEAF_VERSION
    assert VerifierKey.parse(genesis.log_vkey).name == genesis.origin


def test_two_logs_are_two_incarnations() -> None:
    assert _genesis().incarnation != _genesis().incarnation


@pytest.mark.parametrize(
    "change", [{"origin": 1}, {"created_ms": True}, {"created_ms": "0"}, {"incarnation": "xyz"}, {"more": 1}, {"leaf_version": None}]
)
def test_another_genesis_is_refused(change: dict[str, Any]) -> None:
    fields = {**json.loads(_genesis().encode()), **change}
    with pytest.raises(InputError) as caught:
        Genesis.parse(json.dumps(fields).encode())
    assert caught.value.code is Code.SCHEMA_INVALID


def test_a_field_less_is_refused() -> None:
    fields = json.loads(_genesis().encode())
    for name in fields:
        with pytest.raises(InputError):
            Genesis.parse(json.dumps({key: value for key, value in fields.items() if key != name}).encode())


@pytest.mark.parametrize(("folder", "part"), [("Box", "box"), ("my ledger+1", "my-ledger-1"), ("...", "ledger"), ("日本", "ledger")])
def test_a_default_origin_can_name_a_key(folder: str, part: str) -> None:
    origin = default_origin(folder)
    assert origin.startswith(f"countermark.local/{part}/")
    assert CheckpointSigner(origin, Ed25519PrivateKey.generate()).vkey.name == origin
    assert default_origin(folder) != origin


def test_a_key_event_reads_back(small: Box) -> None:
    for event in (
        KeyEvent("add", "alice", "builder", small.second.public.spki),
        KeyEvent("revoke", "alice", "builder", small.second.public.spki, START_MS, "lost"),
    ):
        assert KeyEvent.parse(event.encode()) == event
        assert event.key.fingerprint.raw == event.key_sha256


@pytest.mark.parametrize(
    "change",
    [
        {"event": "forget"},
        {"principal": ""},
        {"role": None},
        {"spki": "AB=="},
        {"spki": "!"},
        {"since_ms": "1"},
        {"since_ms": True},
        {"x": 1},
    ],
)
def test_another_key_event_is_refused(small: Box, change: dict[str, Any]) -> None:
    event = KeyEvent("add", "alice", "builder", small.second.public.spki, START_MS, "first")
    with pytest.raises(InputError):
        KeyEvent.parse(json.dumps({**json.loads(event.encode()), **change}).encode())


def test_a_key_event_that_is_none_is_not_admitted(small: Box) -> None:
    broken = dataclasses.replace(small.key_event(), payload=b"{}")
    with pytest.raises(InputError):
        small.append(broken)
    assert small.head.size == 9
