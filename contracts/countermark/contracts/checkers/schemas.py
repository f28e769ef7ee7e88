"""`config.schema-valid` (catalogue GC-13): documents are what their schema says, and times are instants."""

import json
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from countermark.attestations import jsontext
from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.attestations.schema_problems import Problem, explain
from countermark.attestations.times import Instant
from countermark.contracts.checkers.base import Case
from countermark.contracts.checkers.parameters import either, pointers, text
from countermark.contracts.checkers.records import Block, RecordChecker, record_fields
from countermark.contracts.pins import shown

if TYPE_CHECKING:
    from jsonschema.protocols import Validator


class SchemaValid(RecordChecker):
    """Validates documents against a JSON Schema, integers and times more strictly than it does."""

    name = "config.schema-valid"
    rule = "Every document is valid against its schema, every integer is one, and every time is one instant with an offset."
    ids = ("GC-13",)
    parameters = record_fields(
        schema=either(
            "a JSON Schema (2020-12)",
            text("the path of a schema in the repository"),
            {"type": "object", "description": "the schema itself"},
        ),
        times=pointers("values that are instants"),
    )

    def applies(self, block: Block) -> bool:
        """Without a schema and without times there is nothing that a document could break."""
        return "schema" in block.given or "times" in block.given

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each place that the schema refuses, and one for each value that is no instant."""
        if "schema" in block.given:
            from referencing.exceptions import Unresolvable

            validator = _validator(block.case, block.given["schema"])
            value: Any = block.find("")[0].value  # jsonschema takes JSON of any shape
            try:
                found = dict.fromkeys(problem for error in validator.iter_errors(value) for problem in explain(error))
            except Unresolvable as error:
                message = f"the schema refers to {error.ref}, which it does not hold"
                raise InputError(Code.UNSUPPORTED, message, at=block.case.at, fix="put the definition into the schema") from None
            yield from (self._invalid(block, problem) for problem in found)
        for it in block.all("times"):
            try:
                Instant.parse(it.value if isinstance(it.value, str) else shown(it.value))
            except InputError as error:
                required = "one RFC 3339 time with an offset"
                yield self.violation(it.at, required=required, observed=shown(it.value), fix=error.fix)

    def _invalid(self, block: Block, problem: Problem) -> Finding:
        required = f"what the schema says: {problem.message}"
        observed = next((shown(found.value) for found in block.find(problem.pointer)), "nothing")
        return self.violation(block.at(problem.pointer), required=required, observed=observed, fix=problem.fix)


def _strict_integer(checker: object, instance: object) -> bool:
    """JSON Schema counts 1.0 as an integer; a reader that does not would see another document."""
    del checker
    return isinstance(instance, int) and not isinstance(instance, bool)


@cache
def _strict() -> "type[Validator]":
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    types = Draft202012Validator.TYPE_CHECKER.redefine("integer", _strict_integer)
    strict: type[Validator] = extend(Draft202012Validator, type_checker=types)  # type: ignore[no-untyped-call]  # an untyped stub
    return strict


def _validator(case: Case, schema: JsonValue) -> "Validator":
    if not isinstance(schema, str):
        return _checked(json.dumps(schema, sort_keys=True).encode(), "the schema of the contract")
    return _checked(case.tree.read(schema), schema)


@lru_cache(maxsize=64)
def _checked(data: bytes, source: str) -> "Validator":
    from jsonschema.exceptions import SchemaError

    schema: Any = jsontext.loads(data, source)  # jsonschema takes JSON of any shape
    try:
        _strict().check_schema(schema)
    except SchemaError as error:
        message = f"this is no JSON Schema: {error.message}"
        raise InputError(Code.SCHEMA_INVALID, message, at=Location(source), fix="mend the schema") from None
    validator: Validator = _strict()(schema)
    return validator
