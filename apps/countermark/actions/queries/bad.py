"""What may turn out bad: a commit, a model revision, a key, a checker or a statement; and which statements it touches directly."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, Self

from countermark.actions.queries.candidates import containing, naming
from countermark.actions.queries.named import Named
from countermark.actions.queries.view import View
from countermark.attestations.digests import Digest
from countermark.attestations.located import as_object
from countermark.contracts.evidence import Record


class Bad(Protocol):
    """Something that turned out bad."""

    def candidates(self, view: View) -> Iterable[int]:
        """Entries that may speak of it."""
        ...

    def why(self, record: Record) -> str | None:
        """Why a statement is touched by it directly; none when it is not."""
        ...

    def is_in_image(self, record: Record) -> bool:
        """Whether an image statement says that the image contains it."""
        ...


@dataclass(frozen=True, slots=True)
class BadRevision:
    """A commit of a source, or the revision of a model. Only a source ends up inside an image."""

    named: Named
    source: bool

    def __str__(self) -> str:
        return f"{'commit' if self.source else 'model revision'} {self.named.hex}"

    def candidates(self, view: View) -> Iterable[int]:
        """Whatever holds its hex."""
        return naming(view, [self.named.hex]).indices

    def why(self, record: Record) -> str | None:
        """The first place where it is named."""
        places = self.named.places(record.statement)
        return f"names it at {places[0]}" if places else None

    def is_in_image(self, record: Record) -> bool:
        """Whether it is a component of the image."""
        return self.source and any(place.startswith("/predicate/built_from/") for place in self.named.places(record.statement))


@dataclass(frozen=True, slots=True)
class BadKey:
    """A signing key, by the fingerprint of its SubjectPublicKeyInfo; `signed` are the entries that it signed."""

    key: Digest
    signed: frozenset[int]

    @classmethod
    def of(cls, view: View, key: Digest) -> Self:
        """Find what a key signed; the signatures are in the leaves, which are proven."""
        found = view.reader.find_signer(key.raw)
        entries, _ = view.entries(found)
        return cls(key, frozenset(entry.index for entry in entries if key in view.signed(entry).keys))

    def __str__(self) -> str:
        return f"key {self.key}"

    def candidates(self, view: View) -> Iterable[int]:
        """What it signed."""
        del view
        return self.signed

    def why(self, record: Record) -> str | None:
        """It was signed by the key, alone or among others."""
        return "signed by it" if record.index in self.signed else None

    def is_in_image(self, record: Record) -> bool:
        """A signature is in no image."""
        del record
        return False


@dataclass(frozen=True, slots=True)
class BadChecker:
    """A version of a checker, or of an adapter."""

    name: str
    version: int

    def __str__(self) -> str:
        return f"checker {self.name}@{self.version}"

    def candidates(self, view: View) -> Iterable[int]:
        """Whatever holds its name in quotes."""
        return containing(view, f'"{self.name}"')

    def why(self, record: Record) -> str | None:
        """It was among the checkers, or extracted the claims."""
        predicate = as_object(record.statement.predicate)
        adapter = as_object(predicate.get("adapter"))
        for holder in (predicate, as_object(predicate.get("core"))):
            if as_object(holder.get("checkers")).get(self.name) == self.version:
                return "checked by it"
        return "its claims were read by it" if (adapter.get("name"), adapter.get("version")) == (self.name, self.version) else None

    def is_in_image(self, record: Record) -> bool:
        """A checker is in no image."""
        del record
        return False


@dataclass(frozen=True, slots=True)
class BadStatement:
    """A statement, by its payload."""

    payload: Digest

    def __str__(self) -> str:
        return f"statement {self.payload}"

    def candidates(self, view: View) -> Iterable[int]:
        """Its entries."""
        return view.reader.find_payload(self.payload.raw)

    def why(self, record: Record) -> str | None:
        """It is the statement itself."""
        return "is the statement itself" if record.payload == self.payload else None

    def is_in_image(self, record: Record) -> bool:
        """A statement is in no image."""
        del record
        return False
