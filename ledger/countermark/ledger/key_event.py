"""Key events: the log itself says which keys came, left or were revoked. It can take a key away; who may be trusted is the trust
policy's to say. What follows from the events of a log is in `key_history`."""

import base64
import binascii
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal, Self, TypeAlias

from countermark.attestations import jsontext
from countermark.attestations.codes import Code
from countermark.attestations.envelope import pae
from countermark.attestations.errors import InputError, Location
from countermark.attestations.keys import PublicKey, Signer
from countermark.attestations.located import JsonValue
from countermark.attestations.statement import canonical
from countermark.ledger.leaf import EntryKind
from countermark.ledger.submission import KEY_EVENT_TYPE, Submission, leaf_signature

Event: TypeAlias = Literal["add", "retire", "revoke"]

_EVENTS: Final[dict[str, Event]] = {"add": "add", "retire": "retire", "revoke": "revoke"}
_REQUIRED: Final = frozenset({"event", "principal", "role", "spki"})
_OPTIONAL: Final = frozenset({"since_index", "since_ms", "reason"})

ANY_ROLE: Final = "any"
"""The role in events that retire or revoke: they concern a key in whatever role it signs."""


@dataclass(frozen=True, slots=True)
class KeyEvent:
    """A key of a principal in a role is added, retired or revoked; `spki` is DER.

    Of a revoked key, `since_index` is the first entry that its thief may have signed (the log's first, where it is not known), and
    `since_ms` when it was lost, in milliseconds since 1970 UTC; that is for people, since no clock is proven.
    """

    event: Event
    principal: str
    role: str
    spki: bytes
    since_ms: int | None = None
    reason: str | None = None
    since_index: int | None = None

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read the payload of a kind-2 entry; `InputError` SCHEMA_INVALID for anything else."""
        value = jsontext.loads(payload, "key event")
        if not isinstance(value, dict) or not _REQUIRED <= value.keys() <= _REQUIRED | _OPTIONAL:
            raise _invalid(f"a key event has the fields {', '.join(sorted(_REQUIRED))} and perhaps {', '.join(sorted(_OPTIONAL))}")
        event, principal, role = (_text(value[name], name) for name in ("event", "principal", "role"))
        if event not in _EVENTS:
            raise _invalid(f"event {event!r} is none of {', '.join(_EVENTS)}")
        since_ms, since_index = _count(value.get("since_ms"), "since_ms"), _count(value.get("since_index"), "since_index")
        reason = value.get("reason")
        if not isinstance(reason, str | None):
            raise _invalid("reason must be a text")
        if since_index is not None and event != "revoke":
            raise _invalid("only of a revoked key is it said since which entry it was lost")
        return cls(_EVENTS[event], principal, role, _decode(_text(value["spki"], "spki")), since_ms, reason, since_index)

    def encode(self) -> bytes:
        """The payload bytes: RFC 8785 JSON, absent fields left out."""
        fields: dict[str, JsonValue] = {
            "event": self.event,
            "principal": self.principal,
            "role": self.role,
            "spki": base64.b64encode(self.spki).decode(),
            "since_ms": self.since_ms,
            "since_index": self.since_index,
            "reason": self.reason,
        }
        return canonical({name: value for name, value in fields.items() if value is not None})

    def sign(self, *signers: Signer) -> Submission:
        """The submission that admits this event, signed by each of `signers`."""
        payload = self.encode()
        signed = pae(KEY_EVENT_TYPE, payload)
        return Submission(EntryKind.KEY_EVENT, KEY_EVENT_TYPE, payload, tuple(leaf_signature(signer, signed) for signer in signers))

    @property
    def key_sha256(self) -> bytes:
        """The fingerprint of the key: SHA-256 of its SubjectPublicKeyInfo."""
        return sha256(self.spki).digest()

    @property
    def key(self) -> PublicKey:
        """The key; reading its algorithm raises `InputError` when the bytes are no key that is accepted."""
        return PublicKey(self.spki, f"key event of {self.principal}")

    @property
    def row(self) -> tuple[str, str, str, bytes, int | None, str | None]:
        """The row of table `key_event`, without the entry's index."""
        return (self.event, self.principal, self.role, self.key_sha256, self.since_ms, self.reason)


def _text(value: JsonValue, name: str) -> str:
    if not isinstance(value, str) or not value:
        raise _invalid(f"{name} must be a text")
    return value


def _count(value: JsonValue, name: str) -> int | None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise _invalid(f"{name} must be an integer from 0 on")
    return value


def _decode(text: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _invalid("spki is not base64") from None
    if base64.b64encode(data).decode() != text:
        raise _invalid("spki is not in canonical base64")
    return data


def _invalid(message: str) -> InputError:
    return InputError(Code.SCHEMA_INVALID, message, at=Location("key event"), fix="make it with `countermark key import`")
