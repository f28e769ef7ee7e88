"""What an adapter is: a reader of one schema of outside documents, pure, with tables that say what it reads from what."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

from countermark.attestations.located import JsonValue
from countermark.contracts.adapters.fields import Field
from countermark.contracts.adapters.notes import Case, Notes
from countermark.contracts.adapters.reading import SOURCE_REPORTED, Reference
from countermark.contracts.adapters.tables import Table


class Adapter(ABC):
    """A reader. The version rises whenever the same document can be read in another way."""

    name: str
    version: int
    tables: tuple[Table, ...]

    @abstractmethod
    def recognises(self, root: Field) -> bool:
        """Whether a document is of the schema, or of the shape, that it reads."""

    @abstractmethod
    def schema(self, root: Field) -> str:
        """The schema as the document states it; what it was recognised by where it states none."""

    @abstractmethod
    def read(self, case: Case, notes: Notes) -> None:
        """Take notes of everything that the document says; never fails on what a document holds."""

    def references(self, root: Field) -> Iterable[Reference]:
        """The files that the document refers to."""
        del root
        return ()

    def published(self, root: Field) -> Mapping[str, JsonValue] | None:
        """Where the document says it was published."""
        del root
        return None

    def evidence_state(self, root: Field) -> Mapping[str, JsonValue]:
        """Who has seen what it reports."""
        del root
        return SOURCE_REPORTED


class SchemaAdapter(Adapter):
    """An adapter of the documents that state one schema id under `/schema`."""

    schema_id: str

    def recognises(self, root: Field) -> bool:
        """Whether the document states exactly this schema."""
        return root["schema"].text == self.schema_id

    def schema(self, root: Field) -> str:
        """The schema id."""
        del root
        return self.schema_id
