"""DSSE envelopes: what was signed, and by which bytes.

Source of the rules: the DSSE specification (protocol.md, envelope.md, v1.0.2). `keyid` is an unauthenticated hint and decides nothing;
base64 is accepted in the standard or the URL-safe alphabet, never mixed, never with junk, always with canonical padding.
"""

import base64
import binascii
import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from countermark.attestations import jsontext
from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.attestations.located import JsonValue

PAYLOAD_TYPE = "application/vnd.in-toto+json"
MAX_ENVELOPE = 24 * 1024 * 1024
MAX_PAYLOAD = 16 * 1024 * 1024
MAX_SIGNATURES = 16

_STATEMENT_TYPES = re.compile(r"application/vnd\.in-toto(?:\.[A-Za-z0-9._-]+)?\+json\Z")
_STANDARD = re.compile(r"[A-Za-z0-9+/]*={0,2}\Z")
_URL_SAFE = re.compile(r"[A-Za-z0-9_-]*={0,2}\Z")


@dataclass(frozen=True, slots=True)
class Signature:
    """One signature as it came: its bytes, and a key id that only helps to find a key."""

    sig: bytes
    keyid: str | None = None


@dataclass(frozen=True, slots=True)
class Envelope:
    """A payload with its type and 1 to 16 signatures. `source` names where it was read, for errors."""

    payload: bytes
    payload_type: str
    signatures: tuple[Signature, ...]
    source: str = "-"

    @classmethod
    def parse(cls, data: bytes, source: str) -> Self:
        """Read one JSON envelope strictly; `InputError` for anything that two readers could read differently."""
        return cls.from_json(jsontext.loads(data, source, limit=MAX_ENVELOPE), source)

    @classmethod
    def from_json(cls, value: JsonValue, source: str) -> Self:
        """As `parse`, from JSON that was read strictly. Unknown fields are ignored."""
        fields = value if isinstance(value, dict) else {}
        payload_type, signatures = fields.get("payloadType"), fields.get("signatures")
        if not isinstance(payload_type, str) or not payload_type:
            raise _error(source, "/payloadType", "an envelope needs a payloadType", "give a DSSE envelope")
        if not isinstance(signatures, list) or not 1 <= len(signatures) <= MAX_SIGNATURES:
            raise _error(source, "/signatures", f"an envelope needs 1 to {MAX_SIGNATURES} signatures", "sign the statement")
        payload = decode_base64(fields.get("payload"), source, "/payload")
        if len(payload) > MAX_PAYLOAD:
            size = f"the payload has {len(payload)} bytes; at most {MAX_PAYLOAD} are read"
            raise InputError(Code.TOO_LARGE, size, at=Location(source, pointer="/payload"), fix="store large data by digest")
        return cls(payload, payload_type, tuple(_signature(item, source, n) for n, item in enumerate(signatures)), source)

    def pae(self) -> bytes:
        """The bytes that the signatures are over."""
        return pae(self.payload_type, self.payload)

    @property
    def holds_statement(self) -> bool:
        """Whether the payload type is one under which in-toto Statements are signed."""
        return is_statement_type(self.payload_type)

    def to_json(self) -> str:
        """The envelope as one line of JSON, for a `.json` or `.intoto.jsonl` file."""
        signatures = [{"keyid": item.keyid or "", "sig": base64.b64encode(item.sig).decode()} for item in self.signatures]
        payload = base64.b64encode(self.payload).decode()
        return json.dumps({"payload": payload, "payloadType": self.payload_type, "signatures": signatures})


@lru_cache(maxsize=64)
def is_statement_type(payload_type: str) -> bool:
    """Whether a payload type is one under which in-toto Statements are signed."""
    return bool(_STATEMENT_TYPES.match(payload_type))


def pae(payload_type: str, payload: bytes) -> bytes:
    """DSSE pre-authentication encoding; lengths count bytes, not characters."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def decode_base64(text: JsonValue, source: str, pointer: str) -> bytes:
    """The bytes of a base64 string in exactly one alphabet with canonical padding; `InputError` otherwise."""
    if not isinstance(text, str):
        raise _error(source, pointer, "a base64 string is expected here", "encode it in base64")
    standard = bool(_STANDARD.match(text))
    if not standard and not _URL_SAFE.match(text):
        raise _error(source, pointer, "this is not base64 in one alphabet", "encode it with the standard alphabet")
    try:
        decode, encode = (base64.b64decode, base64.b64encode) if standard else (base64.urlsafe_b64decode, base64.urlsafe_b64encode)
        data = decode(text)
    except binascii.Error:
        raise _error(source, pointer, "this base64 is not padded to a multiple of four", "pad it with '='") from None
    if encode(data) != text.encode():
        raise _error(source, pointer, "this base64 is not in its canonical form", "encode it with a base64 library")
    return data


def _signature(item: JsonValue, source: str, number: int) -> Signature:
    fields = item if isinstance(item, dict) else {}
    keyid = fields.get("keyid")
    if not isinstance(keyid, str | None):
        raise _error(source, f"/signatures/{number}/keyid", "a keyid is text", "leave it out or make it text")
    return Signature(decode_base64(fields.get("sig"), source, f"/signatures/{number}/sig"), keyid)


def _error(source: str, pointer: str, message: str, fix: str) -> InputError:
    return InputError(Code.SCHEMA_INVALID, message, at=Location(source, pointer=pointer), fix=fix)
