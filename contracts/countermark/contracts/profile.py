"""The profile about to be served: what a policy refers to as `$profile.NAME`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.documents import Document
from countermark.attestations.errors import InputError, Location
from countermark.attestations.located import JsonValue, Located, pointer_parts
from countermark.contracts.catalogue import suggest

_MAPPED: Final = b"# countermark: a ProfileMap, and the file that it maps\n"
_FIELDS: Final = (
    "image",
    *("topology", "topology.tp", "topology.dcp", "topology.pp"),
    *("model", "model.repository", "model.revision"),
    *("draft", "draft.repository", "draft.revision"),
    *("max_num_seqs", "max_model_len_tokens", "draft_tokens", "publication_mode", "argv"),
)


@dataclass(frozen=True, slots=True)
class Profile:
    """Named values, and the identity of the file that states them."""

    id: str
    version: int
    digest: Digest
    fields: Mapping[str, JsonValue]
    names: tuple[str, ...] = _FIELDS

    @classmethod
    def of(cls, document: Document) -> Self:
        """Build from a validated Profile."""
        return cls(document.id, document.version, document.digest, document.spec)

    @classmethod
    def mapped(cls, both: bytes, located: Located, field_map: Document) -> Self:
        """Build from a maintainers' own file through a validated ProfileMap, which gives it its id and version.

        `both` are the bytes of the two, as `with_map` joins them: either of them can change what is asked, so that the digest covers both.
        `located` is the value of the file. `InputError` for a pointer that leads nowhere.
        """
        pointers: dict[str, str] = field_map.spec["fields"]
        fields: dict[str, JsonValue] = {}
        for name, pointer in pointers.items():
            if not _put(fields, name.split("."), _follow(located, pointer)):
                raise _invalid(field_map.at(f"/spec/fields/{name}"), f"{name} is mapped below a value", "map the whole or its parts")
        names = tuple(dict.fromkeys((*pointers, *(name.partition(".")[0] for name in pointers), *_FIELDS)))
        return cls(field_map.id, field_map.version, Digest.of(DigestKind.FILE, both), fields, names)

    def stated(self, name: str, at: Location) -> JsonValue:
        """The value of a field like `topology.tp`, or None where the profile does not state it.

        `InputError` UNKNOWN_NAME for a name that no profile of this kind has: a misspelt condition would never be met.
        """
        value: JsonValue = dict(self.fields)
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value is None and name not in self.names:
            raise InputError(Code.UNKNOWN_NAME, f"a profile has no field {name!r}", at=at, fix=suggest(name, self.names))
        return value

    def value(self, name: str, at: Location) -> JsonValue:
        """The value of a field; `InputError` UNKNOWN_NAME where the profile does not state it."""
        value = self.stated(name, at)
        if value is None:
            raise InputError(Code.UNKNOWN_NAME, f"profile {self.id} does not state {name}", at=at, fix=f"add {name} to the profile")
        return value

    @property
    def image(self) -> str | None:
        """The image that the profile is for, as it writes it."""
        value = self.fields.get("image")
        return value if isinstance(value, str) else None


def with_map(data: bytes, field_map: bytes) -> bytes:
    """A maintainers' own file and its ProfileMap as one document: a line that says so, the length in bytes of the map, both."""
    return b"%s%d\n%s%s" % (_MAPPED, len(field_map), field_map, data)


def without_map(both: bytes) -> tuple[bytes, bytes] | None:
    """The file and the map that `with_map` joined; None for any other document."""
    length, _, rest = both.removeprefix(_MAPPED).partition(b"\n")
    if not both.startswith(_MAPPED) or not length.isdigit() or len(length) > 9:
        return None
    return rest[int(length) :], rest[: int(length)]


def _put(fields: dict[str, JsonValue], path: list[str], value: JsonValue) -> bool:
    """Set a value below `fields`, never changing what it was read from; False where a plain value is in the way."""
    first, *rest = path
    if not rest:
        fields[first] = value
        return True
    inner = fields.get(first, {})
    if not isinstance(inner, dict):
        return False
    fields[first] = inner = dict(inner)
    return _put(inner, rest, value)


def _follow(located: Located, pointer: str) -> JsonValue:
    value = located.value
    for part in pointer_parts(pointer):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isascii() and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise _invalid(located.at(pointer), f"nothing stands at {pointer}", "correct the pointer in the ProfileMap")
    return value


def _invalid(at: Location, message: str, fix: str) -> InputError:
    return InputError(Code.SCHEMA_INVALID, message, at=at, fix=fix)
