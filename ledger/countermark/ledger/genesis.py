"""Entry 0: what this log is, signed by its operator, so that its origin and its age are no mere claim of the database."""

import re
import secrets
from dataclasses import dataclass
from typing import Any, Final, Self

from countermark.attestations import jsontext
from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.attestations.keys import Signer
from countermark.attestations.statement import canonical
from countermark.ledger.leaf import LEAF_VERSION, EntryKind
from countermark.ledger.note import VerifierKey
from countermark.ledger.submission import GENESIS_TYPE, Submission

INCARNATION_BYTES: Final = 16
_TYPES: Final[dict[str, type]] = {
    "origin": str,
    "incarnation": str,
    "leaf_version": int,
    "created_ms": int,
    "log_vkey": str,
    "trust_digest": str,
}


@dataclass(frozen=True, slots=True)
class Genesis:
    """The facts of entry 0. `incarnation` tells two logs of one origin apart; `created_ms` is milliseconds since 1970 UTC;
    `trust_digest` is the digest of the trust policy that the log began under."""

    origin: str
    incarnation: bytes
    leaf_version: int
    created_ms: int
    log_vkey: str
    trust_digest: str

    @classmethod
    def make(cls, log_key: VerifierKey, trust_digest: str, created_ms: int) -> Self:
        """The genesis of a new log with this key, whose name is the log's origin."""
        return cls(log_key.name, secrets.token_bytes(INCARNATION_BYTES), LEAF_VERSION, created_ms, str(log_key), trust_digest)

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read the payload of entry 0. `InputError` SCHEMA_INVALID unless it has exactly the fields of this version."""
        value = jsontext.loads(payload, "entry 0")
        if not isinstance(value, dict) or {name: type(item) for name, item in value.items()} != _TYPES:
            raise _invalid(f"the genesis must have exactly the fields {', '.join(_TYPES)}")
        fields: dict[str, Any] = value
        try:
            incarnation = bytes.fromhex(fields.pop("incarnation"))
        except ValueError:
            raise _invalid("the incarnation is not hexadecimal") from None
        return cls(incarnation=incarnation, **fields)

    def encode(self) -> bytes:
        """The payload bytes: RFC 8785 JSON."""
        return canonical({**{name: getattr(self, name) for name in _TYPES}, "incarnation": self.incarnation.hex()})

    def sign(self, operator: Signer) -> Submission:
        """The submission of entry 0."""
        return Submission.sign(EntryKind.POLICY, GENESIS_TYPE, self.encode(), operator)

    @property
    def row(self) -> tuple[int, str, bytes, int, int, str, str]:
        """The row of table `ledger`."""
        return (1, self.origin, self.incarnation, self.leaf_version, self.created_ms, self.log_vkey, self.trust_digest)


def default_origin(directory_name: str) -> str:
    """`countermark.local/NAME/RANDOM`: a name that no other log has, where the operator gives none."""
    name = re.sub(r"[^a-z0-9._-]+", "-", directory_name.lower()).strip("-.") or "ledger"
    return f"countermark.local/{name}/{secrets.token_hex(4)}"


def _invalid(message: str) -> InputError:
    return InputError(Code.SCHEMA_INVALID, message, at=Location("entry 0"), fix="run `countermark verify ledger`")
