"""The strict DSSE codec against its specification and against securesystemslib."""

import base64
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from securesystemslib.dsse import Envelope as OtherEnvelope
from signing import envelope_json, statement

from countermark.attestations.codes import Code
from countermark.attestations.envelope import Envelope, pae
from countermark.attestations.errors import InputError

KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
GOOD = envelope_json(statement(), KEY)


def parse(value: dict[str, Any]) -> Envelope:
    return Envelope.parse(json.dumps(value).encode(), "e.json")


def test_pae_of_the_specification() -> None:
    assert pae("http://example.com/HelloWorld", b"hello world") == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


def test_pae_counts_bytes() -> None:
    assert pae("é", b"") == b"DSSEv1 2 \xc3\xa9 0 "


@given(st.binary(max_size=200), st.text(min_size=1, max_size=30))
def test_pae_equals_the_library(payload: bytes, kind: str) -> None:
    assert pae(kind, payload) == OtherEnvelope(payload, kind, {}).pae()


@given(st.binary(max_size=100), st.lists(st.binary(min_size=1, max_size=80), min_size=1, max_size=16))
def test_text_round_trip(payload: bytes, sigs: list[bytes]) -> None:
    signatures = [{"sig": base64.b64encode(sig).decode()} for sig in sigs]
    read = parse({"payload": base64.b64encode(payload).decode(), "payloadType": "t", "signatures": signatures})
    assert Envelope.parse(read.to_json().encode(), "e.json").payload == read.payload == payload
    assert [item.sig for item in read.signatures] == sigs


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"payload": "*" + GOOD["payload"]}, "/payload"),
        ({"payload": GOOD["payload"].rstrip("=") + "\n"}, "/payload"),
        ({"payload": "-/=="}, "/payload"),
        ({"payload": "QR=="}, "/payload"),
        ({"payload": "QQ"}, "/payload"),
        ({"payload": None}, "/payload"),
        ({"payloadType": ""}, "/payloadType"),
        ({"payloadType": 1}, "/payloadType"),
        ({"signatures": []}, "/signatures"),
        ({"signatures": GOOD["signatures"] * 17}, "/signatures"),
        ({"signatures": {}}, "/signatures"),
        ({"signatures": [{"sig": "QQ==", "keyid": 1}]}, "/signatures/0/keyid"),
        ({"signatures": [{}]}, "/signatures/0/sig"),
        ({"signatures": ["x"]}, "/signatures/0/sig"),
    ],
)
def test_what_is_no_envelope(change: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(GOOD | change)
    assert caught.value.at
    assert (caught.value.at.file, caught.value.at.pointer) == ("e.json", pointer)


def test_payload_limit() -> None:
    with pytest.raises(InputError) as caught:
        parse(GOOD | {"payload": base64.b64encode(bytes(16 * 1024 * 1024 + 1)).decode()})
    assert caught.value.code is Code.TOO_LARGE


def test_url_safe_base64_means_the_same() -> None:
    payload = bytes(range(248, 256)) * 3
    safe = base64.urlsafe_b64encode(payload).decode()
    assert "-" in safe
    assert parse(GOOD | {"payload": safe}).payload == payload


def test_unknown_fields_are_ignored() -> None:
    assert parse(GOOD | {"extra": [1]}) == parse(GOOD)
