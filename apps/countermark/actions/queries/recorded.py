"""Decisions as they stand in the ledger, and the documents that they were made by."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from countermark.actions.catalogue import load_catalogue
from countermark.actions.queries.view import View
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.documents import Document, load_document
from countermark.attestations.errors import CannotTellError, InputError, NothingError
from countermark.attestations.located import JsonValue
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import canonical
from countermark.contracts.catalogue import Catalogue
from countermark.contracts.decision import core_id
from countermark.contracts.evidence import Record
from countermark.contracts.policy import ReleasePolicy
from countermark.contracts.profile import Profile


@dataclass(frozen=True, slots=True)
class PastDecision:
    """A decision/v1 of the ledger. Reading it is total: what is not there is empty or none."""

    record: Record
    core: Mapping[str, JsonValue]
    subject: Digest | None

    @classmethod
    def of(cls, record: Record) -> Self:
        """Read a decision from its record."""
        predicate = record.statement.predicate
        core = predicate.get("core") if isinstance(predicate, dict) else None
        fields = core if isinstance(core, dict) else {}
        return cls(record, fields, parsed(fields.get("subject")))

    @property
    def id(self) -> str:
        """The id, from the content of the core."""
        return core_id(canonical(self.core))

    @property
    def verdict(self) -> str:
        """ALLOW or DENY, as it says."""
        return str(self.core.get("verdict"))

    @property
    def requirements(self) -> list[dict[str, JsonValue]]:
        """The requirements with their answers."""
        found = self.core.get("requirements")
        return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []

    def input(self, name: str) -> tuple[str, int, Digest] | None:
        """Id, version and digest of a document that it was made by."""
        inputs = self.core.get("inputs")
        found = inputs.get(name) if isinstance(inputs, dict) else None
        fields = found if isinstance(found, dict) else {}
        identity, version, digest = fields.get("id"), fields.get("version"), parsed(fields.get("digest"))
        return (identity, version, digest) if isinstance(identity, str) and isinstance(version, int) and digest else None

    def rests_on(self) -> Iterator[str]:
        """The payload digests that an answer of it rests on, verdicts of contracts included."""
        for requirement in self.requirements:
            evidence = requirement.get("evidence")
            for item in evidence if isinstance(evidence, list) else []:
                if isinstance(item, dict) and item.get("used") is True:
                    yield str(item.get("payload"))


def decisions(view: View) -> tuple[tuple[PastDecision, ...], tuple[str, ...]]:
    """Every decision of the ledger in its order, and what is said of those that cannot be read."""
    records, unreadable = view.records(view.reader.statements(PredicateName.DECISION.uri))
    return tuple(PastDecision.of(record) for record in records), unreadable


def stored_document(view: View, digest: Digest, kind: str) -> Document | None:
    """A document whose bytes were recorded with a decision; none when they were not, or are of another kind."""
    for index in view.reader.find_subject(DigestKind.FILE, digest.hex, ("document",)):
        try:
            entry = view.reader.entry(index)
            if Digest.of(DigestKind.FILE, entry.payload) == digest:
                return load_document(entry.payload, f"entry {index}", kind)
        except (InputError, CannotTellError):
            continue
    return None


def stored_policy(view: View, decision: PastDecision) -> ReleasePolicy:
    """The policy of a decision from its recorded bytes, with its catalogue and profile.

    It is read as leniently as one of the command line, since it was checked when the decision was made. `CannotTellError` REF_NOT_HERE
    when a document of it is not in the ledger.
    """
    document = _required(view, decision, "policy", "ReleasePolicy")
    catalogue = load_catalogue()
    stated = decision.input("catalogue")
    if stated and stated[2] != catalogue.digest:
        catalogue = Catalogue.of(_required(view, decision, "catalogue", "CapabilityCatalog"))
    profile = Profile.of(_required(view, decision, "profile", "Profile")) if decision.input("profile") else None
    try:
        return ReleasePolicy.of(document, catalogue, profile, adhoc=True)
    except (InputError, NothingError) as error:
        raise CannotTellError(error.code, f"its policy cannot be read: {error.message}", at=error.at, fix="give --policy FILE") from None


def _required(view: View, decision: PastDecision, name: str, kind: str) -> Document:
    stated = decision.input(name)
    document = stored_document(view, stated[2], kind) if stated else None
    if document is None:
        what = f"{stated[0]}@{stated[1]}" if stated else "which it does not name"
        message = f"the bytes of its {name} {what} are not in the ledger as a {kind}"
        raise CannotTellError(Code.REF_NOT_HERE, message, fix="give --policy FILE")
    return document


def parsed(value: JsonValue) -> Digest | None:
    """A digest, or none for what is not one."""
    try:
        return Digest.parse(value) if isinstance(value, str) else None
    except InputError:
        return None
