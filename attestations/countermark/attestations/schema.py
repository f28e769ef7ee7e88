"""JSON Schemas (Draft 2020-12) of all documents and predicates, and what is wrong with a value, in words for people.

The schemas are package data, one file a kind. jsonschema counts `1.0` as an integer; our parsers (`jsontext`, `yamltext`) refuse
every float before a value gets here, so the schemas say `integer` and mean it. Patterns are matched against the whole text,
because `re.search` with `$` lets a trailing newline through.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources as package
from typing import TYPE_CHECKING, Any

from countermark.attestations.codes import Code
from countermark.attestations.conformance import Conformance
from countermark.attestations.errors import InputError
from countermark.attestations.predicate_types import TEST_RESULT, PredicateName
from countermark.attestations.schema_problems import Problem, explain
from countermark.attestations.spelling import meant

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

__all__ = ["DOCUMENT_KINDS", "Problem", "kinds", "problems", "problems_for_predicate", "schema_text"]

DOCUMENT_KINDS = (
    "Contract",
    "KeyCatalog",
    "Profile",
    "ProfileMap",
    "CapabilityCatalog",
    "ReleasePolicy",
    "TrustPolicy",
    "RestorePlan",
    "ProbeSet",
    "Waiver",
    "EvidenceMapping",
)
_OTHER_KINDS = ("test-result", "report", "lock", "anchor", "audit", "backup", "decision-bundle")
_KINDS: tuple[str, ...] = (*DOCUMENT_KINDS, *PredicateName, *_OTHER_KINDS)

# A signed waiver is the document itself; two files that differ in case alone would not live together on every disk.
_FILE_OF = {"waiver": "Waiver"}


def kinds() -> tuple[str, ...]:
    """Every kind that has a schema: documents by their kind, predicates by their name, then what commands write."""
    return _KINDS


def schema_text(kind: str) -> str:
    """The schema of `kind` as one self-contained JSON text: the schemas that it refers to are embedded under their ids.

    Raises `InputError` (UNKNOWN_NAME) for a kind that has no schema.
    """
    schema = dict(_schema(_known(kind)))
    embedded = {name: _schema(name) for name in _referred(schema)}
    schema["$defs"] = {**schema.get("$defs", {}), **embedded}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def problems(kind: str, value: object) -> list[Problem]:
    """Everything wrong with `value` as a `kind`, sorted by pointer; an empty list says that it conforms.

    Raises `InputError` (UNKNOWN_NAME) for a kind that has no schema.
    """
    name = _known(kind)
    json_value: Any = value
    if _conformance(name).holds(json_value):
        return []
    return sorted({problem for error in _validator(name).iter_errors(json_value) for problem in explain(error)})


def problems_for_predicate(predicate_type: str, predicate: object) -> list[Problem] | None:
    """Everything wrong with a predicate of this type URI; None when there is no schema for the type."""
    kind = "test-result" if predicate_type == TEST_RESULT else PredicateName.from_uri(predicate_type)
    return None if kind is None else problems(kind, predicate)


def _known(kind: str) -> str:
    if kind in kinds():
        return _FILE_OF.get(kind, kind)
    fix = meant(kind, kinds()) or meant(kind.lower(), PredicateName) or f"the kinds are {', '.join(kinds())}"
    raise InputError(Code.UNKNOWN_NAME, f"there is no schema {kind!r}", fix=fix)


@cache
def _schema(name: str) -> Mapping[str, Any]:
    """The schema file `name`. The cached value is shared and never changed."""
    file = package.files("countermark.attestations") / "schemas" / f"{name}.json"
    schema: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return schema


@cache
def _conformance(name: str) -> Conformance:
    schema = _schema(name)
    others = [_schema(other) for other in _referred(schema)]
    return Conformance(schema, [(str(other["$id"]), other) for other in others])


@cache
def _validator(name: str) -> "Validator":
    """What decides about a value that does not conform for certain."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend
    from referencing import Registry, Resource

    schemas = [_schema(other) for other in (name, *_referred(_schema(name)))]
    resources = [(str(schema["$id"]), Resource.from_contents(schema)) for schema in schemas]
    strict = extend(Draft202012Validator, {"pattern": _whole_text})  # type: ignore[no-untyped-call]  # the stubs leave it untyped
    validator: Validator = strict(
        _schema(name),
        registry=Registry[Mapping[str, Any]]().with_resources(resources),
        format_checker=Draft202012Validator.FORMAT_CHECKER,
    )
    return validator


def _whole_text(_validator: object, pattern: str, value: object, _schema: object) -> "Iterator[ValidationError]":
    from jsonschema.exceptions import ValidationError

    if isinstance(value, str) and not re.fullmatch(pattern, value):
        yield ValidationError("another form is wanted")


def _referred(schema: object) -> list[str]:
    """The names of the other schema files that `schema` refers to, directly or not."""
    found: list[str] = []
    waiting = [schema]
    while waiting:
        for name in _references(waiting.pop()):
            if name not in found:
                found.append(name)
                waiting.append(_schema(name))
    return found


def _references(node: object) -> Iterator[str]:
    if isinstance(node, Mapping):
        target = node.get("$ref", "")
        if isinstance(target, str) and target.startswith("/schema/"):
            yield target.split("/")[2]
        node = list(node.values())
    if isinstance(node, list):
        for item in node:
            yield from _references(item)
