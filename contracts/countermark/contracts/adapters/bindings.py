"""What a person states with `--bind FIELD=VALUE` because the record does not say it.

It is stored as bound by the signer, never as the record's own, and it never overrides what the record says.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, Location
from countermark.attestations.located import JsonValue, pointer_parts
from countermark.contracts.adapters.fields import Field
from countermark.contracts.adapters.reading import Derived
from countermark.contracts.scope import CELL_LEAVES, COUNT_LEAVES, expand

_AT: Final = Location("--bind")
_COUNT: Final = re.compile(r"[1-9][0-9]{0,14}|0", re.ASCII)
_FORMS: Final = {
    "platform": re.compile(r"[a-z0-9]+/[a-z0-9_]+(?:/[a-z0-9]+)?", re.ASCII),
    "model": re.compile(r"\S+@(?:[0-9a-f]{40}|[0-9a-f]{64})", re.ASCII),
    "draft": re.compile(r"\S+@(?:[0-9a-f]{40}|[0-9a-f]{64})|none@none", re.ASCII),
}
_DIMENSIONS: Final = ("topology", "ranks", "nodes", "platform", "model", "draft", "publication_mode", *CELL_LEAVES)
_KINDS: Final = {f"kind {kind}": kind for kind in DigestKind if kind.is_oci}


@dataclass(frozen=True, slots=True)
class Binding:
    """One field, its value, and why it is believed."""

    field: str
    value: str
    why: str = "stated by the signer; the record does not say it"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `FIELD=VALUE` or `FIELD=VALUE because WHY`; `InputError` SCHEMA_INVALID otherwise."""
        name, _, rest = text.partition("=")
        value, _, why = (part.strip() for part in rest.partition(" because "))
        if not value or not name.startswith("/"):
            raise InputError(
                Code.SCHEMA_INVALID,
                f"{text!r} binds nothing",
                at=_AT,
                fix="write FIELD=VALUE with FIELD a JSON pointer; a reason may follow behind ' because '",
            )
        return cls(name, value, why) if why else cls(name, value)

    def to_json(self) -> dict[str, JsonValue]:
        """The object of `bound_by`."""
        return {"field": self.field, "value": self.value, "why": self.why}

    def matches(self, pointer: str) -> bool:
        """Whether it is about the value at a pointer; `*` in its field stands for any one part."""
        wanted, found = pointer_parts(self.field), pointer_parts(pointer)
        return len(wanted) == len(found) and all(part in ("*", other) for part, other in zip(wanted, found, strict=True))


class Bindings:
    """The bindings of one reading, and which of them were of use."""

    def __init__(self, items: Iterable[Binding]) -> None:
        self.items = tuple(items)
        self._used: set[Binding] = set()

    def image(self, stated: Field, kind: DigestKind | None) -> tuple[Digest, tuple[Derived, ...]] | None:
        """The image that a field names, whose digest is of `kind` where the schema says so; none where nobody says it all.

        A binding of `/image` or of the field itself gives a whole digest or, as `kind oci-…`, what the digest is of. `InputError`
        RECORD_CONTRADICTED where it says other than the record.
        """
        bound = next((item for item in self.items if item.matches("/image") or item.matches(stated.pointer)), None)
        whole = _digest(bound) if bound and bound.value not in _KINDS else None
        bound_kind = whole.kind if whole else _KINDS[bound.value] if bound else None
        hexed = stated.oci_hex or (whole.hex if whole else None)
        if bound:
            self._used.add(bound)
            if kind not in (None, bound_kind) or (whole and whole.hex != hexed):
                raise _contradicted(bound, stated.at)
        found = kind or bound_kind
        if hexed is None or found is None:
            return None
        return Digest(found, hexed), (_image_rule(stated, kind),)

    def scope(self, scope: Mapping[str, JsonValue]) -> tuple[dict[str, JsonValue], tuple[Derived, ...]]:
        """A scope with the dimensions that `/scope/NAME` binds, and what was derived so."""
        found, derived = dict(scope), []
        for item in self.items:
            name = item.field.removeprefix("/scope/")
            if item.field.startswith("/scope/") and name in _DIMENSIONS:
                self._used.add(item)
                found = _with(found, name, item)
                derived.append(Derived(item.field, "stated by --bind, the document does not record it", ""))
        return found, tuple(derived)

    def check_used(self) -> None:
        """`InputError` UNKNOWN_NAME for a binding that nothing in the document takes."""
        for item in self.items:
            if item not in self._used:
                fields = ", ".join(["/image", *(f"/scope/{name}" for name in _DIMENSIONS)])
                raise InputError(
                    Code.UNKNOWN_NAME,
                    f"nothing takes the binding of {item.field}",
                    at=_AT,
                    fix=f"bind one of {fields}, or the place of the image's digest to 'kind oci-manifest'",
                )


def _digest(item: Binding) -> Digest:
    found = Digest.parse(item.value, at=_AT)
    if not found.kind.is_oci:
        raise InputError(Code.BAD_DIGEST, f"{item.value!r} is no image", at=_AT, fix=f"give an image digest, or one of {', '.join(_KINDS)}")
    return found


def _image_rule(stated: Field, kind: DigestKind | None) -> Derived:
    if stated.oci_hex is None:
        return Derived("/scope/image", "stated by --bind, the document names no image", "")
    if kind is None:
        return Derived("/scope/image kind", "stated by --bind, the document names no kind", stated.pointer)
    return Derived("/scope/image kind", f"in this schema the field holds the digest of an {kind}", stated.pointer)


def _with(scope: dict[str, JsonValue], name: str, item: Binding) -> dict[str, JsonValue]:
    value = _value(name, item)
    if name not in CELL_LEAVES:
        return {**scope, name: _joined(scope.get(name), name, value, item)}
    cells = scope.get("cells")
    filled: list[JsonValue] = [
        {**cell, name: _joined(cell.get(name), name, value, item)}
        for cell in (cells if isinstance(cells, list) else ())
        if isinstance(cell, dict)
    ]
    return {**scope, "cells": filled}


def _joined(recorded: JsonValue, name: str, value: JsonValue, item: Binding) -> JsonValue:
    """The bound value, or the recorded one completed by it."""
    known, bound = expand(name, recorded), expand(name, value)
    if any(bound.get(leaf, found) != found for leaf, found in known.items()):
        raise _contradicted(item)
    return value if name != "topology" else {**bound, **known}


def _value(name: str, item: Binding) -> JsonValue:
    """The value as the scope holds it; `InputError` SCHEMA_INVALID where it has not the form of its dimension."""
    form = _FORMS.get(name, _COUNT if name in COUNT_LEAVES else None)
    if (form and not form.fullmatch(item.value)) or (name == "topology" and not expand(name, item.value)):
        raise InputError(
            Code.SCHEMA_INVALID,
            f"{item.value!r} is no {name}",
            at=_AT,
            fix="write counts as integers, a topology like TP4/DCP1, a model like REPOSITORY@REVISION with its whole revision",
        )
    if name in ("model", "draft"):
        repository, _, revision = item.value.rpartition("@")
        return {"repository": repository, "revision": revision}
    return int(item.value) if name in COUNT_LEAVES else item.value


def _contradicted(item: Binding, at: Location = _AT) -> InputError:
    return InputError(
        Code.RECORD_CONTRADICTED,
        f"--bind {item.field}={item.value} says other than the record",
        at=at,
        fix="a binding only says what the record does not; leave it out",
    )
