"""Look-ups through the derived rows. What they find still has to be proven by `LedgerReader.entry`; what they miss can only deny."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError
from countermark.ledger.snapshot import Snapshot

MIN_PREFIX: Final = 5
_PREFIX: Final = re.compile(r"[0-9a-f]+\Z")
_ABOVE_ALL: Final = b"\xff" * 65

_SEARCH: Final = (
    "SELECT kind, digest, idx, role, name FROM subject WHERE digest >= ?1 AND digest < ?2 "
    "UNION ALL SELECT 'payload', payload_sha256, idx, 'payload', NULL FROM entry WHERE payload_sha256 >= ?1 AND payload_sha256 < ?2 "
    "UNION ALL SELECT 'spki', key_sha256, idx, 'signer', NULL FROM signature WHERE key_sha256 >= ?1 AND key_sha256 < ?2 "
    "ORDER BY 2, 3, 4"
)


@dataclass(frozen=True, slots=True)
class Hit:
    """A digest found by its prefix, the entry that names it, and as what."""

    kind: str
    hex: str
    index: int
    role: str
    name: str | None


@dataclass(frozen=True, slots=True)
class SignatureRow:
    """One signature of an entry; `outcome` is OK for those in the leaf."""

    algorithm: int | None
    key_sha256: bytes | None
    keyid: str | None
    signature: bytes
    outcome: str


@dataclass(frozen=True, slots=True)
class Quarantined:
    """Something that was refused: when (milliseconds since 1970 UTC), the SHA-256 of what came, why, and what it claims (`Refusal`)."""

    received_ms: int
    sha256: bytes
    code: str
    reason: str
    subjects: tuple[str, ...]
    predicate_type: str | None


class Queries(Snapshot):
    """The look-ups of a ledger."""

    def find_subject(self, kind: str, hexed: str, roles: Collection[str] = ("subject",)) -> tuple[int, ...]:
        """The indices of the entries that refer to a digest of this kind in one of `roles`, in order. See `SubjectRow.role`."""
        rows = self.rows("SELECT idx, role FROM subject WHERE digest = ? AND kind = ? ORDER BY idx", bytes.fromhex(hexed), str(kind))
        return tuple(dict.fromkeys(index for index, role in rows if role in roles))

    def kinds_of(self, hexed: str) -> tuple[str, ...]:
        """The digest kinds under which the ledger knows this hex, `unknown` among them if a statement gave it none."""
        return tuple(sorted(kind for (kind,) in self.rows("SELECT DISTINCT kind FROM subject WHERE digest = ?", bytes.fromhex(hexed))))

    def find_payload(self, sha256: bytes) -> tuple[int, ...]:
        """The entries of one payload: its first admission, and those by other signers."""
        return tuple(index for (index,) in self.rows("SELECT idx FROM entry WHERE payload_sha256 = ? ORDER BY idx", sha256))

    def statements(self, predicate_type: str) -> tuple[int, ...]:
        """The entries that are statements of this type."""
        return tuple(index for (index,) in self.rows("SELECT idx FROM statement WHERE predicate_type = ? ORDER BY idx", predicate_type))

    def find_signer(self, key_sha256: bytes) -> tuple[int, ...]:
        """The entries that this key signed, with a signature that held."""
        rows = self.rows("SELECT DISTINCT idx FROM signature WHERE key_sha256 = ? AND outcome = 'OK' ORDER BY idx", key_sha256)
        return tuple(index for (index,) in rows)

    def search_prefix(self, prefix: str) -> tuple[Hit, ...]:
        """Every digest, payload and key that begins with these hex digits, five at least. `InputError` BAD_DIGEST otherwise."""
        if len(prefix) < MIN_PREFIX or not _PREFIX.match(prefix):
            message = f"{prefix!r} is not {MIN_PREFIX} or more lower-case hex digits"
            raise InputError(Code.BAD_DIGEST, message, fix="give more of the digest")
        rows = self.rows(_SEARCH, *_range(prefix))
        return tuple(Hit(kind, digest.hex(), index, role, name) for kind, digest, index, role, name in rows)

    def signatures(self, index: int) -> tuple[SignatureRow, ...]:
        """All signatures that came with an entry, those that did not verify last."""
        sql = "SELECT algorithm, key_sha256, keyid, sig, outcome FROM signature WHERE idx = ? ORDER BY pos"
        return tuple(SignatureRow(*row) for row in self.rows(sql, index))

    def quarantined(self, digest: str | None = None) -> tuple[Quarantined, ...]:
        """What was refused, oldest first; of one digest, written as `Digest` writes it, if it is given."""
        rows = self.rows("SELECT received_ms, sha256, code, reason, subjects, predicate_type FROM quarantine ORDER BY id")
        found = (Quarantined(when, came, code, reason, tuple(named.split()), claimed) for when, came, code, reason, named, claimed in rows)
        return tuple(item for item in found if digest is None or digest in item.subjects)

    def counts(self) -> dict[str, int]:
        """How many entries there are of each predicate type, most first."""
        return dict(self.rows("SELECT predicate_type, count(*) FROM statement GROUP BY 1 ORDER BY 2 DESC, 1"))


def _range(prefix: str) -> tuple[bytes, bytes]:
    """The lowest digest that begins with the prefix, and the lowest above all that do."""
    spare = 4 * (len(prefix) % 2)
    size = (len(prefix) + 1) // 2
    low = int(prefix, 16) << spare
    high = (int(prefix, 16) + 1) << spare
    return low.to_bytes(size), _ABOVE_ALL if high >> 8 * size else high.to_bytes(size)
