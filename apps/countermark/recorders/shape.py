"""Reading foreign JSON by shape: each step names the pointer where the document is not what its kind promises."""

from dataclasses import dataclass

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.attestations.located import JsonValue, pointer_join


@dataclass(frozen=True, slots=True)
class Node:
    """A value inside a document, with the document's name and the RFC 6901 pointer to it."""

    value: JsonValue
    source: str
    pointer: str = ""

    def __getitem__(self, key: str) -> "Node":
        """The member of an object; an absent member and `null` are the same."""
        return Node(self.members().get(key), self.source, pointer_join(self.pointer, key))

    def __bool__(self) -> bool:
        """Whether there is a value other than `null`."""
        return self.value is not None

    @property
    def at(self) -> Location:
        """Where the value stands."""
        return Location(self.source, pointer=self.pointer)

    def error(self, message: str, fix: str, code: Code = Code.SCHEMA_INVALID) -> InputError:
        """An error that points here."""
        return InputError(code, message, at=self.at, fix=fix)

    def members(self) -> dict[str, JsonValue]:
        """The value as an object."""
        if not isinstance(self.value, dict):
            raise self._wrong("an object")
        return self.value

    def items(self) -> list["Node"]:
        """The elements of a list; `null` and absent are the empty list."""
        if not isinstance(self.value, list | None):
            raise self._wrong("a list")
        return [Node(item, self.source, pointer_join(self.pointer, index)) for index, item in enumerate(self.value or [])]

    def text(self) -> str:
        """The value as text."""
        if not isinstance(self.value, str):
            raise self._wrong("text")
        return self.value

    def texts(self) -> dict[str, str]:
        """The value as an object of texts; `null` is the empty object."""
        return {key: self[key].text() for key in self.members()} if self else {}

    def count(self) -> int:
        """The value as an integer of zero or more."""
        if not isinstance(self.value, int) or isinstance(self.value, bool) or self.value < 0:
            raise self._wrong("an integer of zero or more")
        return self.value

    def _wrong(self, wanted: str) -> InputError:
        found = "nothing" if self.value is None else type(self.value).__name__
        return self.error(f"{wanted} is expected here, found {found}", "the file is damaged or of another kind; get it again")
