"""A qualification receipt as the gate reads it."""

from dataclasses import dataclass
from typing import Self

from countermark.attestations.codes import Outcome
from countermark.attestations.digests import Digest
from countermark.attestations.errors import InputError
from countermark.attestations.located import JsonValue, as_integer, as_object
from countermark.attestations.times import Instant
from countermark.contracts.evidence import Entry
from countermark.contracts.scope import Scope


@dataclass(frozen=True, slots=True)
class Receipt:
    """One receipt. `capability` is empty where it names none, which then may be any; `outcome` is what its own controls leave of it."""

    entry: Entry
    capability: str
    scope: Scope
    outcome: Outcome
    research_only: bool
    observed_to: Instant | None
    runs: int
    boots: int

    @classmethod
    def of(cls, entry: Entry) -> Self:
        """Read a receipt; total, for the ledger may hold one that no schema has seen."""
        fields = entry.predicate
        capability = fields.get("capability")
        computed = entry.outcome or Outcome.ERROR
        return cls(
            entry,
            capability if isinstance(capability, str) else "",
            Scope.of(fields.get("scope")),
            Outcome.FAIL if fields.get("outcome") == "fail" else computed,
            fields.get("claim") is not None,
            instant_ended(fields.get("observed")),
            _count(fields.get("runs")),
            _count(fields.get("boots")),
        )

    @property
    def controls(self) -> dict[str, JsonValue]:
        """The controls as the receipt states them."""
        return as_object(self.entry.predicate.get("controls"))

    def names(self, digest: Digest) -> bool:
        """Whether it may be about an image: by its subject or its scope."""
        return self.scope.image == digest or self.entry.may_be_about(digest)

    def is_about(self, digest: Digest) -> bool:
        """Whether subject and scope both say that it is about an image."""
        return self.scope.image == digest and self.entry.is_about(digest)


def instant_ended(observed: JsonValue) -> Instant | None:
    """The end of an `observed` interval; None where it is not recorded."""
    value = as_object(observed).get("to")
    try:
        return Instant.parse(value) if isinstance(value, str) else None
    except InputError:
        return None


def _count(value: JsonValue) -> int:
    """A count of runs or boots. Not recorded is one: something was run, or there would be no receipt."""
    number = as_integer(value)
    return 1 if number is None else number
