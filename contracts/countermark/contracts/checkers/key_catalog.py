"""Key catalogues: the configuration keys of a component, their types and limits, and which source accepts which names.

A catalogue is named as `ID/vN` when it is shipped with the program, and by its path when it lives in the repository. Documents page,
section 4.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from countermark.attestations.codes import Code
from countermark.attestations.documents import load_document
from countermark.attestations.errors import InputError
from countermark.attestations.located import JsonValue
from countermark.contracts.checkers.base import Case
from countermark.contracts.checkers.parameters import Schema, text

_SHIPPED = re.compile(r"([a-z0-9][a-z0-9._-]*)/v([1-9][0-9]*)")
CATALOG: Schema = text("the catalogue of keys: ID/vN of a shipped one, or the path of a KeyCatalog in the repository")


@dataclass(frozen=True, slots=True)
class Key:
    """One key: its canonical name, the ones it may also go by, and what its value must be."""

    name: str
    type: str
    required: bool
    legacy: str | None = None
    env: str | None = None
    one_of: tuple[JsonValue, ...] = ()
    min: int | None = None
    max: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that a value of it may stand under, the canonical one first."""
        return tuple(name for name in (self.name, self.env, self.legacy) if name)


@dataclass(frozen=True, slots=True)
class KeyCatalog:
    """The keys of one component."""

    id: str
    keys: tuple[Key, ...]
    accepted_from: frozenset[str]
    legacy_only: frozenset[str]

    @property
    def names(self) -> Mapping[str, Key]:
        """Each key by each of its names."""
        return {name: key for key in self.keys for name in key.names}


def key_catalog(case: Case, name: str) -> KeyCatalog:
    """The catalogue of that name; `InputError` when there is none, or for one that is not valid."""
    shipped = _SHIPPED.fullmatch(name)
    if not shipped:
        return _parsed(case.tree.read(name), name)
    try:
        return _shipped(*shipped.groups())
    except FileNotFoundError:
        fix = f"use one of {', '.join(shipped_catalogs())}, or give the path of your own"
        raise InputError(Code.UNKNOWN_NAME, f"no catalogue {name!r} is shipped", at=case.at, fix=fix) from None


def shipped_catalogs() -> list[str]:
    """The names of the catalogues that the program comes with."""
    files = resources.files("countermark.contracts").joinpath("key_catalogs").iterdir()
    return sorted(re.sub(r"-v([0-9]+)\.yaml$", r"/v\1", file.name) for file in files if file.name.endswith(".yaml"))


def shipped_keys(name: str) -> list[str]:
    """Every name of every key of a shipped catalogue."""
    shipped = _SHIPPED.fullmatch(name)
    return list(_shipped(*shipped.groups()).names) if shipped else []


@cache
def _shipped(name: str, version: str) -> KeyCatalog:
    file = resources.files("countermark.contracts").joinpath("key_catalogs", f"{name}-v{version}.yaml")
    return _parsed(file.read_bytes(), file.name)


def _parsed(data: bytes, source: str) -> KeyCatalog:
    document = load_document(data, source, "KeyCatalog")
    spec: Mapping[str, Any] = document.spec
    keys = tuple(Key(**{**fields, "one_of": tuple(fields.get("one_of", ()))}) for fields in spec["keys"])
    return KeyCatalog(document.id, keys, frozenset(spec["accepted_from"]), frozenset(spec["legacy_only"]))
