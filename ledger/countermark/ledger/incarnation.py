"""A new incarnation: the entry (kind 6) with which a log goes on after it has lost entries, and says so.

A log that was restored from an old backup signs other entries at places that it had signed before. That cannot be undone, and whoever
holds a checkpoint of the lost part will see it; so the log itself names the newest head that was lost, and every audit shows it.
"""

import re
import secrets
from dataclasses import dataclass
from typing import Final, Self

from countermark.attestations import jsontext
from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.attestations.keys import Signer
from countermark.attestations.located import JsonValue, as_object
from countermark.attestations.statement import canonical
from countermark.ledger.genesis import INCARNATION_BYTES
from countermark.ledger.leaf import EntryKind
from countermark.ledger.note import Checkpoint
from countermark.ledger.submission import INCARNATION_TYPE, Submission

_FIELDS: Final = frozenset({"origin", "incarnation", "restored_size", "lost_size", "lost_root", "lost_note", "reason"})
_HEX_ROOT: Final = re.compile(r"[0-9a-f]{64}\Z")
_HEX_INCARNATION: Final = re.compile(rf"[0-9a-f]{{{2 * INCARNATION_BYTES}}}\Z")


@dataclass(frozen=True, slots=True)
class Incarnation:
    """Entries `restored_size` to `lost.size` - 1 of the log are lost; `note` is the checkpoint that shows that there were such."""

    incarnation: bytes
    restored_size: int
    lost: Checkpoint
    note: str
    reason: str

    @classmethod
    def make(cls, restored_size: int, lost: Checkpoint, note: str, reason: str) -> Self:
        """A new incarnation of the log that `lost` is a head of."""
        return cls(secrets.token_bytes(INCARNATION_BYTES), restored_size, lost, note, reason)

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read the payload of a kind-6 entry. `InputError` SCHEMA_INVALID unless it has exactly the fields of this version."""
        value = as_object(jsontext.loads(payload, "incarnation"))
        if value.keys() != _FIELDS:
            raise _invalid(f"an incarnation has the fields {', '.join(sorted(_FIELDS))}")
        origin, incarnation, root, note, reason = (
            _text(value, name) for name in ("origin", "incarnation", "lost_root", "lost_note", "reason")
        )
        if not _HEX_ROOT.match(root) or not _HEX_INCARNATION.match(incarnation):
            raise _invalid("lost_root and incarnation are lower-case hex")
        lost = Checkpoint(origin, _number(value, "lost_size"), bytes.fromhex(root))
        return cls(bytes.fromhex(incarnation), _number(value, "restored_size"), lost, note, reason)

    def encode(self) -> bytes:
        """The payload bytes: RFC 8785 JSON."""
        return canonical(
            {
                "origin": self.lost.origin,
                "incarnation": self.incarnation.hex(),
                "restored_size": self.restored_size,
                "lost_size": self.lost.size,
                "lost_root": self.lost.root.hex(),
                "lost_note": self.note,
                "reason": self.reason,
            }
        )

    def sign(self, operator: Signer) -> Submission:
        """The submission that admits this incarnation."""
        return Submission.sign(EntryKind.INCARNATION, INCARNATION_TYPE, self.encode(), operator)

    def told(self) -> str:
        """What an audit says of it."""
        lost = self.lost.size - self.restored_size
        range_of = f"entries {self.restored_size} to {self.lost.size - 1}" if lost > 0 else "what followed"
        return f"the log was restored here as a new incarnation, and {range_of} of the one before are lost: {self.reason}"


def told_of(payload: bytes) -> str:
    """What an audit says of a kind-6 entry with this payload, also of one that cannot be read."""
    try:
        return Incarnation.parse(payload).told()
    except InputError as error:
        return f"the log says that it was restored, and not what is lost: {error.message}"


def _text(value: dict[str, JsonValue], name: str) -> str:
    text = value[name]
    if not isinstance(text, str) or not text:
        raise _invalid(f"{name} must be a text")
    return text


def _number(value: dict[str, JsonValue], name: str) -> int:
    number = value[name]
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise _invalid(f"{name} must be a number of entries")
    return number


def _invalid(message: str) -> InputError:
    return InputError(Code.SCHEMA_INVALID, message, at=Location("incarnation"), fix="make it with `countermark ledger restore`")
