"""How far a bad thing reaches: from the statements that name it to all that rests on them, and to the images that contain it.

A statement rests on another when its predicate names the other's payload: a receipt its record, a decision the evidence that it used, a
summary its inputs. An image contains a commit that it was built from, and everything in the image that it is built on; what is said of
such an image is touched, even by one who never heard of the commit.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from countermark.actions.queries.candidates import containing, naming
from countermark.actions.queries.named import Named
from countermark.actions.queries.recorded import PastDecision, parsed
from countermark.actions.queries.view import View
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.located import JsonValue, walk
from countermark.attestations.predicate_types import VERIFICATION_SUMMARY, PredicateName
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
    def of(cls, view: View, key: Digest) -> "BadKey":
        """Find what a key signed; the signatures are in the leaves, which are proven."""
        found = view.reader.find_signer(key.raw)
        return cls(key, frozenset(index for index in found if key in view.signed(view.reader.entry(index)).keys))

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
        predicate = _object(record.statement.predicate)
        adapter = _object(predicate.get("adapter"))
        for holder in (predicate, _object(predicate.get("core"))):
            if _object(holder.get("checkers")).get(self.name) == self.version:
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


@dataclass(frozen=True, slots=True)
class Touched:
    """A statement that is touched, and why."""

    record: Record
    why: str


class Reach:
    """Everything that is touched, grown level by level until nothing new is found."""

    def __init__(self, view: View, bad: Bad) -> None:
        self.touched: dict[int, Touched] = {}
        self.tainted: dict[Digest, str] = {}
        self.unreadable: list[str] = []
        self._view = view
        self._bad = bad
        self._first_of: dict[str, int] = {}
        fresh = self._touch(bad.candidates(view), bad.why)
        while fresh:
            fresh = self._touch(naming(view, fresh).indices, self._why)

    @property
    def images(self) -> tuple[Digest, ...]:
        """The images that are concerned: those that contain it, and those that something touched is about."""
        about = {digest for item in self.touched.values() for digest in self._about(item.record)}
        return tuple(sorted(about | self.tainted.keys()))

    def _about(self, record: Record) -> set[Digest]:
        """The images that a statement is about, itself or through the statements that it takes back or replaces."""
        found = set(_subjects(record))
        for payload in [digest for digest in found if digest.kind is DigestKind.PAYLOAD]:
            records, _ = self._view.records(self._view.reader.find_payload(payload.raw))
            found |= {digest for other in records for digest in _subjects(other)}
        return {digest for digest in found if digest.kind.is_oci}

    def _touch(self, indices: Iterable[int], why: "Why") -> set[str]:
        """Take in those statements that have a reason; the hexes by which more may be found."""
        records, unreadable = self._view.records(set(indices) - self.touched.keys())
        self.unreadable += [text for text in unreadable if text not in self.unreadable]
        new = [Touched(record, reason) for record in records if (reason := why(record))]
        found: set[str] = set()
        for item in new:
            self.touched[item.record.index] = item
            self._first_of.setdefault(item.record.payload.hex, item.record.index)
            found |= {item.record.payload.hex, *self._taint(item.record)}
        return found

    def _taint(self, record: Record) -> set[str]:
        """The images that contain it by a statement: the subject, and the names that the statement proves to be the same image."""
        base = self._tainted_base(record)
        if record.statement.predicate_type != PredicateName.IMAGE.uri or not (base or self._bad.is_in_image(record)):
            return set()
        reason = f"is built on {base}" if base else "is built from it"
        names = [*_subjects(record), *_proven_aliases(record)]
        new = {digest for digest in names if digest.kind.is_oci and digest not in self.tainted}
        self.tainted.update((digest, reason) for digest in new)
        return {digest.hex for digest in new}

    def _why(self, record: Record) -> str | None:
        rests_on = sorted(self._first_of[hexed] for hexed in set(_rests_on(record)) & self._first_of.keys())
        if rests_on:
            return f"rests on entry {rests_on[0]}"
        about = next((digest for digest in _subjects(record) if digest in self.tainted), None)
        if about:
            return f"about {about}, which {self.tainted[about]}"
        base = self._tainted_base(record)
        return f"built on {base}" if base else None

    def _tainted_base(self, record: Record) -> Digest | None:
        is_image = record.statement.predicate_type == PredicateName.IMAGE.uri
        base = parsed(_object(record.statement.predicate).get("base")) if is_image else None
        return base if base in self.tainted else None


class Why(Protocol):
    """Why a statement is touched; none when it is not."""

    def __call__(self, record: Record, /) -> str | None:
        """The reason in words."""
        ...


def _rests_on(record: Record) -> Iterator[str]:
    """The hex of every payload that a statement rests on. Of a decision that is what an answer used, not all that was weighed."""
    predicate = _object(record.statement.predicate)
    named = [node for _, node in walk(record.statement.predicate)]
    if record.statement.predicate_type == VERIFICATION_SUMMARY:
        inputs = predicate.get("inputAttestations")
        for item in inputs if isinstance(inputs, list) else []:
            yield str(_object(_object(item).get("digest")).get("sha256"))
        return
    if record.statement.predicate_type == PredicateName.DECISION.uri:
        verdicts = _object(_object(predicate.get("core")).get("inputs")).get("contract_verdicts")
        named = [*PastDecision.of(record).rests_on(), *(node for _, node in walk(verdicts))]
    for node in named:
        digest = parsed(node)
        if digest and digest.kind is DigestKind.PAYLOAD:
            yield digest.hex


def _subjects(record: Record) -> list[Digest]:
    return [digest for subject in record.statement.subjects for digest in subject.typed]


def _proven_aliases(record: Record) -> list[Digest]:
    aliases = _object(record.statement.predicate).get("aliases")
    proven = [_object(item) for item in aliases if _object(item).get("proven") is True] if isinstance(aliases, list) else []
    return [digest for item in proven if (digest := parsed(item.get("digest"))) and digest.kind is not DigestKind.OCI_INDEX]


def _object(value: JsonValue) -> Mapping[str, JsonValue]:
    return value if isinstance(value, dict) else {}
