"""Rejections: who said that an image, or a capability of it, must not be used, and why."""

from dataclasses import dataclass
from typing import Self

from countermark.attestations.located import JsonValue
from countermark.attestations.predicate_types import PredicateName
from countermark.contracts.aliases import Names
from countermark.contracts.evidence import Entry, Evidence
from countermark.contracts.scope import Leaves, Scope


@dataclass(frozen=True, slots=True)
class Rejection:
    """One rejection. No `scope`: everywhere; an empty `capability`: all of them."""

    entry: Entry
    capability: str
    scope: Scope | None

    @classmethod
    def of(cls, entry: Entry) -> Self:
        """Read a rejection; total, and what cannot be read rejects more, never less."""
        scope, capability = entry.predicate.get("scope"), entry.predicate.get("capability")
        return cls(entry, capability if isinstance(capability, str) else "", Scope.of(scope) if isinstance(scope, dict) else None)

    @classmethod
    def standing(cls, names: Names, evidence: Evidence) -> list[Self]:
        """The rejections that count against an image: by anyone with a role, of any of its names, and not retracted."""
        heard = [entry for entry in evidence.of_type(PredicateName.REJECTION) if entry.heard]
        about = [entry for entry in heard if any(entry.may_be_about(digest) for digest in names.rejections)]
        return [cls.of(entry) for entry in about if not evidence.lifted(entry)]

    @property
    def image_wide(self) -> bool:
        """Whether nothing of the image may be used."""
        return self.scope is None and not self.capability

    def covers(self, capability: str, point: Leaves) -> bool:
        """Whether it counts against a capability at a demanded point."""
        return self.capability in (capability, "") and (self.scope is None or self.scope.covers_as_failure(point))

    def __str__(self) -> str:
        fields = self.entry.predicate
        seen = [f"{name} {text}" for name in ("required", "observed") if (text := _quoted(fields.get(name)))]
        return f"rejected by {self.entry.signer}: {'; '.join([str(fields.get('reason') or 'no reason is given'), *seen])}"


def _quoted(value: JsonValue) -> str:
    """An answer in quotes: the raw one, since what was stripped from it may be what is wrong with it."""
    text = value.get("text") if isinstance(value, dict) else value
    return f'"{text}"' if isinstance(text, str) else ""
