"""Key events: the log itself says which keys came, left or were revoked. It can take a key away; who may be trusted is the trust
policy's to say."""

import base64
import binascii
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal, Self, TypeAlias

from countermark.attestations import jsontext
from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.attestations.keys import PublicKey, Signer
from countermark.attestations.located import JsonValue
from countermark.attestations.statement import canonical
from countermark.ledger.leaf import EntryKind
from countermark.ledger.submission import KEY_EVENT_TYPE, Submission

Event: TypeAlias = Literal["add", "retire", "revoke"]

_EVENTS: Final[dict[str, Event]] = {"add": "add", "retire": "retire", "revoke": "revoke"}
_REQUIRED: Final = frozenset({"event", "principal", "role", "spki"})
_OPTIONAL: Final = frozenset({"since_ms", "reason"})


@dataclass(frozen=True, slots=True)
class KeyEvent:
    """A key of a principal in a role is added, retired or revoked; `since_ms` is milliseconds since 1970 UTC, `spki` DER."""

    event: Event
    principal: str
    role: str
    spki: bytes
    since_ms: int | None = None
    reason: str | None = None

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read the payload of a kind-2 entry; `InputError` SCHEMA_INVALID for anything else."""
        value = jsontext.loads(payload, "key event")
        if not isinstance(value, dict) or not _REQUIRED <= value.keys() <= _REQUIRED | _OPTIONAL:
            raise _invalid(f"a key event has the fields {', '.join(sorted(_REQUIRED))} and perhaps {', '.join(sorted(_OPTIONAL))}")
        event, principal, role = (_text(value[name], name) for name in ("event", "principal", "role"))
        if event not in _EVENTS:
            raise _invalid(f"event {event!r} is none of {', '.join(_EVENTS)}")
        since_ms, reason = value.get("since_ms"), value.get("reason")
        if not isinstance(since_ms, int | None) or isinstance(since_ms, bool) or not isinstance(reason, str | None):
            raise _invalid("since_ms must be an integer and reason a text")
        return cls(_EVENTS[event], principal, role, _decode(_text(value["spki"], "spki")), since_ms, reason)

    def encode(self) -> bytes:
        """The payload bytes: RFC 8785 JSON, absent fields left out."""
        fields: dict[str, JsonValue] = {
            "event": self.event,
            "principal": self.principal,
            "role": self.role,
            "spki": base64.b64encode(self.spki).decode(),
            "since_ms": self.since_ms,
            "reason": self.reason,
        }
        return canonical({name: value for name, value in fields.items() if value is not None})

    def sign(self, signer: Signer) -> Submission:
        """The submission that admits this event."""
        return Submission.sign(EntryKind.KEY_EVENT, KEY_EVENT_TYPE, self.encode(), signer)

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
