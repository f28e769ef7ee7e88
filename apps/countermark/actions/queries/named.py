"""What an auditor names on the command line, and where a statement speaks of it."""

import re
from dataclasses import dataclass
from typing import Self

from countermark.actions.subjects import bare_hex, one_kind
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import Location
from countermark.attestations.located import walk
from countermark.attestations.statement import Statement
from countermark.ledger.read import LedgerReader


@dataclass(frozen=True, slots=True)
class Named:
    """A digest by its hex; `kind` is none where nobody says of what, and then it is any."""

    hex: str
    kind: DigestKind | None

    @classmethod
    def of(cls, digest: Digest) -> Self:
        """A digest whose kind is known."""
        return cls(digest.hex, digest.kind)

    @classmethod
    def resolve(cls, reader: LedgerReader, text: str) -> Self:
        """A DIGEST of the command line. Bare, it takes the one kind under which the ledger knows it; several are an `InputError`."""
        hexed = bare_hex(text)
        if hexed is None:
            return cls.of(Digest.parse(text, at=Location("DIGEST")))
        stated = {hit.kind for hit in reader.search_prefix(hexed)}
        return cls(hexed, one_kind(hexed, (kind for kind in DigestKind if kind in stated)))

    def __str__(self) -> str:
        return str(Digest(self.kind, self.hex)) if self.kind else f"sha256:{self.hex}"

    def places(self, statement: Statement) -> tuple[str, ...]:
        """The RFC 6901 pointers at which a statement names it, subjects first."""
        subjects = (
            f"/subject/{n}"
            for n, subject in enumerate(statement.subjects)
            if self.hex in subject.digests.values() and self._fits([digest for digest in subject.typed if digest.hex == self.hex])
        )
        texts = ((pointer, node) for pointer, node in walk(statement.predicate, "/predicate") if isinstance(node, str))
        return (*subjects, *(pointer for pointer, node in texts if self.is_in(node)))

    def is_in(self, text: str) -> bool:
        """Whether a text holds the whole hex, after a kind that is not another one, or after none."""
        found = re.finditer(rf"(?:([a-z-]+):(?:sha256:)?)?(?<![0-9a-f]){self.hex}(?![0-9a-f])", text) if self.hex in text else ()
        return any(self.kind is None or match[1] not in set(DigestKind) or match[1] == self.kind for match in found)

    def _fits(self, typed: list[Digest]) -> bool:
        return self.kind is None or not typed or any(digest.kind is self.kind and digest.hex == self.hex for digest in typed)
