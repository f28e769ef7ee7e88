"""What a person states of a measurement because its document does not say it: `--bind FIELD=VALUE because WHY`."""

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from countermark.attestations import jsontext
from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.attestations.located import JsonValue, pointer_parts
from countermark.attestations.schema import problems
from countermark.contracts.adapters.bindings import Binding

_AT = Location("--bind")


def bound(kind: str, fields: Mapping[str, JsonValue], binds: Iterable[Binding]) -> dict[str, JsonValue]:
    """The object with each binding in its place and told under `bound_by`.

    A value is text where the schema of `kind` takes text there, else JSON. `InputError` RECORD_CONTRADICTED for a place that holds
    something else already, SCHEMA_INVALID for one that takes no such value.
    """
    found: dict[str, Any] = copy.deepcopy(dict(fields))
    told = [item.to_json() for item in binds]
    for item in (Binding(str(told_one["field"]), str(told_one["value"])) for told_one in told):
        found = _with(kind, found, item)
    if told:
        found["bound_by"] = [*found.get("bound_by", []), *told]
    return found


def _with(kind: str, fields: dict[str, Any], item: Binding) -> dict[str, Any]:
    wrong: list[str] = []
    for value in _readings(item.value):
        tried = copy.deepcopy(fields)
        recorded = _put(tried, item, value)
        if recorded is not None and recorded != value:
            wrong.append("it says other than the record")
            continue
        mistakes = [problem.message for problem in problems(kind, tried) if problem.pointer.startswith(item.field)]
        if not mistakes:
            return tried
        wrong += mistakes
    code = Code.RECORD_CONTRADICTED if set(wrong) == {"it says other than the record"} else Code.SCHEMA_INVALID
    raise InputError(
        code, f"--bind {item.field}={item.value}: {wrong[0]}", at=_AT, fix="bind a field of the schema that the document leaves out"
    )


def _readings(text: str) -> Iterator[JsonValue]:
    yield text
    try:
        value = jsontext.loads(text.encode(), "--bind")
    except (InputError, UnicodeEncodeError):
        return
    yield value


def _put(fields: dict[str, Any], item: Binding, value: JsonValue) -> JsonValue:
    """Put a value in its place, and give what stood there; objects on the way are made."""
    *parents, last = pointer_parts(item.field)
    node: Any = fields
    for part in parents:
        child = _child(node, part, item)
        if child is None and isinstance(node, dict):
            node[part] = child = {}
        node = child
    recorded: JsonValue = _child(node, last, item)
    if recorded is None:
        if isinstance(node, dict):
            node[last] = value
        else:
            raise InputError(Code.UNKNOWN_NAME, f"there is no {item.field}", at=_AT, fix="name a member of an object, or an element")
    return recorded


def _child(node: JsonValue, part: str, item: Binding) -> JsonValue:
    if isinstance(node, dict):
        return node.get(part)
    if isinstance(node, list) and part.isdecimal() and len(part) < 8 and int(part) < len(node):
        return node[int(part)]
    raise InputError(Code.UNKNOWN_NAME, f"there is no {item.field}", at=_AT, fix="name a member of an object, or an element of a list")
