"""Pins: the facts that a contract repeats, each with a type, and how each is spelled where it is repeated."""

import json
import re
from dataclasses import dataclass
from enum import StrEnum

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.attestations.located import JsonValue

_GIT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_OCI_SHA256 = re.compile(r"sha256:[0-9a-f]{64}")
_REFERENCE = re.compile(r"[^@\s]+@([^@\s]+)")
_SHOWN_CHARACTERS = 160


class ValueType(StrEnum):
    """What a value is. The names up to `index` are those of digests, whose form is fixed."""

    COMMIT = "commit"
    TREE = "tree"
    REVISION = "revision"
    SHA256 = "sha256"
    MANIFEST = "manifest"
    CONFIG = "config"
    INDEX = "index"
    INT = "int"
    BOOL = "bool"
    TEXT = "text"
    DOCUMENT = "document"

    @property
    def form(self) -> re.Pattern[str] | None:
        """What the whole text of a digest of this type looks like; none for other types."""
        if self in (ValueType.COMMIT, ValueType.TREE, ValueType.REVISION):
            return _GIT_ID
        if self.is_oci:
            return _OCI_SHA256
        return _SHA256 if self is ValueType.SHA256 else None

    @property
    def is_digest(self) -> bool:
        """Whether values of this type are digests or git ids."""
        return self.form is not None

    @property
    def is_oci(self) -> bool:
        """Whether values of this type name an image at one of its three levels, written `sha256:HEX64`."""
        return self in (ValueType.MANIFEST, ValueType.CONFIG, ValueType.INDEX)

    @property
    def words(self) -> str:
        """The form in words."""
        if self.is_oci:
            return f"sha256: and the 64 lower-case hex digits of an image {self}"
        if self is ValueType.SHA256:
            return "the 64 lower-case hex digits of a SHA-256"
        return f"the 40 or 64 lower-case hex digits of a git {self}" if self.is_digest else f"a value of type {self}"

    @classmethod
    def of_leaf(cls, leaf: str, value: JsonValue) -> "ValueType":
        """The type that a pin's leaf name carries, else the one that its value has. Documents page, section 3."""
        if isinstance(value, str):
            if leaf.endswith("_sha256"):
                return cls.SHA256
            return cls(leaf) if leaf in _NAMED_LEAVES else cls.TEXT
        if isinstance(value, bool):
            return cls.BOOL
        return cls.INT if isinstance(value, int) else cls.DOCUMENT


_NAMED_LEAVES = ("commit", "tree", "revision", "manifest", "config", "index")


@dataclass(frozen=True, slots=True)
class Pin:
    """One pinned fact: `name` is `pin.leaf`, `at` its place in the contract."""

    name: str
    value: JsonValue
    type: ValueType
    at: Location

    @property
    def leaf(self) -> str:
        """The part of the name that says which fact of the pin this is."""
        return self.name.rpartition(".")[2]

    @property
    def hex(self) -> str | None:
        """The bare hex digits of a digest, as prose quotes them; none for other types."""
        return self.value.removeprefix("sha256:") if self.type.is_digest and isinstance(self.value, str) else None

    def spelled(self, wanted: ValueType | None) -> JsonValue:
        """The value as a place of type `wanted` must hold it; `InputError` when no value of that type says the same."""
        if wanted in (None, self.type, ValueType.DOCUMENT):
            return self.value
        if wanted.is_digest and isinstance(self.value, str):
            bare = self.value.removeprefix("sha256:")
            text = f"sha256:{bare}" if wanted.is_oci else bare
            if wanted.form and wanted.form.fullmatch(text):
                return text
        elif wanted is ValueType.TEXT and isinstance(self.value, str | int):
            return as_text(self.value)
        elif wanted is ValueType.INT and isinstance(self.value, str) and re.fullmatch(r"-?(0|[1-9][0-9]{0,15})", self.value, re.ASCII):
            return int(self.value)
        elif wanted is ValueType.BOOL and self.value in ("true", "false"):
            return self.value == "true"
        raise InputError(
            Code.SCHEMA_INVALID,
            f"{self.name} is {shown(self.value)}, not {wanted.words}",
            fix="leave `type` out, or pin a value of that type",
        )


def referred(value: JsonValue, kind: ValueType | None) -> JsonValue:
    """What a reference `name@DIGEST` names, where a digest of this type may stand in one; the value itself otherwise.

    An image ID is the digest of a config, which no registry resolves, so it is no part of a reference.
    """
    if kind is None or not kind.is_digest or kind is ValueType.CONFIG or not isinstance(value, str):
        return value
    reference = _REFERENCE.fullmatch(value)
    return reference[1] if reference else value


def as_text(value: JsonValue) -> str:
    """A value as a source without types writes it: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def same(one: JsonValue, other: JsonValue) -> bool:
    """Whether two values are equal in type and content at every depth: `true` is not 1, 1 is not 1.0, the order of keys is nothing."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def shown(value: JsonValue) -> str:
    """A value in one short line for people: text bare, anything else with the name of its type."""
    text = as_text(value)
    short = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
    return short if isinstance(value, str) else f"{short} ({_TYPE_NAMES[type(value)]})"


_TYPE_NAMES: dict[type, str] = {
    bool: "a boolean",
    int: "an integer",
    float: "a fraction",
    list: "a list",
    dict: "an object",
    type(None): "no value",
}
