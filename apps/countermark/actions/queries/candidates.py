"""Where an answer may be found. What SQL gives here is a hint and no more: each entry is proven before it is believed."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from countermark.actions.queries.view import View
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError
from countermark.attestations.statement import Statement

_IMAGES: Final = (
    "SELECT DISTINCT kind, lower(hex(digest)) FROM subject "
    "WHERE kind IN ('oci-index', 'oci-manifest', 'oci-config') AND role IN ('subject', 'alias', 'tuple') AND idx < ? ORDER BY 1, 2"
)
_PAYLOADS: Final = "SELECT entry.idx, payload.data FROM entry LEFT JOIN payload ON payload.sha256 = entry.payload_sha256 ORDER BY 1"
_CONTAINING: Final = (
    "SELECT entry.idx FROM entry JOIN payload ON payload.sha256 = entry.payload_sha256 "
    "WHERE instr(payload.data, CAST(? AS BLOB)) ORDER BY 1"
)
_DIGESTS: Final = re.compile(rb"[0-9a-f]{40,}")


@dataclass(frozen=True, slots=True)
class Naming:
    """The entries whose payload names each hex, and those whose payload is not here, of which nobody can tell."""

    entries: dict[str, list[int]]
    withheld: tuple[int, ...]

    @property
    def indices(self) -> set[int]:
        """All of them."""
        return {index for found in self.entries.values() for index in found}


def images(view: View) -> tuple[Digest, ...]:
    """Every image that the ledger knows by any of its digests; those that a notice is about, whatever the derived rows say."""
    found = {_digest(kind, hexed) for kind, hexed in view.reader.rows(_IMAGES, view.reader.head.size)}
    for entry in view.notices:
        found |= _images_of(entry.statement)
    return tuple(sorted(digest for digest in found if digest))


def naming(view: View, hexes: Collection[str]) -> Naming:
    """The entries whose payload holds one of these whole hex digests anywhere; one pass over all payloads."""
    wanted = {hexed.encode(): hexed for hexed in hexes}
    entries: dict[str, list[int]] = {hexed: [] for hexed in hexes}
    withheld: list[int] = []
    for index, data in view.reader.stream(_PAYLOADS):
        if index >= view.reader.head.size:
            break
        if data is None:
            withheld.append(index)
            continue
        for found in wanted.keys() & set(_DIGESTS.findall(data)):
            entries[wanted[found]].append(index)
    return Naming(entries, tuple(withheld))


def containing(view: View, text: str) -> tuple[int, ...]:
    """The entries whose payload holds a text."""
    return tuple(index for (index,) in view.reader.rows(_CONTAINING, text))


def _digest(kind: str, hexed: str) -> Digest | None:
    try:
        return Digest(DigestKind(kind), hexed)
    except (InputError, ValueError):
        return None


def _images_of(statement: Statement | None) -> set[Digest | None]:
    subjects = statement.subjects if statement else ()
    return {digest for subject in subjects for digest in subject.typed if digest.kind.is_oci}
