"""A decision as it stands in the ledger, and the documents that it was made by, whose bytes `gate --record` kept."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.documents import Document, load_document, read_structured
from countermark.attestations.errors import CannotTellError, Location
from countermark.attestations.located import JsonValue, as_integer, as_list, as_object
from countermark.attestations.statement import canonical
from countermark.contracts.catalogue import Catalogue
from countermark.contracts.decision import Identified, core_id
from countermark.contracts.evidence import Record
from countermark.contracts.policy import ReleasePolicy
from countermark.contracts.profile import Profile, without_map
from countermark.ledger.read import LedgerReader


@dataclass(frozen=True, slots=True)
class PastDecision:
    """A decision/v1 of the ledger. Reading it is total: what is not there is empty or none."""

    record: Record
    core: Mapping[str, JsonValue]
    subject: Digest | None

    @classmethod
    def of(cls, record: Record) -> Self:
        """Read a decision from its record."""
        core = as_object(as_object(record.statement.predicate).get("core"))
        return cls(record, core, Digest.stated(core.get("subject")))

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
        return [item for item in as_list(self.core.get("requirements")) if isinstance(item, dict)]

    def input(self, name: str) -> Identified | None:
        """A document that it was made by, as it names it."""
        fields = as_object(as_object(self.core.get("inputs")).get(name))
        identity, version, digest = fields.get("id"), as_integer(fields.get("version")), Digest.stated(fields.get("digest"))
        return Identified(identity, version, digest) if isinstance(identity, str) and version is not None and digest else None

    def rests_on(self) -> Iterator[str]:
        """The payload digests that an answer of it rests on, verdicts of contracts included."""
        for requirement in self.requirements:
            for item in map(as_object, as_list(requirement.get("evidence"))):
                if item.get("used") is True:
                    yield str(item.get("payload"))

    def document(self, reader: LedgerReader, name: str, kind: str, source: str = "") -> Document:
        """A document that it was made by, from its recorded bytes; `source` is the file that locations in it name.

        `CannotTellError` INCOMPLETE when the ledger does not hold them, `InputError` when they are no document of that kind.
        """
        return load_document(self.bytes_of(reader, name), source or f"{name}.yaml", kind)

    def policy(self, reader: LedgerReader) -> ReleasePolicy:
        """The policy as it was read then, with its catalogue and profile; raises as `document` does."""
        places = [str(as_object(item.get("location")).get("file")) for item in self.requirements]
        adhoc = any(place.startswith("--require") for place in places)
        document = self.document(reader, "policy", "ReleasePolicy", "--require" if adhoc or not places else places[0])
        catalogue = Catalogue.of(self.document(reader, "catalogue", "CapabilityCatalog"))
        return ReleasePolicy.of(document, catalogue, self._profile(reader), adhoc=adhoc)

    def _profile(self, reader: LedgerReader) -> Profile | None:
        """A Profile, or a file of the maintainers' own with its ProfileMap."""
        named = self.input("profile")
        if named is None:
            return None
        data = self.bytes_of(reader, "profile")
        parts = without_map(data)
        if parts is None:
            return Profile.of(load_document(data, "profile", "Profile"))
        own, field_map = parts
        return Profile.mapped(data, read_structured(own, "profile"), load_document(field_map, "profile map", "ProfileMap"))

    def bytes_of(self, reader: LedgerReader, name: str) -> bytes:
        """The recorded bytes of a document that it was made by, whose digest is also that of their entry's payload."""
        named = self.input(name)
        if named is None:
            raise _incomplete(reader, f"the {name}, which the decision does not name")
        digest = named.digest
        if digest.kind is not DigestKind.FILE or not any(index < reader.head.size for index in reader.find_payload(digest.raw)):
            raise _incomplete(reader, f"{named.id}@{named.version} ({digest})")
        return reader.payload(digest.raw)


def _incomplete(reader: LedgerReader, what: str) -> CannotTellError:
    fix = "decide again with `gate --record`, or give --policy FILE"
    return CannotTellError(Code.INCOMPLETE, f"the ledger does not hold {what}", at=Location(str(reader.path)), fix=fix)
