"""The baseline of a contract: the facts that a later revision is compared with. Documents page, section 3.

A value stands in it as it is; a whole document of more than `MAX_DOCUMENT_BYTES` in canonical form (RFC 8785) stands in it by its
digest, which tells that it changed and not where.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import rfc8785

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, InvalidDocumentError, Location
from countermark.attestations.jsontext import loads_located
from countermark.attestations.located import JsonValue
from countermark.contracts.pins import ValueType
from countermark.contracts.places import Occurrence

MAX_DOCUMENT_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class Lock:
    """A baseline that was written down."""

    id: str
    version: int
    facts: Mapping[str, JsonValue]
    source: str

    @classmethod
    def load(cls, data: bytes, source: str) -> Self:
        """Read a lock file; `InputError` with every mistake in it."""
        from countermark.attestations.schema import problems

        located = loads_located(data, source)
        mistakes = [
            InputError(Code.SCHEMA_INVALID, problem.message, at=located.at(problem.pointer), fix=problem.fix)
            for problem in problems("lock", located.value)
        ]
        if mistakes:
            raise InvalidDocumentError(mistakes)
        value: Any = located.value
        return cls(value["id"], value["version"], value["facts"], source)

    def fact(self, name: str, at: Location) -> JsonValue:
        """The value that was written down; `InputError` for a fact that was not."""
        if name not in self.facts:
            message = f"{self.source} has no fact {name!r}"
            raise InputError(Code.UNKNOWN_NAME, message, at=at, fix="write the baseline anew, as a declared change, with `contract lock`")
        return self.facts[name]


def locked(occurrences: Sequence[Occurrence]) -> JsonValue:
    """The value of a fact as a lock holds it; of a fact with several values, all of them in their order."""
    values = [_locked(it) for it in occurrences]
    return values[0] if len(values) == 1 else values


def _locked(occurrence: Occurrence) -> JsonValue:
    if occurrence.place.type is not ValueType.DOCUMENT or not isinstance(occurrence.value, dict | list):
        return occurrence.value
    try:
        canonical = rfc8785.dumps(occurrence.value)
    except rfc8785.CanonicalizationError as error:
        raise InputError(Code.BAD_NUMBER, str(error), at=occurrence.at, fix="write the number as a string") from None
    if len(canonical) <= MAX_DOCUMENT_BYTES:
        return occurrence.value
    return str(Digest.of(DigestKind.FILE, canonical))


def lock_file_name(contract_id: str, version: int) -> str:
    """What the baseline of a version is called."""
    return f"{contract_id}@{version}.lock.json"


def lock_document(contract_id: str, version: int, digest: Digest, facts: Mapping[str, Sequence[Occurrence]]) -> dict[str, JsonValue]:
    """The lock of a contract whose facts have these values."""
    return {
        "id": contract_id,
        "version": version,
        "contract": str(digest),
        "facts": {name: locked(occurrences) for name, occurrences in sorted(facts.items())},
    }
